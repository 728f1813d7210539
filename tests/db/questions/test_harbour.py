"""Conditions that once went to the wrong field, or were dropped without a word, over a harbour."""

from __future__ import annotations

from typing import Any

import pytest

from groundhook.core.types.model_spec import ModelSpec
from groundhook.handlers.db.model.schema import Schemas
from groundhook.handlers.db.question.languages import words_for
from groundhook.handlers.db.question.lexicons import Lexicons, Offer
from groundhook.handlers.db.question.reading import Reading, read_question
from tests.db.questions.models import NOW, choice, column, conditions, date, number

MODELS: dict[str, list[dict[str, Any]]] = {
    "boat": [
        column("name", label="Name"),
        column("port", label="Port"),
        number("length", "Length", "metres, אורך, Länge"),
        number("weight", "Weight", "kg, Gewicht"),
        number("seats", "Seats", "Sitze"),
        number("fee", "Monthly fee", "price"),
        number("delay", "Delay", "minutes late"),
        number("tour", "Tour", "duration, minutes, Dauer"),
        column("yard", label="Built in", comment="built"),
        column("owner_id", "bigInteger"),
    ],
    "owner": [
        column("name", label="Name"),
        column("city", label="City"),
    ],
    "stay": [
        choice("status", "Status", "booked", "missed"),
        number("rating", "Rating", "stars"),
        number("total", "Total"),
        column("departs_at", "datetime", "Departs"),
        date("paid_on", "Paid", nullable=True),
        column("guest", label="Guest"),
        number("nights", "Nights"),
        date("booked_on", "Booked"),
        column("sail_id", "bigInteger"),
    ],
    "sail": [
        column("name", label="Name"),
        choice("status", "Status", "available", "rented"),
        number("places", "Places", "seats"),
        number("sewn", "Year sewn", "genäht, שנה"),
        number("width", "Width", "metres, Breite"),
        date("next_check", "Next check"),
    ],
    "sailor": [
        column("name", label="Name"),
        column("email", label="Contact email", comment="email", nullable=True),
        number("hourly_wage", "Hourly wage", "pay, Stundenlohn"),
        date("born_on", "Date of birth"),
        date("joined_on", "Joined"),
        date("left_on", "Left", nullable=True),
        date("valid_until", "Licence valid until", comment="licence"),
        date("checked_on", "Checked", comment="geprüft, נבדקו", nullable=True),
    ],
}
COMMENTS = {
    "boat": "Boot, Boote",
    "stay": "Aufenthalt, Aufenthalte",
    "sail": "Segel, מפרש, מפרשים",
    "sailor": "Matrose, Matrosen, מלח, מלחים",
}
EITHER = "status in ['rented', 'available']"
UNCHECKED = "(checked_on < 2020-01-01 or checked_on null)"
RELATIONS = {"boat": "owner", "stay": "sail"}
SCHEMAS = Schemas(
    {
        id: ModelSpec.model_validate(
            {
                "id": id,
                "table": {"name": id, "comment": COMMENTS.get(id, "")},
                "columns": [column("id", "ID"), *columns],
                "relations": {
                    to: {"type": "hasOne", "model": to, "key": "id", "foreign": f"{to}_id"}
                    for to in filter(None, [RELATIONS.get(id)])
                },
            }
        )
        for id, columns in MODELS.items()
    }
)
OWNER = Offer(SCHEMAS["owner"], {"name": ("Ada Sato",), "city": ("Kiel", "Bonn")})
SAIL = Offer(SCHEMAS["sail"], {"name": ("Vega",)})
BOATS = {"name": ("Vega",), "port": ("Kiel",), "yard": ("Vega",)}
OFFERS = {
    "owner": OWNER,
    "boat": Offer(SCHEMAS["boat"], BOATS, {"owner": OWNER}),
    "stay": Offer(SCHEMAS["stay"], {"guest": ("Ada Sato",)}, {"sail": SAIL}),
    "sail": SAIL,
    "sailor": Offer(SCHEMAS["sailor"], {}),
}
LEXICONS = Lexicons()


