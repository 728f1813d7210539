"""Records that a question omits: "all but those …", "except the …"."""

from __future__ import annotations

import pytest

from tests.db.questions.models import conditions, read, readings

NO_FRENCH = "languages match none ['French']"


@pytest.mark.parametrize(
    ("model", "question", "found"),
    [
        ("parcel", "all parcels but those to Rome", "destination != Rome"),
        ("parcel", "every parcel but the ones from Oslo", "origin != Oslo"),
        ("parcel", "all parcels but the insured ones", "insured = False"),
        ("parcel", "all parcels but those sent before 2024", "sent_at >= 2024-01-01 00:00:00"),
        ("parcel", "parcels except those over 5 kg", "weight <= 5"),
        (
            "parcel",
            "parcels, but not the ones to Rome or Paris",
            "destination not in ['Rome', 'Paris']",
        ),
        ("parcel", "everything but the parcels to Rome", "destination != Rome"),
        ("doctor", "all doctors but those who speak French", NO_FRENCH),
        ("doctor", "all doctors except those who don't speak French", "languages like French"),
        ("doctor", "everyone but the doctors in Haifa", "city != Haifa"),
        ("book", "all books but those by Ada Sato", "author != Ada Sato"),
        ("book", "all books except the history books", "genre != history"),
        ("book", "all books but Good Omens", "title != Good Omens"),
        ("book", "all books over 100 pages but under 200", "pages > 100 and pages < 200"),
    ],
)
def test_records_behind_but_or_except_are_omitted(model: str, question: str, found: str) -> None:
    reading = read(question, model)
    assert (conditions(reading), reading.not_understood) == (found, ())


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("all parcels but those from Oslo to Rome", "(origin != Oslo or destination != Rome)"),
        ("all parcels except the insured ones to Rome", "(insured = False or destination != Rome)"),
        ("all parcels but those to Rome or over 5 kg", "destination != Rome and weight <= 5"),
    ],
)
def test_of_several_conditions_of_an_exception_not_all_hold(question: str, found: str) -> None:
    assert conditions(read(question, "parcel")) == found


def test_an_exception_of_several_conditions_is_noted() -> None:
    (note,) = read("all parcels but those from Oslo to Rome", "parcel").notes
    assert "'but those from Oslo to Rome'" in note


def test_an_exception_ends_with_its_clause() -> None:
    reading = read("except for those to Rome, all insured parcels", "parcel")
    assert conditions(reading) == "destination != Rome and insured = True"


@pytest.mark.parametrize("question", ["all books but these", "all books but the cheapest"])
def test_an_exception_without_a_condition_is_reported(question: str) -> None:
    reading = read(question, "book")
    assert (conditions(reading), reading.not_understood) == ("", ("but",))


def test_an_unknown_word_of_an_exception_is_excluded_and_reported() -> None:
    reading = read("all books but those by Tolstoy", "book")
    (where,) = reading.dsl.wheres
    assert (where.op, where.value, reading.not_understood) == (
        "match none",
        ["tolstoy"],
        ("Tolstoy",),
    )


@pytest.mark.parametrize(
    "question", ["alle Bücher außer denen von Ada Sato", "כל הספרים חוץ מ Ada Sato"]
)
def test_other_languages_have_exceptions_too(question: str) -> None:
    (reading,) = readings(question, "book", language="auto")
    assert conditions(reading) == "author != Ada Sato"
