"""Stores of both kinds: SQLite in the test's folder, and a schema of a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from urllib.parse import quote

import psycopg
import pytest

from groundhook.host.chats.ports import ChatStore
from groundhook.host.chats.store import chat_store
from groundhook.host.chats.tables import CHATS
from groundhook.host.core.app_settings import StoreSettings
from groundhook.host.storage.opening import open_storage
from tests.loopback.databases import NotThere, serving

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


@pytest.fixture(scope="session")
def postgresql(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The URL of a PostgreSQL server, shared by the workers of a run."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if hasattr(request.config, "workerinput") else base
    try:
        with serving("postgresql", shared) as server:
            yield server.url
    except NotThere as reason:
        pytest.skip(f"no PostgreSQL to test with: {reason}")


@contextmanager
def own_schema(server: str) -> Iterator[str]:
    """A new schema → the URL of a database that has nothing else."""
    name = f"chats_{token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as db:
        db.execute(f"create schema {name}".encode())
        try:
            yield f"{server}?options={quote(f'-csearch_path={name}')}"
        finally:
            db.execute(f"drop schema {name} cascade".encode())


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
