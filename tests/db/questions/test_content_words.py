"""Words that carry no condition at one place and are content at another, and words that nothing
defines."""

from __future__ import annotations

import pytest

from tests.db.questions.models import conditions, read


@pytest.mark.parametrize(
    ("model", "question", "word"),
    [
        ("doctor", "working doctors in Haifa", "working"),
        ("book", "living history books", "living"),
        ("book", "any data books", "data"),
        ("book", "books about information", "information"),
        ("book", "worth reading", "worth"),
        ("book", "made up stories", "made"),
        ("book", "books that search", "search"),
    ],
)
def test_a_content_word_is_never_a_filler(model: str, question: str, word: str) -> None:
    assert word in read(question, model).not_understood


@pytest.mark.parametrize(
    ("model", "question", "found"),
    [
        ("doctor", "doctors living in Haifa", "city = Haifa"),
        ("doctor", "show me all records of doctors based in Haifa", "city = Haifa"),
        ("doctor", "which doctors work in Haifa", "city = Haifa"),
        ("doctor", "doctors who use the Curry", "meal = Curry"),
        ("doctor", "what kind of doctors do you know", ""),
        ("book", "please find information about German books", "language = German"),
        ("book", "things made in German", "language = German"),
        ("book", "what do you think of French books", "language = French"),
    ],
)
def test_the_same_words_carry_no_condition_in_a_phrase(
    model: str, question: str, found: str
) -> None:
    reading = read(question, model)
    assert (conditions(reading), reading.not_understood) == (found, ())


@pytest.mark.parametrize(
    "word", ["good", "great", "kind", "nice", "tall", "old", "famous", "few", "heavy", "large"]
)
def test_an_adjective_that_nothing_defines_is_reported_and_not_searched_for(word: str) -> None:
    reading = read(f"{word} doctors in Haifa", "doctor")
    assert reading.not_understood == reading.left_out == (word,)
    assert [where.field for where in reading.dsl.wheres] == ["city"]
