"""The memory of assistants: four namespaces of keys and JSON values, each isolated by identity.

    async with open_memory(state / "memory.sqlite", now, settings.memory) as memory:
        remembered = memory.of(identity, chat_id)           # once per turn
        await remembered.namespace("user").set("theme", "dark", ttl_ms=60_000)

| namespace | belongs to | stored |
|---|---|---|
| `user` | tenant and user | in the store |
| `team` | tenant and team | in the store |
| `chat` | tenant, user and chat | in the store |
| `context` | the turn | in this process, until the turn ends |

An empty tenant id is a tenant of its own. A namespace whose id is missing in the request raises
NotPermitted and is never shared. Two users with the same chat id have two memories. Callers without
a user id share the chats of their tenant, so the chat id is their only secret: give anonymous
visitors chat ids that cannot be guessed.
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

from groundhook.core.app_settings import MemorySettings, StoreSettings
from groundhook.core.errors import NotPermitted, UnknownName
from groundhook.core.ports import Clock
from groundhook.core.types.turn import Identity
from groundhook.host.chats.memory.entries import (
    Change,
    LocalEntries,
    MemoryEntries,
    Number,
    StoredValue,
    add_numbers,
    check_increment,
    check_key,
    decode,
    encode,
    expiry,
)
from groundhook.host.chats.memory.lists import OPERATIONS, as_list
from groundhook.host.chats.memory.stored import MEMORY, StoredEntries
from groundhook.host.chats.storage.opening import open_storage

NAMESPACES = ("user", "team", "chat", "context")
THREADS = 4  # SQLite has one writer at a time; more threads would wait for each other

Args = ParamSpec("Args")
_Result = TypeVar("_Result")


@dataclass(frozen=True, kw_only=True)
class Namespace:
    """Keys and JSON values of one identity. `get` returns copies: changing them does not change the
    memory.

    Every call is atomic. All raise StorageError if the file cannot be used, and UsageError for an
    invalid key, value, increment or time to live.
    """

    entries: MemoryEntries
    space: str
    now: Clock
    limits: MemorySettings
    threads: anyio.CapacityLimiter | None = None
    """The threads for blocking entries; None if they do not block."""

    async def get(self, key: str) -> Any:
        """Return a value, or None if the key does not exist."""
        stored_json = await self._run(
            self.entries.get, self.space, check_key(key, self.limits), self._now_ms()
        )
        return None if stored_json is None else decode(stored_json)

    async def set(self, key: str, value: Any, ttl_ms: Number | None = None) -> None:
        """Set a value, for `ttl_ms` milliseconds or without expiry; an earlier time to live is
        replaced."""
        at = self._now_ms()
        stored = StoredValue(
            encode(check_key(key, self.limits), value, self.limits), expiry(at, ttl_ms)
        )
        await self._run(self.entries.put, self.space, key, stored, at)

    async def delete(self, key: str) -> bool:
        """Remove a key and return whether it existed. `prefix*` removes all keys that begin with
        the prefix, one after the other."""
        if isinstance(key, str) and key.endswith("*"):
            matching = [each for each in await self.keys() if each.startswith(key[:-1])]
            gone = [
                await self._run(self.entries.remove, self.space, each, self._now_ms())
                for each in matching
            ]
            return any(each is not None for each in gone)
        return (
            await self._run(
                self.entries.remove, self.space, check_key(key, self.limits), self._now_ms()
            )
            is not None
        )

    async def has(self, key: str) -> bool:
        """Return whether a key exists."""
        return (
            await self._run(
                self.entries.get, self.space, check_key(key, self.limits), self._now_ms()
            )
            is not None
        )

    async def keys(self) -> list[str]:
        """Return the keys in the order of their code points."""
        return await self._run(self.entries.keys, self.space, self._now_ms())

    async def length(self) -> int:
        """Return the number of keys."""
        return len(await self.keys())

    async def clear(self) -> int:
        """Remove all keys and return their number."""
        return await self._run(self.entries.clear, self.space, self._now_ms())

    async def incr(self, key: str, by: Number = 1) -> Number:
        """Add to a number (0 if missing), keep its time to live, and return the sum. Raises
        UsageError if the value is not a number or the sum is not exact."""
        added = check_increment(by)

        def work(old: bytes | None) -> tuple[bytes, Number]:
            total = add_numbers(key, b"0" if old is None else old, added)
            return encode(key, total, self.limits), total

        total: Number = await self._change(key, work)
        return total

    async def decr(self, key: str, by: Number = 1) -> Number:
        """Subtract from a number; otherwise as `incr`."""
        return await self.incr(key, -check_increment(by))

    async def get_del(self, key: str) -> Any:
        """Remove a key and return its value, or None."""
        stored_json = await self._run(
            self.entries.remove, self.space, check_key(key, self.limits), self._now_ms()
        )
        return None if stored_json is None else decode(stored_json)

    async def change_list(self, operation: str, key: str, *arguments: Any) -> Any:
        """Run an operation of `host.chats.memory.lists` on a list (empty if missing); keep its time
        to live. Raises UsageError if the value is not a list or an argument does not fit."""

        def work(old: bytes | None) -> tuple[bytes | None, Any]:
            found = as_list(key, None if old is None else decode(old))
            made, result = OPERATIONS[operation](found, *arguments)
            return None if made is None else encode(key, made, self.limits), result

        return await self._change(key, work)

    async def _change(self, key: str, work: Change) -> Any:
        checked = check_key(key, self.limits)
        return await self._run(self.entries.change, self.space, checked, work, self._now_ms())

    def _now_ms(self) -> int:
        return round(self.now().timestamp() * 1000)

    async def _run(
        self, work: Callable[Args, _Result], *args: Args.args, **kwargs: Args.kwargs
    ) -> _Result:
        if self.threads is None:
            return work(*args, **kwargs)
        return await anyio.to_thread.run_sync(lambda: work(*args, **kwargs), limiter=self.threads)


@dataclass(frozen=True, kw_only=True)
class Namespaces:
    """The namespaces of one turn. Made once per turn: its `context` starts empty."""

    stored: MemoryEntries
    local: MemoryEntries
    identity: Identity
    chat_id: str
    now: Clock
    limits: MemorySettings
    threads: anyio.CapacityLimiter

    def namespace(self, name: str) -> Namespace:
        """Return the namespace `user`, `team`, `chat` or `context`. Raises UnknownName, and
        NotPermitted if the request has no id for it."""
        if name not in NAMESPACES:
            raise UnknownName("namespace of the memory", name, NAMESPACES)
        space = space_of(name, self.identity, self.chat_id)
        if name == "context":
            return Namespace(entries=self.local, space=space, now=self.now, limits=self.limits)
        return Namespace(
            entries=self.stored, space=space, now=self.now, limits=self.limits, threads=self.threads
        )


@dataclass(frozen=True, kw_only=True)
class Memory:
    """The memory of an app; `open_memory` opens it."""

    stored: MemoryEntries
    now: Clock
    limits: MemorySettings
    threads: anyio.CapacityLimiter

    def of(self, identity: Identity, chat_id: str = "") -> Namespaces:
        """Return the namespaces of a turn of this identity, with an empty `context`."""
        return Namespaces(
            stored=self.stored,
            local=LocalEntries(self.limits),
            identity=identity,
            chat_id=chat_id,
            now=self.now,
            limits=self.limits,
            threads=self.threads,
        )


@asynccontextmanager
async def open_memory(
    path: Path, now: Clock, limits: MemorySettings, store: StoreSettings | None = None
) -> AsyncIterator[Memory]:
    """Yield the memory in a SQLite file, or in PostgreSQL if `store` has a URL. The first use
    creates the file and its folder. Several processes may have it open. Leaving closes every
    connection. Raises ConfigError for a URL that is not valid."""
    with open_storage(
        store or StoreSettings(),
        path,
        [MEMORY],
        noun="the memory",
        busy=("memory.busy_ms", limits.busy_ms),
    ) as storage:
        yield Memory(
            stored=StoredEntries(storage, limits),
            now=now,
            limits=limits,
            threads=anyio.CapacityLimiter(THREADS),
        )


def space_of(name: str, identity: Identity, chat_id: str) -> str:
    """Return the unique name of the space of an identity. Raises NotPermitted if the id is
    missing."""
    owner = {
        "user": {"user id": identity.user_id},
        "team": {"team id": identity.team_id},
        "chat": {"chat id": chat_id},
        "context": {},
    }[name]
    for noun, id in owner.items():
        if not id:
            raise NotPermitted(
                f"the {name!r} memory needs a {noun}, which the request does not have",
                hint=(
                    f"give the request a {noun}, or use the 'context' memory, which lasts for the"
                    " turn"
                ),
            )
    whose = [identity.user_id] if name == "chat" else []
    # JSON keeps ("a", "bc") and ("ab", "c") apart and is ASCII for any ids.
    return json.dumps([name, identity.tenant_id, *whose, *owner.values()])
