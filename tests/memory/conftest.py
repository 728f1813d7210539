"""A memory in the test's own folder, with a clock that the test sets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from groundhook.host.core.app_settings import MemorySettings
from groundhook.host.core.types.turn import Identity
from groundhook.host.memory.memory import Memory, Namespace, open_memory

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


@pytest.fixture
async def memory(path: Path, clock: Clock) -> AsyncIterator[Memory]:
    async with open_memory(path, clock, LIMITS) as memory:
        yield memory


@pytest.fixture(params=["user", "context"])
def kept(request: pytest.FixtureRequest, memory: Memory) -> Namespace:
    """A namespace of each kind: one in the file, and the turn's own."""
    return memory.of(ADA, "chat-1").namespace(request.param)
