"""Questions over vehicles, drivers and trips: what is omitted, months of a year that was named,
days of a month, values that are also words of the language, options that are numbers."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from groundhook.core.types.model_spec import ModelSpec
from groundhook.core.types.query_language import Where
from groundhook.handlers.db.model.schema import Schemas
from groundhook.handlers.db.question.languages import words_for
from groundhook.handlers.db.question.lexicons import Offer
from groundhook.handlers.db.question.reading import Reading, read_question

NOW = datetime(2026, 3, 15, 12, tzinfo=UTC)
VEHICLE = {
    "id": "vehicle",
    "name": "Vehicle",
    "table": {"name": "vehicle", "comment": "car"},
    "columns": [
        {"name": "id", "type": "ID"},
        {"name": "name", "type": "string", "label": "Name"},
        {"name": "make", "type": "string", "label": "Make"},
        {"name": "depot", "type": "string", "label": "Depot"},
        {"name": "grade", "type": "enum", "option": ["1", "2", "3"], "label": "Grade"},
        {"name": "seats", "type": "integer", "label": "Seats"},
        {"name": "mileage", "type": "integer", "label": "Mileage"},
        {"name": "daily_rate", "type": "decimal", "label": "Daily rate"},
        {"name": "turnover", "type": "decimal", "label": "Revenue", "comment": "turnover"},
        {"name": "bought_on", "type": "date", "label": "Bought"},
        {"name": "serviced_on", "type": "date", "label": "Serviced"},
    ],
}
SAMPLES = {
    "make": ("Toyota", "Volvo"),
    "depot": ("Paris", "Rome", "Nice"),
    "name": ("Old Faithful",),
}


def read(question: str) -> Reading:
    schemas = Schemas({"vehicle": ModelSpec.model_validate(VEHICLE)})
    (reading,) = read_question(
        question, [Offer(schemas["vehicle"], SAMPLES)], words_for("en", question), NOW
    )
    return reading


def text_of(where: Where) -> str:
    if where.any_of is not None:
        return f"({' or '.join(map(text_of, where.any_of))})"
    if where.all_of is not None:
        return " and ".join(map(text_of, where.all_of))
    return f"{where.field} {where.op} {where.value}"


def span(start: str, end: str, field: str = "bought_on") -> str:
    return f"{field} >= {start} and {field} < {end}"


YEAR = span("2025-01-01", "2026-01-01")


@pytest.mark.parametrize(
    ("question", "conditions"),
    [
        # what is omitted
        ("all cars but Toyota", "make != Toyota"),
        ("cars of all makes but Volvo", "make != Volvo"),
        ("how many cars are there besides Toyota", "make != Toyota"),
        ("cars aside from Toyota", "make != Toyota"),
        ("all cars but only Toyota", "make = Toyota"),
        # months of a year that was named
        ("cars bought in March of 2025", span("2025-03-01", "2025-04-01")),
        ("cars bought in March in 2025", span("2025-03-01", "2025-04-01")),
        ("cars of 2025 bought in March", f"{YEAR} and {span('2025-03-01', '2025-04-01')}"),
        (
            "cars bought in 2024 but not in March",
            (
                f"{span('2024-01-01', '2025-01-01')} and (bought_on < 2024-03-01 or bought_on >="
                " 2024-04-01)"
            ),
        ),
        (
            "cars bought in 2025, serviced in March",
            f"{YEAR} and {span('2026-03-01', '2026-04-01', 'serviced_on')}",
        ),
        (
            "cars bought in January and February",
            f"({span('2026-01-01', '2026-02-01')} or {span('2026-02-01', '2026-03-01')})",
        ),
        (
            "cars bought in January but bought in February",
            f"{span('2026-01-01', '2026-02-01')} and {span('2026-02-01', '2026-03-01')}",
        ),
        # days of a month, and how long ago
        ("cars bought between 10 and 20 February", span("2026-02-10", "2026-02-21")),
        ("cars bought from the 10th to the 20th of March 2025", span("2025-03-10", "2025-03-21")),
        ("cars with between 2 and 5 seats", "seats between [2, 5]"),
        ("cars serviced over a year ago", "serviced_on < 2025-03-15"),
        ("cars serviced a year ago", span("2025-03-15", "2025-03-16", "serviced_on")),
        # a comparison behind "or" and "and"
        (
            "cars with a daily rate less than 50 or more than 100",
            "(daily_rate < 50 or daily_rate > 100)",
        ),
        ("cars with more than 4 seats and more than 9000 mileage", "seats > 4 and mileage > 9000"),
        ("cars with 4 seats or more", "seats >= 4"),
        # values that are words, names that are known, options that are numbers
        ("cars in Nice", "depot = Nice"),
        ("cars in Rome or Nice", "depot in ['Rome', 'Nice']"),
        ("cars called Old Faithful", "name = Old Faithful"),
        ("grade 1 cars", "grade = 1"),
        ("cars of grade 1 or 2", "grade in ['1', '2']"),
        ("cars that are not grade 1", "grade != 1"),
    ],
)
def test_a_question_becomes_the_conditions_that_it_says(question: str, conditions: str) -> None:
    reading = read(question)
    assert " and ".join(map(text_of, reading.dsl.wheres)) == conditions
    assert not reading.not_understood


@pytest.mark.parametrize("question", ["top 3 cars by mileage", "top 3 vehicles by daily rate"])
def test_the_top_ones_by_a_number_are_those_with_the_highest(question: str) -> None:
    assert read(question).dsl.orders[0].order == "desc"
    assert read(question.replace("top 3 ", "")).dsl.orders[0].order == "asc"


@pytest.mark.parametrize(
    ("question", "groups"),
    [
        ("revenue per depot", ("depot",)),
        ("revenue by depot in 2025", ("depot",)),
        ("what was the revenue in 2025", ()),
    ],
)
def test_revenue_is_summed_where_a_field_is_called_so(
    question: str, groups: tuple[str, ...]
) -> None:
    dsl = read(question).dsl
    assert [(one.function, one.field) for one in dsl.aggregates] == [("sum", "turnover")]
    assert dsl.groups == groups
    assert not read("cars with revenue over 500").dsl.aggregates


def test_a_better_grade_is_not_guessed() -> None:
    reading = read("cars of grade 2 or better")
    assert set(reading.not_understood) == {"2", "or", "better"}
    assert not [where for where in reading.dsl.wheres if where.field in ("daily_rate", "grade")]
