"""Entries of a memory: keys, JSON values with a time to live, and counters; their limits; and an
in-process implementation.

The limits on lengths, sizes and numbers are checked here for all implementations of
`MemoryEntries`. Identities are unknown here: `host.chats.memory.memory` maps them to spaces.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeGuard

from groundhook.core.app_settings import MemorySettings
from groundhook.core.errors import UsageError

# Levels of a value. A limit of our own, since that of the JSON parser depends on its stack.
MAX_NESTING = 200
# Above it JavaScript numbers skip integers (ECMA-262, Number.MAX_SAFE_INTEGER).
MAX_EXACT = 2**53 - 1

Number = int | float


@dataclass(frozen=True)
class StoredValue:
    """A value as UTF-8 JSON, and its expiry time in ms since 1970 (None: never)."""

    value: bytes
    expires: int | None = None

    def alive(self, at: int) -> bool:
        return self.expires is None or self.expires > at


# From the JSON of a value (None: missing) to its new JSON (None: unchanged) and a result.
Change = Callable[[bytes | None], tuple[bytes | None, Any]]


class MemoryEntries(Protocol):
    """Entries of many spaces; a space is one namespace of one identity. `at` is the current time in
    ms since 1970; entries that expire at or before it do not exist. Every call is atomic, blocks,
    and raises StorageError."""

    def get(self, space: str, key: str, at: int, /) -> bytes | None: ...

    def put(self, space: str, key: str, stored: StoredValue, at: int, /) -> None:
        """Set a value. Raises UsageError if the space is full."""
        ...

    def remove(self, space: str, key: str, at: int, /) -> bytes | None:
        """Remove a value and return it."""
        ...

    def keys(self, space: str, at: int, /) -> list[str]:
        """Return the keys in the order of their code points."""
        ...

    def clear(self, space: str, at: int, /) -> int:
        """Remove all entries and return their number."""
        ...

    def change(self, space: str, key: str, work: Change, at: int, /) -> Any:
        """Replace a value by what `work` returns for it (None if missing), keep its time to live,
        and return the result. Raises UsageError if `work` does or the space is full."""
        ...


@dataclass
class LocalEntries:
    """Entries in the memory of this process, for one event loop."""

    limits: MemorySettings
    _spaces: dict[str, dict[str, StoredValue]] = field(default_factory=dict)

    def get(self, space: str, key: str, at: int, /) -> bytes | None:
        stored = self._live_entries(space, at).get(key)
        return stored.value if stored else None

    def put(self, space: str, key: str, stored: StoredValue, at: int, /) -> None:
        entries = self._live_entries(space, at)
        if key not in entries and len(entries) >= self.limits.keys:
            raise full_error(self.limits)
        entries[key] = stored

    def remove(self, space: str, key: str, at: int, /) -> bytes | None:
        stored = self._live_entries(space, at).pop(key, None)
        return stored.value if stored else None

    def keys(self, space: str, at: int, /) -> list[str]:
        return sorted(self._live_entries(space, at))

    def clear(self, space: str, at: int, /) -> int:
        count = len(self._live_entries(space, at))
        self._spaces.pop(space, None)
        return count

    def change(self, space: str, key: str, work: Change, at: int, /) -> Any:
        old = self._live_entries(space, at).get(key)
        value, result = work(old.value if old else None)
        if value is not None:
            self.put(space, key, StoredValue(value, old.expires if old else None), at)
        return result

    def _live_entries(self, space: str, at: int) -> dict[str, StoredValue]:
        entries = self._spaces.setdefault(space, {})
        for key in [key for key, stored in entries.items() if not stored.alive(at)]:
            del entries[key]
        return entries


def check_key(key: Any, limits: MemorySettings) -> str:
    """Return the key. Raises UsageError if it is not valid."""
    if not isinstance(key, str) or not key:
        raise UsageError(
            f"a key of the memory must be text of at least one character, not {key!r}"[:200]
        )
    if len(key) > limits.key_length:
        raise UsageError(
            f"the key {key[:40]!r}… has {len(key)} characters; the limit is {limits.key_length}",
            hint="raise memory.key_length in agent/agent.yml",
        )
    if any("\ud800" <= character <= "\udfff" for character in key):
        raise UsageError(
            f"the key {key!r} contains half of a surrogate pair, which is not a character"
        )
    return key


def encode(key: str, value: Any, limits: MemorySettings) -> bytes:
    """Return a value as stored JSON. Raises UsageError if it is not JSON, nested too deeply, or too
    large."""
    if any(depth > MAX_NESTING for depth in _depths(value)):
        raise UsageError(f"the value for {key!r} is nested more than {MAX_NESTING} levels deep")
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as exc:
        raise UsageError(f"the value for {key!r} is not JSON: {exc}") from exc
    # JavaScript strings may contain half of a surrogate pair, which must come back unchanged.
    stored_json = text.encode("utf-8", "surrogatepass")
    if len(stored_json) > limits.value_kb * 1024:
        raise UsageError(
            f"the value for {key!r} takes {len(stored_json)} bytes as JSON;"
            f" at most {limits.value_kb} kB are allowed",
            hint="raise memory.value_kb in agent/agent.yml",
        )
    return stored_json


def decode(stored_json: bytes) -> Any:
    """Return the value of stored JSON."""
    return json.loads(stored_json.decode("utf-8", "surrogatepass"))


def add_numbers(key: str, old: bytes, by: Number) -> Number:
    """Return the sum of a stored value and `by`. Raises UsageError if the value is not a number or
    the sum is not exact."""
    number = decode(old)
    if not is_number(number):
        raise UsageError(
            f"the value of {key!r} is not a number and cannot be incremented",
            hint="set it to a number first",
        )
    try:
        total = number + by
    except OverflowError:
        total = math.inf
    if not math.isfinite(total) or (isinstance(total, int) and abs(total) > MAX_EXACT):
        raise UsageError(f"{key!r} would become {total}, which a number cannot represent exactly")
    return total


def check_increment(by: Any) -> Number:
    """Return an increment. Raises UsageError if it is not a finite number, or an integer beyond
    MAX_EXACT."""
    if not is_number(by) or not math.isfinite(by) or (isinstance(by, int) and abs(by) > MAX_EXACT):
        raise UsageError(f"the increment of a counter must be a number, not {by!r}"[:200])
    return by


def expiry(at: int, ttl_ms: Any) -> int | None:
    """Return the expiry time of a value set at `at`. Raises UsageError if the time to live is not a
    positive number of milliseconds."""
    if ttl_ms is None:
        return None
    if not is_number(ttl_ms) or not 0 < ttl_ms <= MAX_EXACT:
        raise UsageError(
            f"a time to live must be a positive number of milliseconds, not {ttl_ms!r}"[:200],
            hint="omit it for a value without expiry",
        )
    return at + math.ceil(ttl_ms)


def is_number(value: Any) -> TypeGuard[Number]:
    """Return whether a JSON value is a number; booleans are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def full_error(limits: MemorySettings) -> UsageError:
    """Return the error for a new key in a full space."""
    return UsageError(
        f"this memory has {limits.keys} keys already, which is the limit",
        hint="delete keys, give them a time to live, or raise memory.keys in agent/agent.yml",
    )


def _depths(value: Any) -> Iterator[int]:
    """Yield the depth of every list and object, outermost first. Iterative, since values are
    untrusted."""
    open_ = [(value, 1)]
    while open_:
        inner, depth = open_.pop()
        if isinstance(inner, dict | list | tuple):
            yield depth
            open_.extend(
                (each, depth + 1) for each in (inner.values() if isinstance(inner, dict) else inner)
            )
