"""Questions over a zoo: one record of a class, places that records are called like, years before 1900,
parts of a relative year, figures of an unknown verb."""

from __future__ import annotations

from typing import Any

import pytest

from groundhook.core.types.model_spec import ModelSpec
from groundhook.handlers.db.model.schema import Schemas
from groundhook.handlers.db.question.languages import words_for
from groundhook.handlers.db.question.lexicons import Offer
from groundhook.handlers.db.question.reading import Reading, read_question
from tests.db.questions.models import LEXICONS, NOW, choice, column, conditions, date, number

MODELS: dict[str, tuple[list[dict[str, Any]], dict[str, str]]] = {
    "animal": (
        [
            column("name"),
            choice("kind", "Class", "mammal", "reptile", "bird"),
            choice("shop", "Section", "Cages", "Ponds", "Audio"),
            number("weight", "Weight", "kg"),
            number("price", "Price"),
            column("region_id", "bigInteger"),
        ],
        {"region": "hasOne"},
    ),
    "region": (
        [column("name"), number("protected", "Year protected"), column("rulers", label="Rulers")],
        {},
    ),
    "visit": (
        [
            choice("group", "Group", "schools", "families"),
            date("visited_on", "Visited"),
            number("total", "Total"),
        ],
        {},
    ),
}
SAMPLES: dict[str, dict[str, tuple[str, ...]]] = {
    "animal": {"name": ("Sahara", "Zazu")},
    "region": {"name": ("Sahara", "Congo")},
    "visit": {},
}
SPECS = {
    name: ModelSpec.model_validate(
        {
            "id": name,
            "table": {"name": name},
            "columns": [column("id", "ID"), *columns],
            "relations": {
                to: {"type": type, "model": to, "key": "id", "foreign": f"{to}_id"}
                for to, type in relations.items()
            },
        }
    )
    for name, (columns, relations) in MODELS.items()
}
SCHEMAS = Schemas(SPECS)


def read(question: str, model: str) -> Reading:
    near = {to: Offer(SCHEMAS[to], SAMPLES[to]) for to in SCHEMAS[model].relations}
    offer = Offer(SCHEMAS[model], SAMPLES[model], near)
    (reading,) = read_question(question, [offer], words_for("en", question), NOW, LEXICONS)
    return reading


@pytest.mark.parametrize(
    ("question", "limit"),
    [
        ("heaviest reptile", 1),
        ("the heaviest mammal", 1),
        ("which reptile is the heaviest?", 1),
        ("which animal is the cheapest?", 1),
        ("what bird has the highest weight?", 1),
        ("which cage is the cheapest?", 1),
        ("heaviest reptiles", None),
        ("which reptiles are the heaviest?", None),
        ("cheapest audio", None),
    ],
)
def test_a_singular_asks_for_one_record(question: str, limit: int | None) -> None:
    reading = read(question, "animal")
    assert (len(reading.dsl.orders), reading.dsl.limit) == (1, limit)
    assert reading.not_understood == ()


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("animals in the Sahara", "region.name = Sahara"),
        ("animals outside the Sahara", "region.name != Sahara"),
        ("animals called Sahara", "name = Sahara"),
        ("the animal Sahara", "name = Sahara"),
    ],
)
def test_behind_a_word_for_places_the_place_is_meant(question: str, found: str) -> None:
    reading = read(question, "animal")
    assert conditions(reading) == found
    (note,) = reading.notes
    assert "name" in note
    assert "region.name" in note


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("regions protected after 1850", "protected >= 1851"),
        ("regions protected before 1850", "protected < 1850"),
        ("regions protected since 1850", "protected >= 1850"),
        ("regions protected in 1845", "protected >= 1845 and protected < 1846"),
        ("regions protected between 1800 and 1850", "protected >= 1800 and protected < 1851"),
    ],
)
def test_a_field_with_years_has_those_before_1900_too(question: str, found: str) -> None:
    reading = read(question, "region")
    assert (conditions(reading), reading.not_understood) == (found, ())


@pytest.mark.parametrize(
    ("time", "first", "end"),
    [
        ("in the first quarter of this year", "2026-01-01", "2026-04-01"),
        ("in the third quarter of last year", "2025-07-01", "2025-10-01"),
        ("in March of last year", "2025-03-01", "2025-04-01"),
        ("in March last year", "2025-03-01", "2025-04-01"),
        ("on 5 March last year", "2025-03-05", "2025-03-06"),
    ],
)
def test_a_part_of_a_relative_year_is_one_time(time: str, first: str, end: str) -> None:
    reading = read(f"visits {time}", "visit")
    assert conditions(reading) == f"visited_on >= {first} and visited_on < {end}"


def test_a_time_behind_an_unknown_verb_in_the_present_belongs_to_the_figure() -> None:
    reading = read("how much revenue did schools bring this year", "visit")
    assert conditions(reading) == (
        "group = schools and visited_on >= 2026-01-01 and visited_on < 2027-01-01"
    )
    assert [one.called for one in reading.dsl.aggregates] == ["sum_total"]
