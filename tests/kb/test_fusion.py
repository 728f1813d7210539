"""Fusion: both rankings count, ties keep their order, and scores follow the fused order."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.handlers.kb.analyse import Analyser, Sparse
from groundhook.handlers.kb.ranking.fusion import (
    best,
    descending,
    ordered,
    places,
    weight_of_words,
)
from groundhook.handlers.kb.ranking.fusion import fuse as worth_of


def fuse(
    dense: dict[int, float],
    words: dict[int, float],
    cosines: dict[int, float],
    *,
    limit: int,
    weight: float = 1.0,
) -> list[int]:
    return ordered(worth_of(dense, words, limit=limit, weight=weight).worths(cosines))


SCORES = st.dictionaries(st.integers(0, 30), st.floats(0.1, 9.0), max_size=20)


@given(SCORES, SCORES)
def test_every_candidate_is_ranked_once_and_always_the_same(
    dense: dict[int, float], words: dict[int, float]
) -> None:
    cosines = {**dict.fromkeys(words, 0.05), **dense}
    order = fuse(dense, words, cosines, limit=100)
    assert sorted(order) == sorted(dense.keys() | words.keys())
    backwards = fuse(
        dict(reversed(dense.items())), dict(reversed(words.items())), cosines, limit=100
    )
    assert backwards == order


@given(SCORES, SCORES)
def test_a_passage_that_is_better_both_ways_stands_above(
    dense: dict[int, float], words: dict[int, float]
) -> None:
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
    assert fuse(dense, {3: 2.0, 4: 1.0}, cosines, limit=2) == fuse(
        dense, {3: 2.0, 5: 1.0}, cosines, limit=2
    )
    assert fuse(dense, {4: 1.0, 5: 1.0}, cosines, limit=2) == [1, 2]


@given(SCORES, SCORES)
def test_words_that_count_nothing_leave_the_order_of_cosines(
    dense: dict[int, float], words: dict[int, float]
) -> None:
    cosines = {**dict.fromkeys(words, 0.05), **dense}
    order = fuse(dense, words, cosines, limit=100, weight=0.0)
    assert order == sorted(cosines, key=lambda id: (-cosines[id], id))


@given(SCORES, SCORES, st.floats(0, 1))
def test_the_less_words_count_the_lower_stands_what_only_they_speak_for(
    dense: dict[int, float], words: dict[int, float], weight: float
) -> None:
    cosines = {99: 0.01, **dict.fromkeys(words, 0.05), **dense}
    words = {**words, 99: 10.0}
    in_full = fuse(dense, words, cosines, limit=100)
    assert fuse(dense, words, cosines, limit=100, weight=weight).index(99) >= in_full.index(99)


RANKING = st.dictionaries(
    st.integers(0, 30), st.integers(1, 9).map(lambda tenths: tenths / 10), max_size=20
).map(lambda scores: dict(sorted(scores.items(), key=lambda scored: -scored[1])))


@given(
    RANKING,
    RANKING,
    st.dictionaries(st.integers(0, 30), st.floats(0, 1)),
    st.floats(0, 1),
    st.integers(1, 6),
    st.floats(-1, 1),
)
def test_the_first_are_the_same_whether_all_cosines_are_known_or_those_that_matter(
    dense: dict[int, float],
    words: dict[int, float],
    shares: dict[int, float],
    weight: float,
    first: int,
    least_cosine: float,
) -> None:
    farthest = min(dense.values(), default=1.0)
    cosines = {id: farthest * shares.get(id, 0.5) for id in words} | dense
    fused = worth_of(dense, words, limit=10, weight=weight)
    listed = fused.needed_by_vectors(first, least_cosine)
    contenders = fused.needed_by_words(fused.worths(listed), first, least_cosine)
    assert listed.items() <= dense.items()
    assert not dense.keys() & contenders

    def shown(known: dict[int, float]) -> list[int]:
        return [id for id in ordered(fused.worths(known)) if known[id] >= least_cosine][:first]

    assert shown(listed | {id: cosines[id] for id in contenders}) == shown(cosines)


INDICES = st.integers(0, 15).map(lambda number: 4 * number)  # of words
QUESTION = st.dictionaries(INDICES, st.floats(0.1, 1.0), min_size=1).map(
    lambda weights: Sparse(sorted(weights), [weights[index] for index in sorted(weights)])
)
PASSAGES = st.lists(st.lists(INDICES), max_size=3)


@given(QUESTION, PASSAGES, st.lists(INDICES))
def test_words_count_between_nothing_and_fully_and_another_passage_never_makes_it_less(
    question: Sparse, passages: list[list[int]], another: list[int]
) -> None:
    weight = weight_of_words(question, passages)
    assert 0 <= weight <= weight_of_words(question, [*passages, another]) <= 1


@given(QUESTION, PASSAGES, st.lists(INDICES))
def test_one_more_word_of_the_question_in_a_passage_never_makes_words_count_less(
    question: Sparse, passages: list[list[int]], some: list[int]
) -> None:
    more = weight_of_words(question, [*passages, [*some, question.indices[0]]])
    assert weight_of_words(question, [*passages, some]) <= more


@given(QUESTION, PASSAGES)
def test_words_count_in_full_when_one_passage_has_all_and_nothing_when_none_has_any(
    question: Sparse, passages: list[list[int]]
) -> None:
    assert weight_of_words(question, [*passages, question.indices]) == 1
    assert weight_of_words(question, [[400, 404], []]) == 0


def test_a_name_in_common_counts_little_beside_a_question_in_other_words() -> None:
    question = Sparse([4, 8, 12, 16, 20, 24, 28], [1.0] * 7)
    assert (
        weight_of_words(question, [[4, 80], [8, 88]]) == 0
    )  # each has one, but none of them has two
    assert 0 < weight_of_words(question, [[4, 8, 80]]) < 1
    assert weight_of_words(question, [[4, 8, 12, 80]]) == 1


def test_an_exact_code_in_common_is_enough_for_words_to_count_in_full() -> None:
    analyser = Analyser("english", 50.0)
    question = analyser.question("Was bedeutet die Meldung E-4012 beim Starten der Maschine?")
    assert (
        weight_of_words(question, [analyser.document("E-4012: the motor is too hot").indices]) == 1
    )
    assert (
        weight_of_words(question, [analyser.document("E-4013: the motor is stuck").indices]) < 0.5
    )


def test_the_best_of_a_ranking_is_worth_more_than_it_stands_out() -> None:
    cosines = {1: 0.81, 2: 0.80, 3: 0.79}
    words = {3: 5.0, 2: 4.9, 1: 4.8}  # as far apart as the cosines are
    assert fuse(cosines, words, cosines, limit=64) in ([1, 3, 2], [3, 1, 2])


def test_what_a_passage_is_worth_adds_up_what_stands_out_and_its_places() -> None:
    fused = worth_of({1: 0.9, 2: 0.8, 4: 0.7}, {2: 6.0, 3: 4.0}, limit=64)
    by_hand = {1: 10 * 0.9 + 1, 2: 10 * 0.8 + 6 / 3 + 1 / 2 + 1, 3: 10 * 0.6 + 4 / 3 + 1 / 2}
    assert fused.worths({1: 0.9, 2: 0.8, 3: 0.6, 5: 0.5}) == pytest.approx(by_hand)


def test_equal_ones_share_a_place() -> None:
    assert places([2.0, 3.0, 2.0, 1.0]) == {3.0: 1, 2.0: 1 / 2, 1.0: 1 / 4}


@given(SCORES)
def test_the_passages_looked_at_are_those_that_match_best(words: dict[int, float]) -> None:
    chosen = best(words)
    assert len(chosen) == min(3, len(words))
    assert all(words[id] <= min(words[one] for one in chosen) for id in words.keys() - set(chosen))


@given(st.lists(st.floats(0, 1), max_size=50))
def test_scores_fall_strictly_and_never_below_the_similarity(similarities: list[float]) -> None:
    scores = descending(similarities)
    assert all(0 <= score <= 1 for score in scores)
    assert all(
        score >= similarity - 1e-6 for score, similarity in zip(scores, similarities, strict=True)
    )
    assert all(above > below or above == 1.0 for above, below in pairwise(scores))
