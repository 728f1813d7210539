"""Conditions that once went to the wrong field, or were dropped without a word, over a harbour."""

from __future__ import annotations

from typing import Any

import pytest

from groundhook.handlers.db.question.languages import words_for
from groundhook.handlers.db.question.lexicons import Lexicons, Offer
from groundhook.handlers.db.question.reading import Reading, read_question
from groundhook.handlers.db.schema import Schemas
from groundhook.host.core.types.model_spec import ModelSpec
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
        date("built_on", "Built"),
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
    ],
}
RELATIONS = {"boat": "owner"}
SCHEMAS = Schemas(
    {
        id: ModelSpec.model_validate(
            {
                "id": id,
                "table": {"name": id, "comment": {"boat": "Boot, Boote"}.get(id, "")},
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
OFFERS = {
    "owner": OWNER,
    "boat": Offer(SCHEMAS["boat"], {"name": ("Vega",), "port": ("Kiel",)}, {"owner": OWNER}),
    "stay": Offer(SCHEMAS["stay"], {}),
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
