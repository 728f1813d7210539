"""A process that increments a counter: `python -m tests.memory.counting_process FILE TIMES`. It
prints when it is ready and starts on a line of input."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import anyio

from groundhook.core.app_settings import MemorySettings
from groundhook.core.types.turn import Identity
from groundhook.host.chats.memory.memory import open_memory


async def count(path: Path, times: int) -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    async with open_memory(
        path, lambda: datetime.now(UTC), MemorySettings(busy_ms=20_000)
    ) as memory:
        kept = memory.of(Identity(user_id="ada")).namespace("user")
        for n in range(times):
            await kept.incr("n")
            await kept.set(f"mine-{n % 7}", n, ttl_ms=1)


anyio.run(count, Path(sys.argv[1]), int(sys.argv[2]))
