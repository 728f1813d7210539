"""Answers that are still good: bounded, the least recently used goes first. The time is passed in,
in seconds of any clock."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Cache(Generic[T]):
    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, tuple[float, T]] = OrderedDict()

    def get(self, key: Hashable, now: float) -> T | None:
        until, value = self._kept.get(key, (now, None))
        if value is None or until <= now:
            self._kept.pop(key, None)
            return None
        self._kept.move_to_end(key)
        return value

    def put(self, key: Hashable, value: T, *, until: float, most: int) -> None:
        """Keep `value` until then, and no more than `most` entries."""
        self._kept[key] = (until, value)
        self._kept.move_to_end(key)
        while len(self._kept) > most:
            self._kept.popitem(last=False)

    def __len__(self) -> int:
        return len(self._kept)
