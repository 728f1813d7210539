"""A memory in the test's own folder or in a schema of PostgreSQL, with a clock that the test sets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from groundhook.core.app_settings import MemorySettings, StoreSettings
from groundhook.core.types.turn import Identity
from groundhook.host.chats.memory.memory import Memory, Namespace, open_memory
from tests.loopback.databases import own_schema

START = datetime(2026, 11, 20, 12, tzinfo=UTC)
LIMITS = MemorySettings(key_length=40, value_kb=1, keys=20)
ADA = Identity(tenant_id="acme", team_id="tools", user_id="ada")


@dataclass
class Clock:
    """A clock that the test sets."""

    time: datetime = START

    def __call__(self) -> datetime:
        return self.time

    def pass_ms(self, ms: float) -> None:
        self.time += timedelta(milliseconds=ms)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "memory.sqlite"


@contextmanager
def settings_of(kind: str, request: pytest.FixtureRequest) -> Iterator[StoreSettings]:
    """Where a memory of this kind keeps what it stores: a file of the test's own, or a schema."""
    if kind != "postgresql":
        yield StoreSettings()
        return
    with own_schema(request.getfixturevalue("postgresql")) as url:
        yield StoreSettings(url=url)


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest) -> Iterator[StoreSettings]:
    with settings_of(request.param, request) as settings:
        yield settings


@pytest.fixture
async def memory(path: Path, clock: Clock, store: StoreSettings) -> AsyncIterator[Memory]:
    async with open_memory(path, clock, LIMITS, store) as memory:
        yield memory


@pytest.fixture(params=["sqlite", "postgresql", "turn"])
async def kept(
    request: pytest.FixtureRequest, path: Path, clock: Clock
) -> AsyncIterator[Namespace]:
    """A namespace of each kind: two that are stored, and the turn's own."""
    with settings_of(request.param, request) as store:
        async with open_memory(path, clock, LIMITS, store) as memory:
            name = "context" if request.param == "turn" else "user"
            yield memory.of(ADA, "chat-1").namespace(name)
