"""A "not" governs its clause: also behind unknown verbs, behind its subject and in the passive."""

from __future__ import annotations

import pytest

from tests.db.questions.models import conditions, read

NO_FRENCH = "languages match none ['French']"


@pytest.mark.parametrize(
    ("model", "question", "found"),
    [
        ("book", "books not written in German", "language != German"),
        ("book", "books that were not published in German", "language != German"),
        ("book", "books that aren't sold in English", "(sold_on null or language != English)"),
        ("book", "books nobody wrote in German", "language != German"),
        ("book", "which books did Ada Sato not write?", "author != Ada Sato"),
        ("book", "books that Ada Sato did not write", "author != Ada Sato"),
        ("book", "books not longer than 300 pages", "pages <= 300"),
        ("book", "books not sold since March", "(sold_on < 2026-03-01 or sold_on null)"),
        ("book", "books that were never sold", "sold_on null"),
        ("doctor", "doctors who do not speak French", NO_FRENCH),
        ("doctor", "doctors who never learned French", NO_FRENCH),
        ("doctor", "doctors who cannot speak French", NO_FRENCH),
        ("doctor", "doctors who refuse to speak French", NO_FRENCH),
        ("doctor", "doctors with no knowledge of French", NO_FRENCH),
        ("doctor", "doctors who don't currently live in Haifa", "city != Haifa"),
        ("doctor", "doctors who do not earn more than 90000", "salary <= 90000"),
        ("doctor", "doctors who have not retired", "retired = False"),
        ("doctor", "doctors who did not join before 2020", "hired_on >= 2020-01-01"),
        (
            "doctor",
            "doctors who were not hired in 2024",
            "(hired_on < 2024-01-01 or hired_on >= 2025-01-01)",
        ),
        ("parcel", "parcels that did not arrive in Rome", "destination != Rome"),
        ("parcel", "parcels not insured from Oslo", "(insured = False or origin != Oslo)"),
        (
            "doctor",
            "doctors in Nice but not Mountain View",
            "city = Nice and city != Mountain View",
        ),
        ("book", "books that do not cost 5", "price != 5"),
        ("book", "books that do not cost 5 or 6", "price not in [5, 6]"),
        ("book", "books that do not cost 5 or less", "price > 5"),
        ("book", "books that do not cost 5 and above", "price < 5"),
        ("parcel", "parcels that were not shipped from Oslo", "origin != Oslo"),
        ("doctor", "doctors who do not include Haifa", "city != Haifa"),
        ("book", "signed books with no pages", "signed = True and pages = 0"),
        ("book", "books without a price", "price = 0"),
        ("parcel", "parcels that do not weigh more than 5 kg", "weight <= 5"),
    ],
)
def test_a_not_governs_its_clause(model: str, question: str, found: str) -> None:
    assert conditions(read(question, model)) == found


@pytest.mark.parametrize(
    ("model", "question", "found"),
    [
        ("book", "unsigned books", "signed = False"),
        ("book", "nonfiction books", "genre != fiction"),
        ("book", "non-fiction books", "genre != fiction"),
        ("book", "unsold books", "sold_on null"),
        ("parcel", "uninsured parcels", "insured = False"),
        ("parcel", "undelivered parcels", "delivered_at null"),
        ("doctor", "inactive doctors", "status != active"),
        ("doctor", "non-English doctors", "languages match none ['English']"),
    ],
)
def test_a_prefix_negates_the_value_or_field_behind_it(
    model: str, question: str, found: str
) -> None:
    reading = read(question, model)
    assert (conditions(reading), reading.not_understood) == (found, ())


@pytest.mark.parametrize(
    "question",
    [
        "doctors whose name does not start with A",
        "doctors except those whose name starts with A",
        "doctors without a name that starts with A",
        "doctors not from a city starting with A",
    ],
)
def test_what_does_not_begin_so_is_reported_and_nothing_with_the_letter_is_omitted(
    question: str,
) -> None:
    reading = read(question, "doctor")
    assert (reading.dsl.wheres, reading.not_understood[-1]) == ((), "A")


@pytest.mark.parametrize("sign", ["'%'", "'A%'", "A_1", "' '"])
def test_a_beginning_with_the_sign_of_a_pattern_is_searched_for_as_text(sign: str) -> None:
    reading = read(f"doctors whose name starts with {sign}", "doctor")
    assert all(where.field == "*" for where in reading.dsl.wheres)
    assert "starts" in reading.not_understood