def read(question: str, model: str = "boat", language: str = "en") -> Reading:
    words = words_for(language, question)
    (reading,) = read_question(question, [OFFERS[model]], words, NOW, LEXICONS)
    return reading


@pytest.mark.parametrize(
    ("question", "language", "found"),
    [
        ("boats over 5 and under 10 metres", "en", "length > 5 and length < 10"),
        ("boats at least 2 but less than 5 tonnes", "en", "weight >= 2000 and weight < 5000"),
        ("boats that weigh over 2 and under 5 tonnes", "en", "weight > 2000 and weight < 5000"),
        ("boats with 3 or more but fewer than 7 seats", "en", "seats >= 3 and seats < 7"),
        ("boats under 5 or over 10 metres", "en", "(length < 5 or length > 10)"),
        ("boats longer than 1 and shorter than 2 hours", "en", "tour > 60 and tour < 120"),
        ("Boote, mindestens 2, höchstens 3 Sitze", "de", "seats >= 2 and seats <= 3"),
        # no range: each has a field of its own
        ("boats over 20000 and under 5 seats", "en", "fee > 20000 and seats < 5"),
    ],
)
def test_the_ends_of_a_range_have_the_field_and_the_unit_of_its_last_number(
    question: str, language: str, found: str
) -> None:
    reading = read(question, language=language)
    assert (conditions(reading), reading.not_understood) == (found, ())


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("boats from Kiel", "port = Kiel"),
        ("boats from Bonn", "owner.city = Bonn"),
        ("boats of owners from Kiel", "owner.city = Kiel"),
    ],
)
def test_a_value_of_the_record_itself_comes_before_one_of_related_records(
    question: str, found: str
) -> None:
    assert conditions(read(question)) == found


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("stays that were missed but paid", "status = missed and paid_on not null"),
        ("missed stays, paid", "status = missed and paid_on not null"),
        ("stays that were missed but not paid", "status = missed and paid_on null"),
        ("stays rated 1 or 2", "rating in [1, 2]"),
    ],
)
def test_no_half_of_two_conditions_is_dropped(question: str, found: str) -> None:
    reading = read(question, "stay")
    assert (conditions(reading), reading.not_understood) == (found, ())


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("boats for under 30 a month", "fee < 30"),
        ("boats for a tour in 15 minutes", "tour <= 15"),
        ("boats with a tour in 2 hours", "tour <= 120"),
        ("boats with a tour of 45 minutes", "tour = 45"),
    ],
)
def test_an_amount_of_time_is_no_time_of_the_calendar(question: str, found: str) -> None:
    assert conditions(read(question)) == found


@pytest.mark.parametrize(
    ("question", "model", "left"),
    [
        ("late boats", "boat", ("late",)),
        ("stays departing in 3 hours", "stay", ("3", "hours")),
    ],
)
def test_what_would_be_a_condition_is_reported(
    question: str, model: str, left: tuple[str, ...]
) -> None:
    assert read(question, model).not_understood == left


@pytest.mark.parametrize(
    ("question", "language", "found"),
    [
        ("former sailors", "en", "left_on not null"),
        ("sailors no longer with us", "en", "left_on not null"),
        ("sailors who are still here", "en", "left_on null"),
        ("ehemalige Matrosen", "de", "left_on not null"),
        ("Matrosen, die noch bei uns sind", "de", "left_on null"),
        ("מלחים לשעבר", "he", "left_on not null"),
        ("sailors with an expired licence", "en", "valid_until < 2026-11-12"),
        ("Matrosen, die seit 2020 nicht mehr geprüft wurden", "de", UNCHECKED),
        ("Matrosen ohne E-Mail", "de", "email null"),
        ("Matrosen, die mehr als 25 Euro pro Stunde verdienen", "de", "hourly_wage > 25"),
        ("Matrosen mit max. 30 Euro pro Stunde", "de", "hourly_wage <= 30"),
    ],
)
def test_who_left_and_what_ended_is_known_by_its_date(
    question: str, language: str, found: str
) -> None:
    reading = read(question, "sailor", language)
    assert (conditions(reading), reading.not_understood) == (found, ())


