"""Fusion: both rankings count, ties keep their order, and scores follow the fused order."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from handlers.kb.fusion import descending, fuse

SCORES = st.dictionaries(st.integers(0, 30), st.floats(0.1, 9.0), max_size=20)


@given(SCORES, SCORES)
def test_every_candidate_is_ranked_once_and_always_the_same(dense: dict[int, float], words: dict[int, float]) -> None:
    cosines = {**dict.fromkeys(words, 0.05), **dense}
    order = fuse(dense, words, cosines, limit=100)
    assert sorted(order) == sorted(dense.keys() | words.keys())
    backwards = fuse(dict(reversed(dense.items())), dict(reversed(words.items())), cosines, limit=100)
    assert backwards == order


@given(SCORES, SCORES)
def test_a_passage_that_is_better_both_ways_stands_above(dense: dict[int, float], words: dict[int, float]) -> None:
    order = fuse(dense, words, {**dict.fromkeys(words, 0.05), **dense}, limit=100)
    place = {id: index for index, id in enumerate(order)}
    for one in dense.keys() & words.keys():
        for other in dense.keys() & words.keys():
            if dense[one] > dense[other] + 1e-3 and words[one] > words[other] + 1e-3:
                assert place[one] < place[other]


@given(SCORES)
def test_without_words_the_vectors_order_stays(dense: dict[int, float]) -> None:
    assert fuse(dense, {}, dense, limit=100) == sorted(dense, key=lambda id: (-dense[id], id))


def test_the_only_match_of_a_word_wins_over_vectors_that_are_all_alike() -> None:
    dense = {id: 0.8 + id / 1000 for id in range(20)}
    assert fuse(dense, {3: 5.0}, dense, limit=64)[0] == 3
    assert fuse(dense, {99: 5.0}, {**dense, 99: 0.79}, limit=64).index(99) < 3


def test_passages_that_a_cut_left_in_by_chance_do_not_count() -> None:
    dense = {1: 0.9, 2: 0.8}
    cosines = dict.fromkeys(range(10), 0.1) | dense
    assert fuse(dense, {3: 2.0, 4: 1.0}, cosines, limit=2) == fuse(dense, {3: 2.0, 5: 1.0}, cosines, limit=2)
    assert fuse(dense, {4: 1.0, 5: 1.0}, cosines, limit=2) == [1, 2]


@given(st.lists(st.floats(0, 1), max_size=50))
def test_scores_fall_strictly_and_never_below_the_similarity(similarities: list[float]) -> None:
    scores = descending(similarities)
    assert all(0 <= score <= 1 for score in scores)
    assert all(score >= similarity - 1e-6 for score, similarity in zip(scores, similarities, strict=True))
    assert all(above > below or above == 1.0 for above, below in pairwise(scores))
