"""Words that could mean a value, a field or the records, over a fire brigade."""

from __future__ import annotations

from typing import Any

import pytest

from groundhook.core.types.model_spec import ModelSpec
from groundhook.handlers.db.model.schema import Schemas
from groundhook.handlers.db.question.lexicons import Lexicons, Offer
from groundhook.handlers.db.question.reading import Reading, read_question
from groundhook.handlers.db.question.vocabulary import vocabulary
from tests.db.questions.models import NOW, column, conditions, date, number

RANKS = ["firefighter", "sergeant", "captain"]
KINDS = ["engine", "ladder", "tanker"]
MODELS: dict[str, dict[str, Any]] = {
    "callout": {
        "comment": "incident, Einsatz, Einsätze",
        "columns": [
            number("response", "Response time", "minutes"),
            number("duration", "Duration", "minutes, Dauer"),
            number("damage", "Damage", "euros"),
            column("reporter", label="Reporter"),
            column("state", "enum", "State", option=["reported", "closed"]),
        ],
    },
    "firefighter": {
        "columns": [
            column("rank", "enum", "Rank", option=RANKS),
            number("height", "Height", "cm"),
            date("joined_on", "Joined"),
            date("examined_on", "Examined"),
            date("born_on", "Date of birth"),
        ],
    },
    "vehicle": {
        "comment": "Fahrzeug, Fahrzeuge, רכב",
        "columns": [
            column("kind", "enum", "Kind", option=KINDS),
            number("tank", "Water tank", "litres"),
            number("seats", "Seats"),
            number("weight", "Weight", "tonnes"),
            number("built", "Year built", "built, gebaut, Baujahr, שנת ייצור, נבנה"),
            date("inspected_on", "Inspected"),
        ],
    },
}
SCHEMAS = Schemas(
    {
        id: ModelSpec.model_validate(
            {
                "id": id,
                "table": {"name": id, "comment": raw.get("comment", "")},
                "columns": [column("id", "ID"), *raw["columns"]],
            }
        )
        for id, raw in MODELS.items()
    }
)
OFFERS = {id: Offer(SCHEMAS[id], {}) for id in MODELS}
LEXICONS = Lexicons()


def read(question: str, *models: str, language: str = "en") -> Reading:
    offers = [OFFERS[id] for id in models or OFFERS]
    (reading,) = read_question(question, offers, vocabulary(language), NOW, LEXICONS)
    return reading


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("firefighters taller than 1.90 m", "height > 190"),
        ("crew whose rank is captain", "rank = captain"),
        ("firefighters who are firefighters or captains", "rank in ['firefighter', 'captain']"),
    ],
)
def test_the_name_of_the_records_is_no_value_unless_it_is_said_twice(
    question: str, found: str
) -> None:
    reading = read(question, "firefighter")
    assert conditions(reading) == found


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("tankers with at least 4 seats", "kind = tanker and seats >= 4"),
        ("tankers heavier than 12 tonnes", "kind = tanker and weight > 12"),
        ("vehicles with a tank of at least 2000 litres", "tank >= 2000"),
        ("vehicles whose tank is over 2000", "tank > 2000"),
        ("vehicles with seats over 4 tank over 2000", "seats > 4 and tank > 2000"),
    ],
)
def test_a_number_belongs_to_the_field_that_its_own_words_name(question: str, found: str) -> None:
    reading = read(question, "vehicle")
    assert (conditions(reading), reading.not_understood) == (found, ())


@pytest.mark.parametrize(
    ("question", "language", "found"),
    [
        ("incidents that lasted longer than two hours", "en", "duration > 120"),
        ("Einsätze, die weniger als eine Stunde dauerten", "de", "duration < 60"),
        ("incidents with a response time over 20 minutes", "en", "response > 20"),
        ("incidents with over 5000 euros of damage", "en", "damage > 5000"),
    ],
)
def test_of_fields_with_the_same_unit_the_one_that_is_spoken_of_is_meant(
    question: str, language: str, found: str
) -> None:
    reading = read(question, "callout", language=language)
    assert (conditions(reading), reading.not_understood) == (found, ())


def test_what_is_not_a_value_does_not_lack_a_field_of_its_name() -> None:
    reading = read("engines instead of tankers", "vehicle")
    assert conditions(reading) == "kind = engine and kind != tanker"


def test_a_person_who_does_something_is_not_what_was_done() -> None:
    reading = read("reporters of incidents", "callout")
    assert conditions(reading) == ""


@pytest.mark.parametrize(
    ("question", "model", "language", "order", "limit"),
    [
        ("which vehicle was inspected most recently?", "vehicle", "en", "inspected_on desc", 1),
        ("who was examined most recently?", "firefighter", "en", "examined_on desc", 1),
        ("the longest-serving captain", "firefighter", "en", "joined_on asc", 1),
        ("the most expensive incidents", "callout", "en", "damage desc", None),
        ("die drei ältesten Fahrzeuge", "vehicle", "de", "built asc", 3),
        ("the slowest response", "callout", "en", "response desc", None),
        ("the most recently examined firefighters", "firefighter", "en", "examined_on desc", None),
        ("the heaviest ladder", "vehicle", "en", "weight desc", 1),
    ],
)
def test_an_order_is_by_the_field_that_the_words_beside_it_speak_of(
    question: str, model: str, language: str, order: str, limit: int | None
) -> None:
    reading = read(question, model, language=language)
    assert [f"{one.field} {one.order}" for one in reading.dsl.orders] == [order]
    assert reading.dsl.limit == limit


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("vehicles built before the year 2005", "en"),
        ("Fahrzeuge gebaut vor dem Jahr 2005", "de"),
        ("רכב נבנה לפני שנת 2005", "he"),
    ],
)
def test_before_the_year_is_before_it(question: str, language: str) -> None:
    reading = read(question, "vehicle", language=language)
    assert (conditions(reading), reading.not_understood) == ("built < 2005", ())


def test_since_before_a_year_is_before_it() -> None:
    reading = read("firefighters who have been with us since before 2005", "firefighter")
    assert (conditions(reading), reading.not_understood) == ("joined_on < 2005-01-01", ())
