"""Fusion: both rankings count, in each language as far as words match there, ties keep their order,
and scores follow the fused order."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from groundhook.handlers.kb.analyse import Analyser, SparseVector
from groundhook.handlers.kb.ranking.fusion import (
    LanguageGroup,
    Rarity,
    descending_scores,
    found_by_one_word,
    fuse,
    rarity,
    weight_of_words,
)

SCORES = st.dictionaries(st.integers(0, 30), st.floats(0.1, 9.0), max_size=20)
COMMON = Rarity(1.0)


def order(
    dense: dict[int, float], words: dict[int, float], weight: float = 1.0, limit: int = 100
) -> list[int]:
    cosines = {**dict.fromkeys(words, 0.05), **dense}
    return fuse([LanguageGroup(dense, words, weight)], cosines, limit)


def weight(question: SparseVector, passage: str, rare: dict[int, Rarity] | None = None) -> float:
    rarities = dict.fromkeys(question.indices, COMMON) | (rare or {})
    return weight_of_words(question, rarities, ANALYSER.indices(passage))


ANALYSER = Analyser("english")


@given(SCORES, SCORES)
def test_every_candidate_is_ranked_once_and_always_the_same(
    dense: dict[int, float], words: dict[int, float]
) -> None:
    found = order(dense, words)
    assert sorted(found) == sorted(dense.keys() | words.keys())
    assert order(dict(reversed(dense.items())), dict(reversed(words.items()))) == found


@given(SCORES, SCORES)
def test_a_passage_that_is_better_both_ways_comes_first(
    dense: dict[int, float], words: dict[int, float]
) -> None:
    found = order(dense, words)
    both = dense.keys() & words.keys()
    for one in both:
        for other in both:
            if dense[one] > dense[other] + 1e-3 and words[one] > words[other] + 1e-3:
                assert found.index(one) < found.index(other)


@given(SCORES, SCORES)
def test_words_that_count_nothing_leave_the_order_of_cosines(
    dense: dict[int, float], words: dict[int, float]
) -> None:
    assert order(dense, words, 0.0) == sorted(dense, key=lambda id: (-dense[id], id))


def test_the_only_match_of_a_word_wins_over_vectors_that_are_all_alike() -> None:
    assert order({1: 0.8, 2: 0.8, 3: 0.8}, {3: 5.0})[0] == 3


def test_passages_that_a_cut_left_in_by_chance_do_not_count() -> None:
    dense = {id: 0.9 - id / 100 for id in range(8)}
    assert sorted(order(dense, {7: 4.0, 6: 1.0}, limit=2)) == [0, 1, 7]


def test_passages_of_another_language_are_not_worth_less_because_they_cannot_have_the_words() -> (
    None
):
    own = LanguageGroup({1: 0.80, 2: 0.79, 3: 0.78}, {2: 3.0, 3: 2.0}, 1.0)
    other = LanguageGroup({11: 0.82, 12: 0.77}, {}, 0.0)
    cosines = {**own.dense, **other.dense}
    fair = fuse([own, other], cosines, 100)
    alike = fuse([own, LanguageGroup(other.dense, {}, 1.0)], cosines, 100)
    assert fair.index(11) < alike.index(11)


def test_words_count_in_full_when_the_best_passage_has_all_and_nothing_when_it_has_none() -> None:
    question = ANALYSER.question("ripe pears of summer")
    assert weight(question, "pears ripe in the summer of old") == 1.0
    assert weight(question, "granite") == 0.0


def test_a_rare_word_decides_and_common_ones_do_not() -> None:
    question = ANALYSER.question("where do harbours store granite")
    [granite] = ANALYSER.indices("granite")
    rare = {granite: Rarity(6.0, only=4)}
    assert weight(question, "granite", rare=rare) == 1.0
    assert weight(question, "harbours", rare=rare) == 0.0


def test_an_exact_code_in_common_is_enough_for_words_to_count_in_full() -> None:
    question = ANALYSER.question("why does the small green lamp of the AB-1234 blink at night")
    assert weight(question, "AB-1234: a manual") == 1.0


def test_a_word_that_no_passage_has_is_as_rare_as_one_of_a_single_passage() -> None:
    nowhere, once = rarity({}, 1000), rarity({7: 6.5}, 1000)
    assert nowhere.only is None
    assert once.only == 7
    assert rarity({7: 6.5, 8: 6.5}, 1000).only is None
    assert nowhere.score > 6


def test_only_the_passage_of_a_rare_word_is_found_however_near_and_only_where_words_count() -> None:
    question = ANALYSER.question("granite")
    [granite] = question.indices
    rare = {granite: Rarity(6.0, only=4)}
    assert found_by_one_word(question, rare, [LanguageGroup({}, {4: 6.0, 5: 1.0}, 1.0)]) == {4}
    assert not found_by_one_word(question, rare, [LanguageGroup({}, {4: 6.0}, 0.5)])
    assert not found_by_one_word(question, {granite: COMMON}, [LanguageGroup({}, {4: 6.0}, 1.0)])


@given(st.lists(st.floats(0, 1), max_size=20))
def test_scores_fall_strictly_and_never_below_the_similarity(similarities: list[float]) -> None:
    scores = descending_scores(similarities)
    for similarity, score in zip(similarities, scores, strict=True):
        assert score >= round(similarity, 6) - 1e-9 or score == 1.0
    if all(score < 1.0 for score in scores):
        assert all(before > after for before, after in pairwise(scores))
