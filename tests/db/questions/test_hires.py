"""Names as people say them: rates, figures and groups over cars, drivers and hires."""

from __future__ import annotations

from typing import Any

import pytest

from groundhook.core.types.model_spec import ModelSpec
from groundhook.handlers.db.question.languages import AUTO, words_for
from groundhook.handlers.db.question.reading import read_question
from groundhook.handlers.db.question.vocabulary import vocabulary
from tests.db.conftest import NOW
from tests.db.questions.shop import LEXICONS, offers_of

HIRE: dict[str, dict[str, Any]] = {
    "car": {
        "name": "Car",
        "table": {"name": "car"},
        "columns": [
            {"name": "id", "type": "ID"},
            {"name": "make", "type": "string", "label": "Make"},
            {"name": "value", "type": "decimal", "label": "Price new"},
            {"name": "daily_rate", "type": "decimal", "label": "Daily rate"},
            {"name": "year", "type": "integer", "label": "Year"},
            {"name": "insurance", "type": "enum", "option": ["none", "full"]},
            {"name": "next_check", "type": "date", "label": "Next inspection"},
            {"name": "branch", "type": "string", "label": "Branch"},
        ],
        "values": [{"make": "Tesla", "branch": "North"}],
    },
    "driver": {
        "name": "Driver",
        "table": {"name": "driver"},
        "relations": {
            "hires": {"type": "hasMany", "model": "hire", "key": "driver_id", "foreign": "id"}
        },
        "columns": [
            {"name": "id", "type": "ID"},
            {"name": "email", "type": "string", "label": "Email", "nullable": True},
            {"name": "born_on", "type": "date", "label": "Born"},
            {"name": "jobs", "type": "integer", "label": "Number of hires"},
            {
                "name": "hires_value",
                "type": "integer",
                "label": "Value of hires",
                "comment": "euros",
            },
        ],
        "values": [],
    },
    "hire": {
        "name": "Hire",
        "table": {"name": "hire"},
        "relations": {
            "driver": {"type": "hasOne", "model": "driver", "key": "id", "foreign": "driver_id"}
        },
        "columns": [
            {"name": "id", "type": "ID"},
            {"name": "driver_id", "type": "bigInteger"},
            {"name": "total", "type": "decimal", "label": "Total", "comment": "Gesamtbetrag"},
            {"name": "began_on", "type": "date", "label": "Began"},
        ],
        "values": [],
    },
}
HIRED = offers_of(
    {name: ModelSpec.model_validate({**fields, "id": name}) for name, fields in HIRE.items()}
)


@pytest.mark.parametrize(
    ("question", "wheres"),
    [
        ("cars under €40 a day", ["daily_rate < 40"]),
        ("cars under €40", ["value < 40"]),
        ("cars between 20 and 40 euros per day", ["daily_rate between [20, 40]"]),
        ("hires of drivers over 60", ["driver.born_on <= 1965-11-12"]),
        ("cars from 2024 or newer", ["year >= 2024"]),
        ("cars from 2019 or older", ["year < 2020"]),
        (
            "cars whose next inspection is due within the next 14 days",
            ["next_check < 2026-11-27", "next_check >= 2026-11-12"],
        ),
        ("cars whose next inspection is overdue", ["next_check < 2026-11-12"]),
        ("cars with inspection before March 2027", ["next_check < 2027-03-01"]),
        ("cars without insurance", ["insurance = none"]),
        ("cars with insurance", ["insurance != none"]),
        ("Teslas", ["make = Tesla"]),
        ("drivers without an email address", ["email null"]),
        ("drivers who never hired", ["hires null"]),
    ],
)
def test_names_are_understood_as_people_say_them(question: str, wheres: list[str]) -> None:
    (reading,) = read_question(question, list(HIRED.values()), vocabulary("en"), NOW, LEXICONS)
    conditions = [
        f"{where.field} {where.op} {where.value}".removesuffix(" None")
        for where in reading.dsl.wheres
    ]
    assert (sorted(conditions), reading.not_understood) == (wheres, ())


@pytest.mark.parametrize(
    "question",
    ["cars not hired last month", "cars last month", "cars between March and May 2026"],
)
def test_a_past_time_is_never_about_a_date_to_come(question: str) -> None:
    offers = [HIRED["car"]]
    (reading,) = read_question(question, offers, vocabulary("en"), NOW, LEXICONS)
    assert "next_check" not in [where.field for where in reading.dsl.wheres]
    assert question.split()[-1] in reading.not_understood


@pytest.mark.parametrize(
    ("question", "figures", "groups"),
    [
        ("total revenue of hires in October", ["sum_total"], ()),
        ("revenue last month", ["sum_total"], ()),
        ("how many cars are there at each branch?", ["count"], ("branch",)),
        ("how many cars does every branch have?", ["count"], ("branch",)),
        ("Umsatz im Oktober", ["sum_total"], ()),
        ("top 3 branches by number of cars", ["count"], ("branch",)),
        ("top 2 makes by average daily rate", ["avg_daily_rate"], ("make",)),
    ],
)
def test_figures_are_understood_as_people_say_them(
    question: str, figures: list[str], groups: tuple[str, ...]
) -> None:
    (reading,) = read_question(
        question, list(HIRED.values()), words_for(AUTO, question), NOW, LEXICONS
    )
    assert (
        [one.called for one in reading.dsl.aggregates],
        reading.dsl.groups,
        reading.not_understood,
    ) == (figures, groups, ())


def test_a_rate_that_no_price_is_about_is_reported() -> None:
    (reading,) = read_question(
        "cars under €40 a week", list(HIRED.values()), vocabulary("en"), NOW, LEXICONS
    )
    assert reading.not_understood == ("week",)


def test_a_number_of_related_records_is_the_field_that_has_it_and_this_is_reported() -> None:
    (reading,) = read_question(
        "drivers with more than 3 hires", list(HIRED.values()), vocabulary("en"), NOW, LEXICONS
    )
    assert [where.field for where in reading.dsl.wheres] == ["jobs"]
    assert (reading.not_understood, "'jobs'" in "".join(reading.notes)) == ((), True)


def test_a_number_of_related_records_that_no_field_has_is_reported() -> None:
    (reading,) = read_question(
        "hires with more than 3 drivers", list(HIRED.values()), vocabulary("en"), NOW, LEXICONS
    )
    assert (reading.dsl.wheres, reading.not_understood) == ((), ("more", "than", "3"))
