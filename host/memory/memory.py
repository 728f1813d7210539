"""What assistants remember: four namespaces of keys and JSON values, each for the identity that it
belongs to.

    async with open_memory(state / "memory.sqlite", now, settings.memory) as memory:
        remembered = memory.of(identity, chat_id)           # once for each turn
        await remembered.namespace("user").set("theme", "dark", ttl_ms=60_000)

| namespace | belongs to | kept |
|---|---|---|
| `user` | tenant and user | in the file |
| `team` | tenant and team | in the file |
| `chat` | tenant, user and chat | in the file |
| `context` | the turn | in this process, gone with the turn |

No tenant is a tenant of its own. Without the id that a namespace belongs to it is refused, never
shared. Two users who name the same chat have two memories. Callers without a user id share the
chats of their tenant that they can name, so a chat's id is their only secret: whoever serves
anonymous visitors gives them ids that cannot be guessed.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import anyio
import anyio.to_thread

from groundhook.host.core.errors import NotPermitted, UnknownName
from groundhook.host.core.ports import Clock
from groundhook.host.core.settings import MemorySettings
from groundhook.host.core.types.turn import Identity
from groundhook.host.memory.entries import (
    Entries,
    LocalEntries,
    Number,
    Stored,
    check_key,
    check_step,
    decode,
    encode,
    expiry,
)
from groundhook.host.memory.file import FileEntries

NAMESPACES = ("user", "team", "chat", "context")
THREADS = 4  # SQLite has one writer at a time; more threads would wait for each other

Args = ParamSpec("Args")
Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Namespace:
    """Keys and JSON values of one identity. Values are copies: changing one that was got changes
    nothing here.

    Every call is atomic. All raise StorageError when the file cannot be used, and UsageError for a
    key, value, step or time to live that cannot be.
    """

    entries: Entries
    space: str
    now: Clock
    limits: MemorySettings
    threads: anyio.CapacityLimiter | None = None
    """None: the entries do not block."""

    async def get(self, key: str) -> Any:
        """The value, or None when there is none."""
        kept = await self._do(self.entries.get, self.space, check_key(key, self.limits), self._at())
        return None if kept is None else decode(kept)

    async def set(self, key: str, value: Any, ttl_ms: Number | None = None) -> None:
        """Keep a value, for `ttl_ms` milliseconds or for good; a time to live of before is
        forgotten."""
        at = self._at()
        stored = Stored(encode(check_key(key, self.limits), value, self.limits), expiry(at, ttl_ms))
        await self._do(self.entries.put, self.space, key, stored, at)

    async def delete(self, key: str) -> bool:
        """→ whether it was there."""
        return (
            await self._do(self.entries.remove, self.space, check_key(key, self.limits), self._at())
            is not None
        )

    async def has(self, key: str) -> bool:
        return (
            await self._do(self.entries.get, self.space, check_key(key, self.limits), self._at())
            is not None
        )

    async def keys(self) -> list[str]:
        """In the order of their code points."""
        return await self._do(self.entries.keys, self.space, self._at())

    async def length(self) -> int:
        return len(await self.keys())

    async def clear(self) -> int:
        """Remove everything → how many keys there were."""
        return await self._do(self.entries.clear, self.space, self._at())

    async def incr(self, key: str, by: Number = 1) -> Number:
        """Add to a number, from 0 when there is none, and leave its time to live → the sum. Raises
        UsageError when the value is no number or the sum is beyond what a number holds."""
        return await self._do(
            self.entries.add, self.space, check_key(key, self.limits), check_step(by), self._at()
        )

    async def decr(self, key: str, by: Number = 1) -> Number:
        return await self.incr(key, -check_step(by))

    async def get_del(self, key: str) -> Any:
        """Remove a key → the value it had, or None."""
        kept = await self._do(
            self.entries.remove, self.space, check_key(key, self.limits), self._at()
        )
        return None if kept is None else decode(kept)

    def _at(self) -> int:
        return round(self.now().timestamp() * 1000)

    async def _do(
        self, work: Callable[Args, Result], *args: Args.args, **kwargs: Args.kwargs
    ) -> Result:
        if self.threads is None:
            return work(*args, **kwargs)
        return await anyio.to_thread.run_sync(lambda: work(*args, **kwargs), limiter=self.threads)


@dataclass(frozen=True, kw_only=True)
class Namespaces:
    """What one turn may remember. Made once for each turn: its `context` begins empty."""

    file: Entries
    local: Entries
    identity: Identity
    chat_id: str
    now: Clock
    limits: MemorySettings
    threads: anyio.CapacityLimiter

    def namespace(self, name: str) -> Namespace:
        """`user`, `team`, `chat` or `context`. Raises UnknownName, and NotPermitted when the
        request does not say whose it is."""
        if name not in NAMESPACES:
            raise UnknownName("namespace of the memory", name, NAMESPACES)
        space = space_of(name, self.identity, self.chat_id)
        if name == "context":
            return Namespace(entries=self.local, space=space, now=self.now, limits=self.limits)
        return Namespace(
            entries=self.file, space=space, now=self.now, limits=self.limits, threads=self.threads
        )


@dataclass(frozen=True, kw_only=True)
class Memory:
    """The memory of an app; `open_memory` makes it."""

    file: Entries
    now: Clock
    limits: MemorySettings
    threads: anyio.CapacityLimiter

    def of(self, identity: Identity, chat_id: str = "") -> Namespaces:
        """What a turn of this identity may remember, with an empty `context`."""
        return Namespaces(
            file=self.file,
            local=LocalEntries(self.limits),
            identity=identity,
            chat_id=chat_id,
            now=self.now,
            limits=self.limits,
            threads=self.threads,
        )


@asynccontextmanager
async def open_memory(path: Path, now: Clock, limits: MemorySettings) -> AsyncIterator[Memory]:
    """The memory in a SQLite file, which is made (with its folder) when something is first kept or
    looked up. Several processes may have it open. Leaving closes every connection."""
    file = FileEntries(path, limits)
    try:
        yield Memory(file=file, now=now, limits=limits, threads=anyio.CapacityLimiter(THREADS))
    finally:
        file.close()


def space_of(name: str, identity: Identity, chat_id: str) -> str:
    """The name of an identity's own entries, different for any two that are not the same. Raises
    NotPermitted."""
    owner = {
        "user": {"user id": identity.user_id},
        "team": {"team id": identity.team_id},
        "chat": {"chat id": chat_id},
        "context": {},
    }[name]
    for noun, id in owner.items():
        if not id:
            raise NotPermitted(
                f"the {name!r} memory needs a {noun}, and the request has none",
                hint=(
                    f"send the request with a {noun} (groundhook chat --{name} …), or use the"
                    " 'context' memory, which lasts for the turn"
                ),
            )
    whose = [identity.user_id] if name == "chat" else []
    # JSON keeps ("a", "bc") and ("ab", "c") apart, and is ASCII whatever the ids hold.
    return json.dumps([name, identity.tenant_id, *whose, *owner.values()])
