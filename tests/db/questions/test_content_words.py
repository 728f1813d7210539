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


@pytest.mark.parametrize(
    ("model", "question", "word"),
    [
        ("doctor", "how much did we earn in October", "earn"),
        ("parcel", "how much did we charge in October", "charge"),
        ("doctor", "who is still employed", "employed"),
        ("doctor", "which doctors are currently hired", "hired"),
        ("doctor", "hired doctors in Haifa", "hired"),
        ("doctor", "doctors who work", "work"),
        ("doctor", "well known doctors", "known"),
        ("doctor", "doctors managed in 2025", "managed"),
        ("book", "books kept since 2020", "kept"),
    ],
)
def test_a_verb_that_becomes_no_condition_is_reported(model: str, question: str, word: str) -> None:
    assert word in " ".join(read(question, model).not_understood).split()


@pytest.mark.parametrize(
    ("model", "question", "found"),
    [
        ("parcel", "how much does parcel P-100 cost", "code = P-100"),
        ("doctor", "what does Dana Levi earn", "name = Dana Levi"),
        ("book", "books that were sold", "sold_on not null"),
        ("doctor", "doctors hired in 2025", "hired_on >= 2025-01-01, hired_on < 2026-01-01"),
    ],
)
def test_a_verb_that_names_a_field_is_understood(model: str, question: str, found: str) -> None:
    reading = read(question, model)
    assert (conditions(reading).replace(" and ", ", "), reading.not_understood) == (found, ())


@pytest.mark.parametrize("question", ["books under 90 minutes", "books longer than 2 hours"])
def test_a_length_of_time_is_never_a_number_of_pages(question: str) -> None:
    reading = read(question, "book")
    assert conditions(reading) == ""
    assert set(question.split()[-2:]) <= set(reading.not_understood)


@pytest.mark.parametrize(
    "question", ["books with pages not descending", "books whose weight is not heavy"]
)
def test_a_field_with_a_denial_that_was_not_understood_is_never_zero(question: str) -> None:
    reading = read(question, "book")
    assert "= 0" not in conditions(reading)
    assert question.split()[-1] in reading.not_understood
