"""Queries of an intent, and the order of what several queries found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.types.collection_queries import CollectionMatch
from groundhook.toolkits.learning.queries import (
    LONGEST_QUERY,
    by_rules,
    distinct,
    is_unknown,
    is_vague,
    texts_in,
)
from groundhook.toolkits.learning.ranking import COUNTS, ranked, spread
from groundhook.toolkits.learning.values import CourseContext

COURSE = CourseContext(
    course_id="b", title="Biology", outcomes=["explain mitosis", "", "name organs"]
)
SCORES = st.dictionaries(
    st.sampled_from("abcdefg"), st.floats(0, 1, allow_nan=False), min_size=0, max_size=7
)


def found(scores: dict[str, float]) -> list[CollectionMatch]:
    falling = sorted(scores.items(), key=lambda pair: -pair[1])
    return [CollectionMatch(id=id, collection="c", score=score) for id, score in falling]


def test_the_intent_is_the_first_query_and_a_vague_one_is_joined_by_outcomes() -> None:
    assert by_rules("how does mitosis work", COURSE) == [
        "how does mitosis work",
        "how does mitosis work Biology",
    ]
    assert by_rules("help", COURSE)[1:3] == ["Biology: explain mitosis", "Biology"]


@pytest.mark.parametrize("vague", ["", "help", "what is it?", "עזרה", "?", "תא"])
def test_an_intent_without_two_telling_words_is_vague(vague: str) -> None:
    assert is_vague(vague)


@pytest.mark.parametrize(
    "telling", ["cell division", "חלוקת התא", "細胞分裂", "Zellteilung erklären"]
)
def test_an_intent_with_two_telling_words_is_not_vague(telling: str) -> None:
    assert not is_vague(telling)


@pytest.mark.parametrize(
    ("intent", "unknown"),
    [("quiz", True), ("?", True), ("Mitosis!", False), ("a quiz about cells", False)],
)
def test_the_course_decides_where_a_vague_intent_has_no_word_of_what_it_found(
    intent: str, unknown: bool
) -> None:
    assert is_unknown(intent, ["In mitosis one cell becomes two.", "Quizzes"]) is unknown


def test_queries_lose_numbers_blanks_and_repetitions() -> None:
    assert distinct(
        ["1. cell  division", "", "- Cell division", "  ", "2) mitosis", '"meiosis"', "…"], 5
    ) == ("cell division", "mitosis", "meiosis")


@given(st.lists(st.text()), st.integers(1, 10))
def test_queries_are_few_short_and_different(texts: list[str], most: int) -> None:
    queries = distinct(texts, most)
    assert len(queries) <= most
    assert len({query.casefold() for query in queries}) == len(queries)
    assert all(0 < len(query) <= LONGEST_QUERY for query in queries)


@pytest.mark.parametrize(
    "answer",
    [
        {"queries": ["a", "b"]},
        {"searchQueries": ["a", "b"]},
        ["a", "b"],
        [{"query": "a"}, {"query": "b"}],
        {"queries": [{"query": "a"}, "b"]},
        {"queries": "a\nb"},
        "a\nb",
    ],
)
def test_every_shape_of_an_answer_with_queries_is_read(answer: object) -> None:
    assert texts_in(answer) == ["a", "b"]


@pytest.mark.parametrize("answer", [None, 3, {}, {"answer": "a"}, True, [3, None]])
def test_an_answer_without_queries_has_none(answer: object) -> None:
    assert texts_in(answer) == []


@given(SCORES, st.lists(SCORES, max_size=4))
def test_scores_are_between_0_and_1_and_never_rise_and_no_section_comes_twice(
    intent: dict[str, float], others: list[dict[str, float]]
) -> None:
    order = ranked([found(intent), *map(found, others)])
    scores = [section.score for section in order]
    assert all(0 <= score <= 1 for score in scores)
    assert scores == sorted(scores, reverse=True)
    ids = [section.match.id for section in order]
    assert sorted(ids) == sorted({*intent, *(id for one in others for id in one)})


@given(SCORES, st.lists(SCORES, max_size=4))
def test_what_the_intent_finds_clearly_stays_first_whatever_other_queries_find(
    others: dict[str, float], more: list[dict[str, float]]
) -> None:
    intent = {"clear": 0.9, "weak": 0.5}
    order = ranked([found(intent), found(others), *map(found, more)])
    assert order[0].match.id == "clear"


@given(SCORES, st.lists(SCORES, max_size=4), st.integers(0, 4))
def test_the_first_section_of_a_clear_intent_stays_among_three_whatever_other_queries_find(
    intent: dict[str, float], others: list[dict[str, float]], alike: int
) -> None:
    hits = found(intent)
    order = [
        section.match.id for section in ranked([hits, *map(found, others)], min(alike, len(others)))
    ]
    if hits and hits[0].score >= COUNTS:
        assert hits[0].id in order[:3]


def test_three_other_queries_displace_no_section_that_is_barely_ahead() -> None:
    intent = {"right": 0.60, "a": 0.59, "b": 0.58, "c": 0.57}
    order = ranked([found(intent), *[found({"a": 1.0, "b": 1.0, "c": 1.0})] * 3])
    assert [section.match.id for section in order[:3]] == ["a", "b", "right"]


def test_a_book_gives_no_more_sections_than_the_setting_allows() -> None:
    order = ranked([found({"a": 0.9, "b": 0.8, "c": 0.7})])
    books = {("c", "a"): "one", ("c", "b"): "one", ("c", "c"): "other"}
    assert [section.match.id for section in spread(order, books, 1)] == ["a", "c"]
    assert len(spread(order, books, 0)) == 3
