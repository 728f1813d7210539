"""Stores of both kinds: SQLite in the test's folder, and a schema of a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from groundhook.core.app_settings import StoreSettings
from groundhook.host.chats.ports import ChatStore
from groundhook.host.chats.storage.opening import open_storage
from groundhook.host.chats.store import chat_store
from groundhook.host.chats.tables import CHATS
from tests.loopback.databases import own_schema

KINDS = ("sqlite", "postgresql")


@dataclass(frozen=True)
class Place:
    """Where a store keeps its rows."""

    settings: StoreSettings
    file: Path

    @contextmanager
    def store(self) -> Iterator[ChatStore]:
        """Open it once more, as another process would."""
        with open_storage(self.settings, self.file, [CHATS], noun="the chats") as storage:
            yield chat_store(storage)


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    file = tmp_path / "state" / "chats.sqlite"
    if request.param == "sqlite":
        yield Place(StoreSettings(), file)
        return
    with own_schema(request.getfixturevalue("postgresql")) as url:
        yield Place(StoreSettings(url=url), file)


@pytest.fixture
def store(place: Place) -> Iterator[ChatStore]:
    with place.store() as store:
        yield store
