"""Two fields with the same values, told apart by prepositions; durations; dates that lie ahead."""

from __future__ import annotations

from typing import Any

from groundhook.core.types.model_spec import ModelSpec
from groundhook.handlers.db.question.reading import read_question
from groundhook.handlers.db.question.vocabulary import vocabulary
from tests.db.conftest import NOW
from tests.db.questions.shop import LEXICONS, offers_of, readings

FLIGHT = ModelSpec.model_validate(
    {
        "id": "flight",
        "name": "Flight",
        "table": {"name": "flight"},
        "columns": [
            {"name": "id", "type": "ID"},
            {"name": "origin", "type": "string"},
            {"name": "destination", "type": "string"},
            {"name": "minutes", "type": "integer", "label": "Duration"},
            {"name": "departs_at", "type": "datetime", "label": "Departure"},
        ],
        "values": [
            {"origin": "Oslo", "destination": "Rome"},
            {"origin": "Rome", "destination": "Oslo"},
        ],
    }
)


def flights(question: str) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """The conditions of a question about flights, and what was read otherwise."""
    (reading,) = read_question(
        question, [offers_of({"flight": FLIGHT})["flight"]], vocabulary("en"), NOW, LEXICONS
    )
    return [where.wire() for where in reading.dsl.wheres], reading.notes


def test_the_word_before_a_value_says_which_of_two_fields_has_it() -> None:
    wheres, notes = flights("flights from Oslo to Rome")
    assert wheres == [
        {"field": "origin", "op": "=", "value": "Oslo"},
        {"field": "destination", "op": "=", "value": "Rome"},
    ]
    assert notes == ()


def test_a_value_of_two_unnamed_fields_is_searched_in_both_with_a_note() -> None:
    wheres, notes = flights("flights Oslo")
    either = [
        {"field": "destination", "op": "=", "value": "Oslo"},
        {"field": "origin", "op": "=", "value": "Oslo"},
    ]
    assert wheres == [{"or": either}]
    assert notes == ("'Oslo' was looked for in destination and origin",)


def test_a_length_in_another_unit_than_the_field_is_converted() -> None:
    assert flights("flights longer than 2 hours")[0] == [
        {"field": "minutes", "op": ">", "value": 120}
    ]


def test_a_month_without_a_year_is_the_nearest_where_dates_lie_ahead() -> None:
    assert flights("flights in December")[0][0] == {
        "field": "departs_at",
        "op": ">=",
        "value": "2026-12-01 00:00:00",
    }
    (orders,) = readings("orders in December")
    assert orders.dsl.wheres[0].value == "2025-12-01 00:00:00"
