"""The walk: a probability that stays with what the start is connected to, and is quick."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import example, given
from hypothesis import strategies as st

from groundhook.handlers.kb.graph import join
from groundhook.handlers.kb.graph.file import Rows
from groundhook.handlers.kb.graph.walk import Graph

pairs = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=30)


def graph(
    mentions: list[tuple[int, int]],
    relations: Sequence[tuple[int, int]] = (),
    *,
    size: int = 8,
) -> Graph:
    return Graph(
        Rows(
            entities=[(10 + n, f"e{n}", f"E{n}", "term", "") for n in range(size)],
            passages=[(100 + n, f"d{n}", 0, "p") for n in range(size)],
            mentions=[
                (100 + passage, 10 + entity, 1, 0) for passage, entity in dict.fromkeys(mentions)
            ],
            relations=[
                (10 + one, 10 + other, "knows", 1) for one, other in relations if one != other
            ],
        )
    )


def connected(graph: Graph, start: set[int]) -> set[int]:
    seen, ahead = set(start), list(start)
    while ahead:
        new = set(graph.neighbours(ahead.pop())) - seen
        seen |= new
        ahead += new
    return seen


@given(
    pairs, pairs, st.dictionaries(st.integers(0, 15), st.floats(0.01, 5), min_size=1, max_size=4)
)
def test_the_walk_is_a_probability_over_what_the_start_is_connected_to(
    mentions: list[tuple[int, int]], relations: list[tuple[int, int]], start: dict[int, float]
) -> None:
    made = graph(mentions, relations)
    scores = made.rank(start)
    assert math.isclose(float(scores.sum()), 1.0, abs_tol=1e-3)
    assert (scores >= 0).all()
    visited = {int(node) for node in scores.nonzero()[0]}
    assert visited <= connected(made, set(start))


@given(pairs, st.integers(0, 7))
def test_what_is_nearer_to_the_start_is_visited_more_than_nothing(
    mentions: list[tuple[int, int]], entity: int
) -> None:
    made = graph(mentions)
    scores = made.rank({entity: 1.0})
    assert all(scores[node] > 0 for node in made.neighbours(entity))


def test_nothing_to_start_from_leads_nowhere() -> None:
    assert not graph([(0, 0)]).rank({}).any()
    assert not Graph(Rows(entities=[], passages=[], mentions=[], relations=[])).rank({}).any()


def test_a_bridge_of_one_rare_name_leads_to_the_second_document() -> None:
    # Passages 0 and 1 share a rare name; everything else shares the frequent one, which passage 0
    # has as well.
    made = graph([(0, 0), (1, 0), *((n, 1) for n in range(8) if n != 1)])
    scores = made.rank({made.first_passage: 1.0})
    others = sorted(range(1, 8), key=lambda n: -scores[made.first_passage + n])
    assert others[0] == 1


places = st.lists(st.integers(0, 30), max_size=12, unique=True)


@given(places, places, st.lists(st.integers(0, 30), max_size=20, unique=True), st.integers(1, 15))
# One stays outside, one at the edge.
@example([0, 8, 9, 10, 11], [0, 1, 2, 3, 4, 5, 6, 7], [1, 2, 3, 4, 5, 6, 7, 0, 8], 11)
def test_joining_keeps_the_head_and_the_better_half_of_what_was_found(
    found: list[int], reached: list[int], walk: list[int], limit: int
) -> None:
    found = found[:limit]
    walked = {one: rank for rank, one in enumerate(walk, 1)}
    joined = join.ordered(found, reached, walked, limit=limit)
    assert len(joined) == len(set(joined)) == min(limit, len({*found, *reached}))
    assert set(joined) <= {*found, *reached}
    assert joined[: join.HEAD] == found[: join.HEAD] or len(found) < join.HEAD
    assert set(found[: limit // 2]) <= set(joined)
    assert join.ordered(found, [], {}, limit=limit) == found


def test_the_best_passage_of_the_walk_is_right_after_the_head() -> None:
    assert join.ordered([1, 2, 3, 4, 5], [9], {9: 1, 1: 2}, limit=5) == [1, 2, 3, 9, 4]
