"""What a memory holds: keys, JSON values with a time to live, counters; and the twin of the file
that lives in one process.

Pure but for `LocalEntries`, which keeps its entries in a dict. What is allowed (lengths, sizes,
numbers) is decided here, once for both kinds of `Entries`; nothing here knows who asks.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeGuard

from groundhook.host.core.errors import UsageError
from groundhook.host.core.settings import MemorySettings

NESTING = 200  # levels; the JSON parser's own bound depends on the depth of the stack it runs on
EXACT = (
    2**53 - 1
)  # beyond it a JavaScript number skips integers (ECMA-262, Number.MAX_SAFE_INTEGER)

Number = int | float


@dataclass(frozen=True)
class Stored:
    """A value as UTF-8 JSON, and when it ends in ms since 1970 (none: it stays)."""

    value: bytes
    expires: int | None = None

    def alive(self, at: int) -> bool:
        return self.expires is None or self.expires > at


class Entries(Protocol):
    """Entries of many spaces; a space is one namespace of one identity. `at` is the time in ms
    since 1970; entries that ended before or at it are not there. Every call is atomic. The calls
    block; they raise StorageError."""

    def get(self, space: str, key: str, at: int, /) -> bytes | None: ...

    def put(self, space: str, key: str, stored: Stored, at: int, /) -> None:
        """Raises UsageError when the space is full."""
        ...

    def remove(self, space: str, key: str, at: int, /) -> bytes | None:
        """→ the value that was removed."""
        ...

    def keys(self, space: str, at: int, /) -> list[str]:
        """In the order of their code points."""
        ...

    def clear(self, space: str, at: int, /) -> int:
        """→ how many there were."""
        ...

    def add(self, space: str, key: str, by: Number, at: int, /) -> Number:
        """Add to a number (0 when there is none), leaving its time to live → the sum. Raises
        UsageError when the value is no number, or the space is full."""
        ...


@dataclass
class LocalEntries:
    """Entries of this process, gone with the object. Used from one event loop."""

    limits: MemorySettings
    _spaces: dict[str, dict[str, Stored]] = field(default_factory=dict)

    def get(self, space: str, key: str, at: int, /) -> bytes | None:
        stored = self._alive(space, at).get(key)
        return stored.value if stored else None

    def put(self, space: str, key: str, stored: Stored, at: int, /) -> None:
        entries = self._alive(space, at)
        if key not in entries and len(entries) >= self.limits.keys:
            raise full(self.limits)
        entries[key] = stored

    def remove(self, space: str, key: str, at: int, /) -> bytes | None:
        stored = self._alive(space, at).pop(key, None)
        return stored.value if stored else None

    def keys(self, space: str, at: int, /) -> list[str]:
        return sorted(self._alive(space, at))

    def clear(self, space: str, at: int, /) -> int:
        count = len(self._alive(space, at))
        self._spaces.pop(space, None)
        return count

    def add(self, space: str, key: str, by: Number, at: int, /) -> Number:
        old = self._alive(space, at).get(key, Stored(b"0"))
        total = added(key, old.value, by)
        self.put(space, key, replace(old, value=encode(key, total, self.limits)), at)
        return total

    def _alive(self, space: str, at: int) -> dict[str, Stored]:
        entries = self._spaces.setdefault(space, {})
        for key in [key for key, stored in entries.items() if not stored.alive(at)]:
            del entries[key]
        return entries


def check_key(key: Any, limits: MemorySettings) -> str:
    """Raises UsageError for what is no key."""
    if not isinstance(key, str) or not key:
        raise UsageError(
            f"a key of the memory must be text of at least one character, not {key!r}"[:200]
        )
    if len(key) > limits.key_length:
        raise UsageError(
            f"the key {key[:40]!r}… has {len(key)} characters; at most {limits.key_length} are"
            " allowed",
            hint="the limit is memory.key_length in agent/agent.yml",
        )
    if any("\ud800" <= character <= "\udfff" for character in key):
        raise UsageError(f"the key {key!r} holds half of a surrogate pair, which is no character")
    return key


def encode(key: str, value: Any, limits: MemorySettings) -> bytes:
    """A JSON value as it is kept. Raises UsageError when it is none, is nested too deep, or is too
    large."""
    if any(depth > NESTING for depth in _depths(value)):
        raise UsageError(f"the value for {key!r} is nested more than {NESTING} levels deep")
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as exc:
        raise UsageError(f"the value for {key!r} is not JSON: {exc}") from exc
    # JavaScript strings may hold half of a surrogate pair, and get it back.
    kept = text.encode("utf-8", "surrogatepass")
    if len(kept) > limits.value_kb * 1024:
        raise UsageError(
            f"the value for {key!r} takes {len(kept)} bytes as JSON; at most {limits.value_kb} kB"
            " are allowed",
            hint="the limit is memory.value_kb in agent/agent.yml",
        )
    return kept


def decode(kept: bytes) -> Any:
    return json.loads(kept.decode("utf-8", "surrogatepass"))


def added(key: str, old: bytes, by: Number) -> Number:
    """The sum of a kept value and `by`. Raises UsageError when there is none."""
    number = decode(old)
    if not is_number(number):
        raise UsageError(
            f"the value of {key!r} is no number and cannot be counted up or down",
            hint="Set it to a number first",
        )
    try:
        total = number + by
    except OverflowError:
        total = math.inf
    if not math.isfinite(total) or (isinstance(total, int) and abs(total) > EXACT):
        raise UsageError(f"{key!r} would become {total}, which a number cannot hold exactly")
    return total


def check_step(by: Any) -> Number:
    """What a counter is changed by. Raises UsageError when it is no finite number, or an integer
    that JavaScript cannot hold."""
    if not is_number(by) or not math.isfinite(by) or (isinstance(by, int) and abs(by) > EXACT):
        raise UsageError(f"a counter is changed by a number, not {by!r}"[:200])
    return by


def expiry(at: int, ttl_ms: Any) -> int | None:
    """When a value that was set at `at` ends. Raises UsageError for a time to live that is no
    positive number."""
    if ttl_ms is None:
        return None
    if not is_number(ttl_ms) or not 0 < ttl_ms <= EXACT:
        raise UsageError(
            f"a time to live is a positive number of milliseconds, not {ttl_ms!r}"[:200],
            hint="leave it out for a value that stays",
        )
    return at + math.ceil(ttl_ms)


def is_number(value: Any) -> TypeGuard[Number]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def full(limits: MemorySettings) -> UsageError:
    return UsageError(
        f"this memory holds {limits.keys} keys already, and no more are allowed",
        hint="delete some, give them a time to live, or raise memory.keys in agent/agent.yml",
    )


def _depths(value: Any) -> Iterator[int]:
    """The depth of every list and object, outermost first; never recursive."""
    open_ = [(value, 1)]
    while open_:
        inner, depth = open_.pop()
        if isinstance(inner, dict | list | tuple):
            yield depth
            open_.extend(
                (each, depth + 1) for each in (inner.values() if isinstance(inner, dict) else inner)
            )
