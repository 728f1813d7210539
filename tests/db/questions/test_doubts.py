"""Questions that were once answered wrongly without a word, over a garage and its customers: each
is now understood, or says what was not."""

from __future__ import annotations

from typing import Any

import pytest

from groundhook.core.types.model_spec import ModelSpec
from groundhook.handlers.db.model.schema import Schemas
from groundhook.handlers.db.question.lexicons import Lexicons, Offer
from groundhook.handlers.db.question.reading import Reading, read_question
from groundhook.handlers.db.question.vocabulary import vocabulary
from tests.db.questions.models import NOW, column, conditions, date, number

MODELS: dict[str, dict[str, Any]] = {
    "job": {
        "columns": [
            column("starts_at", "datetime", "Starts"),
            column("status", "enum", "Status", option=["open", "closed"]),
            column("kind", label="Kind of work"),
            number("minutes", "Minutes", "lasts"),
            number("parts", "Parts", "cost of parts, cost"),
            number("labour", "Labour", "cost of labour, cost"),
            number("places", "Places", "tickets"),
            number("rating", "Rating"),
            date("booked_on", "Booked"),
        ],
    },
    "customer": {
        "comment": "Halter",
        "relations": {
            "jobs": {"type": "hasMany", "model": "job", "key": "customer_id", "foreign": "id"}
        },
        "columns": [
            column("name", label="Name"),
            column("email", label="Email", nullable=True),
            column("city", label="City", comment="Stadt"),
            column("joined_on", "date", "Joined"),
            column("born_on", "date", "Born", comment="birthday, date of birth"),
            number("leave_days", "Holiday days"),
        ],
    },
    "order": {
        "relations": {
            "customer": {
                "type": "hasOne",
                "model": "customer",
                "key": "id",
                "foreign": "customer_id",
            }
        },
        "columns": [
            column("customer_id", "bigInteger"),
            number("total", "Total"),
            date("ordered_on", "Ordered"),
        ],
    },
    "bottle": {
        "columns": [
            column("grape", label="Grape"),
            number("calories", "Calories"),
            number("glasses", "Glasses"),
            number("vintage", "Year", type="float"),
            date("sold_on", "Sold"),
        ],
    },
}
SCHEMAS = Schemas(
    {
        id: ModelSpec.model_validate(
            {
                "id": id,
                "table": {"name": id, "comment": raw.get("comment", "")},
                "relations": raw.get("relations", {}),
                "columns": [column("id", "ID"), *raw["columns"]],
            }
        )
        for id, raw in MODELS.items()
    }
)
JOB = Offer(SCHEMAS["job"], {})
OFFERS = {
    "job": JOB,
    "customer": Offer(SCHEMAS["customer"], {"name": ["Anna Berg"]}, {"jobs": JOB}),
    "order": Offer(SCHEMAS["order"], {}, {"customer": Offer(SCHEMAS["customer"], {})}),
    "bottle": Offer(SCHEMAS["bottle"], {}),
}
LEXICONS = Lexicons()


def read(question: str, model: str, language: str = "en") -> Reading:
    (reading,) = read_question(question, [OFFERS[model]], vocabulary(language), NOW, LEXICONS)
    return reading


@pytest.mark.parametrize(
    ("question", "model", "found"),
    [
        ("customers whose email is missing", "customer", "email null"),
        ("customers whose email is not known", "customer", "email null"),
        ("customers with jobs", "customer", "jobs not null"),
        ("customers without jobs", "customer", "jobs null"),
        ("how many customers have jobs?", "customer", "jobs not null"),
        ("customers whose name starts with A", "customer", "name like A%"),
        ("customers whose name begins with Ma", "customer", "name like Ma%"),
        ('bottles whose grape contains "50%"', "bottle", "grape match ['50%']"),
        ('bottles whose grape does not contain "50% ou"', "bottle", "grape match none ['50% ou']"),
        ("bottles from the nineties", "bottle", "vintage >= 1990 and vintage < 2000"),
        ("jobs that last 60 minutes", "job", "minutes = 60"),
        ("jobs whose parts is over 100", "job", "parts > 100"),
    ],
)
def test_a_condition_is_understood(question: str, model: str, found: str) -> None:
    reading = read(question, model)
    assert (conditions(reading), reading.not_understood) == (found, ())


