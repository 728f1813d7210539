"""A cache of points: each is read once while it is cached, and never more are kept than the
bound."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from groundhook.handlers.kb.embedded.point_cache import PointCache

REQUESTS = st.lists(st.lists(st.integers(0, 12), max_size=6, unique=True), max_size=12)


@given(REQUESTS, st.integers(1, 8))
def test_points_come_in_the_requested_order_whatever_was_evicted(
    requested: list[list[int]], most: int
) -> None:
    remembered = PointCache(most, lambda ids: {id: str(id) for id in reversed(ids)})
    for ids in requested:
        assert remembered.of(ids) == [str(id) for id in ids]
    assert len(remembered) <= max([most, *map(len, requested)])


@given(REQUESTS)
def test_a_cached_point_is_not_read_again_until_it_is_evicted(
    requested: list[list[int]],
) -> None:
    read: list[int] = []

    def reading(ids: Sequence[int]) -> dict[int, str]:
        read.extend(ids)
        return {id: str(id) for id in ids}

    remembered = PointCache(100, reading)
    for ids in [*requested, *requested]:
        remembered.of(ids)
    assert sorted(read) == sorted({id for ids in requested for id in ids})
    remembered.forget()
    assert remembered.of([1]) == ["1"]
    assert read[-1] == 1


def test_a_point_that_is_too_long_is_read_every_time_and_not_cached() -> None:
    read: list[int] = []

    def reading(ids: Sequence[int]) -> dict[int, str]:
        read.extend(ids)
        return {id: "x" * id for id in ids}

    remembered = PointCache(10, reading, lambda text: len(text) > 3)
    for _ in range(2):
        assert remembered.of([5, 2, 4]) == ["xxxxx", "xx", "xxxx"]
    assert read == [5, 2, 4, 5, 4]
    assert len(remembered) == 1
