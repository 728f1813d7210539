"""A cache of the points read last: the same passages answer many questions, and a read by the
engine takes longer than most of the work on its result."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from itertools import islice
from typing import Generic, TypeVar

Read = TypeVar("Read")


class PointCache(Generic[Read]):
    """A cache of at most `most` points, by ids that are never used again for another point. `read`
    reads missing points. A point that is `too_long` is not kept, since many of them would fill the
    memory."""

    def __init__(
        self,
        most: int,
        read: Callable[[Sequence[int]], Mapping[int, Read]],
        too_long: Callable[[Read], bool] = lambda _: False,
    ) -> None:
        self._most = most
        self._read = read
        self._too_long = too_long
        self._kept: dict[int, Read] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, ids: Sequence[int]) -> list[Read]:
        """Return the points in the order of the ids."""
        kept = self._kept
        missing = [id for id in ids if id not in kept]
        if missing:
            self._make_room(len(missing), frozenset(ids))
            kept |= self._read(missing)
        found = [*map(kept.__getitem__, ids)]
        for id in missing:
            if self._too_long(kept[id]):
                del kept[id]
        return found

    def forget(self) -> None:
        self._kept.clear()

    def _make_room(self, more: int, requested: Container[int]) -> None:
        """Drop the points that were read first and are not requested now."""
        excess = max(0, len(self._kept) + more - self._most)
        for oldest in list(islice((id for id in self._kept if id not in requested), excess)):
            del self._kept[oldest]
