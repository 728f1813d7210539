"""A cache with expiry times and a size limit; the least recently used entry is evicted first. Times
are arguments, in seconds of any clock."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Cache(Generic[T]):
    """Values that are not None by key."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, tuple[float, T]] = OrderedDict()

    def get(self, key: Hashable, now: float) -> T | None:
        """Return the value if it has not expired at `now`."""
        expires, value = self._entries.get(key, (now, None))
        if value is None or expires <= now:
            self._entries.pop(key, None)
            return None
        self._entries.move_to_end(key)
        return value

    def put(self, key: Hashable, value: T, *, expires: float, max_entries: int) -> None:
        """Store `value` until the time `expires`, and at most `max_entries` entries in all."""
        self._entries[key] = (expires, value)
        self._entries.move_to_end(key)
        while len(self._entries) > max_entries:
            self._entries.popitem(last=False)

    def __len__(self) -> int:
        return len(self._entries)