def test_nobody_is_known_to_have_left_without_such_a_date() -> None:
    reading = read("former boats", "boat")
    assert (conditions(reading), reading.not_understood) == ("", ("former",))


@pytest.mark.parametrize(
    ("question", "language", "found"),
    [
        ("stays that took place on Sunday", "en", ("2026-11-08", "2026-11-09")),
        ("stays on Sunday", "en", ("2026-11-15", "2026-11-16")),
        ("how many stays were there in March?", "en", ("2026-03-01", "2026-04-01")),
        ("wie viele Aufenthalte fanden im März statt?", "de", ("2026-03-01", "2026-04-01")),
    ],
)
def test_what_took_place_lies_behind_us(
    question: str, language: str, found: tuple[str, str]
) -> None:
    reading = read(question, "stay", language)
    start, end = found
    assert conditions(reading) == f"departs_at >= {start} 00:00:00 and departs_at < {end} 00:00:00"
    assert reading.not_understood == ()


def test_no_time_is_that_of_something_to_come_that_is_not_named() -> None:
    assert conditions(read("sails this month", "sail")) == ""
    assert read("sails this month", "sail").not_understood == ("this", "month")
    found = "next_check >= 2026-11-01 and next_check < 2026-12-01"
    assert conditions(read("sails whose next check is due this month", "sail")) == found


def test_what_somebody_did_is_no_option_of_a_related_record() -> None:
    reading = read("who rented Vega in October?", "stay")
    assert "rented" in reading.not_understood
    assert "sail.status" not in conditions(reading)


def test_who_did_the_most_is_a_person() -> None:
    reading = read("who booked the most nights?", "stay")
    assert (reading.dsl.groups, reading.dsl.limit) == (("guest",), 1)
    assert [one.called for one in reading.dsl.aggregates] == ["sum_nights"]


def test_where_something_was_found_is_no_condition_on_the_place() -> None:
    assert conditions(read("where was Vega built?")) == "name = Vega"


@pytest.mark.parametrize(
    ("question", "model", "language", "found"),
    [
        ("boats with a tour under 5 hours but over 500", "boat", "en", "tour < 300 and fee > 500"),
        (
            "stays rated better than 4 but total under 400",
            "stay",
            "en",
            "rating > 4 and total < 400",
        ),
        ("sails that are not available", "sail", "en", "status != available"),
        ("unavailable sails", "sail", "en", "status != available"),
        ("sails deeper than 2 metres", "sail", "en", ""),
        ("sailors for under 20", "sailor", "en", "hourly_wage < 20"),
        ("sails that are one of: rented, available", "sail", "en", EITHER),
        ("at least one of: rented, available", "sail", "en", EITHER),
        ("sails wider than 2 metres", "sail", "en", "width > 2"),
        ("Segel breiter als 2 Meter", "sail", "de", "width > 2"),
        ("Segel, die vor 1880 genäht wurden", "sail", "de", "sewn < 1880"),
        (
            "Matrosen, die vor mehr als drei Jahren geprüft wurden",
            "sailor",
            "de",
            "checked_on < 2023-11-12",
        ),
        ("מלחים שנבדקו לפני יותר משלוש שנים", "sailor", "he", "checked_on < 2023-11-12"),
        ("מפרשים משנת 2018 ומעלה", "sail", "he", "sewn >= 2018"),
    ],
)
def test_a_number_is_for_the_field_that_it_can_be_for(
    question: str, model: str, language: str, found: str
) -> None:
    assert conditions(read(question, model, language)) == found
