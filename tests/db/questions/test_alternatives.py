"""What an "or" joins: two conditions, or two descriptions of records."""

from __future__ import annotations

import pytest

from tests.db.questions.models import conditions, read


@pytest.mark.parametrize(
    ("model", "question", "found"),
    [
        (
            "book",
            "signed history books or anything by Ada Sato",
            "((signed = True and genre = history) or author = Ada Sato)",
        ),
        (
            "book",
            "signed history books or anything that is under 100 pages",
            "((signed = True and genre = history) or pages < 100)",
        ),
        (
            "book",
            "German history books or those by Ben Ortiz",
            "((language = German and genre = history) or author = Ben Ortiz)",
        ),
        (
            "doctor",
            "retired doctors in Haifa or anyone who speaks French",
            "((retired = True and city = Haifa) or languages like French)",
        ),
        (
            "book",
            "fiction or signed history books",
            "(genre = fiction or (signed = True and genre = history))",
        ),
        (
            "book",
            "signed fiction or German history",
            "((signed = True and genre = fiction) or (language = German and genre = history))",
        ),
        ("parcel", "from Oslo or anything to Rome", "(origin = Oslo or destination = Rome)"),
        (
            "parcel",
            "insured parcels to Rome or Paris",
            "insured = True and destination in ['Rome', 'Paris']",
        ),
    ],
)
def test_a_description_behind_or_shares_no_condition_before_it(
    model: str, question: str, found: str
) -> None:
    reading = read(question, model)
    assert (conditions(reading), reading.not_understood) == (found, ())