def test_what_lasts_is_not_last_week() -> None:
    reading = read("longest job last week", "job")
    assert (
        conditions(reading)
        == "starts_at >= 2026-11-02 00:00:00 and starts_at < 2026-11-09 00:00:00"
    )
    assert [one.field for one in reading.dsl.orders] == ["minutes"]


def test_how_many_were_sold_is_about_the_day_of_the_sale() -> None:
    reading = read("how many glasses did we sell this year?", "bottle")
    assert conditions(reading) == "sold_on >= 2026-01-01 and sold_on < 2027-01-01"
    assert [one.called for one in reading.dsl.aggregates] == ["sum_glasses"]


@pytest.mark.parametrize(
    ("question", "model", "language", "groups"),
    [
        ("grapes by number of bottles", "bottle", "en", ("grape",)),
        ("wie viele Halter hat jede Stadt?", "customer", "de", ("city",)),
        ("cities by number of customers", "customer", "en", ("city",)),
    ],
)
def test_records_are_counted_for_each_of_what_is_named(
    question: str, model: str, language: str, groups: tuple[str, ...]
) -> None:
    assert read(question, model, language).dsl.groups == groups


@pytest.mark.parametrize(
    ("question", "model", "left"),
    [
        ("most booked kind of work", "job", "most"),
        ("rating per kind of work", "job", "per"),
        ("top 3 customers by number of jobs", "customer", "jobs"),
        ("did Anna Berg 4 customer", "customer", "4"),
        ("jobs with an average rating above 4", "job", "average"),
        ("jobs between 9 and 11 on Monday", "job", "9"),
        ("customers whose birthday is today", "customer", "today"),
        ("customers with a birthday this month", "customer", "this"),
        ("who was on holiday last week?", "customer", "holiday"),
        ("bottles with fewer than 400 calories per glass", "bottle", "glass"),
        ("how much money did tickets make?", "job", "money"),
    ],
)
def test_what_no_condition_can_say_is_reported(question: str, model: str, left: str) -> None:
    assert left in " ".join(read(question, model).not_understood)


def test_how_much_a_ticket_costs_is_no_sum_of_tickets() -> None:
    assert read("how much does a ticket cost?", "job").dsl.aggregates == ()


@pytest.mark.parametrize("question", ["jobs that cost more than 500", "jobs over 500 euros"])
def test_of_two_fields_that_fit_alike_a_warning_names_the_other(question: str) -> None:
    (note,) = read(question, "job").notes
    assert "'parts'; it may mean 'labour' as well" in note


def test_a_warning_names_the_other_field_of_an_order() -> None:
    (note,) = read("the most expensive job", "job").notes
    assert note == "'most expensive' was read as 'parts'; it may mean 'labour' as well"


def test_a_warning_says_that_the_time_of_a_status_is_that_of_the_record() -> None:
    assert read("closed jobs this week", "job").notes == ()
    (note,) = read("jobs closed this week", "job").notes
    assert note == "when records became 'closed' is not known; the time was read as 'starts_at'"


def test_who_has_been_with_us_the_longest_is_one_person() -> None:
    reading = read("who has been with us the longest?", "customer")
    assert ([one.field for one in reading.dsl.orders], reading.dsl.limit) == (["joined_on"], 1)


def test_what_is_the_total_is_a_sum() -> None:
    (figure,) = read("what is the total of September?", "order").dsl.aggregates
    assert figure.called == "sum_total"


def test_related_records_are_counted_once() -> None:
    (figure,) = read("how many customers ordered in September?", "order").dsl.aggregates
    assert (figure.field, figure.distinct) == ("customer.id", True)


def test_what_the_text_of_a_related_record_does_not_contain_is_reported() -> None:
    reading = read("orders of customers whose name does not contain Ann", "order")
    assert (reading.dsl.wheres, reading.not_understood[-1]) == ((), "Ann")
