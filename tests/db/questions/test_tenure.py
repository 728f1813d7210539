"""How long something has lasted, as questions say it: with us, here, had, for so many years."""

from __future__ import annotations

import pytest

from groundhook.core.types.model_spec import ModelSpec
from groundhook.handlers.db.model.schema import Schemas
from groundhook.handlers.db.question.languages import words_for
from groundhook.handlers.db.question.lexicons import Offer
from groundhook.handlers.db.question.reading import Reading, read_question
from tests.db.questions.models import LEXICONS, NOW, column, conditions, date, number

COLUMNS = {
    "member": [column("name"), date("born_on", "Date of birth"), date("joined_on", "Joined")],
    "horse": [column("name"), date("born_on", "Born"), date("came_on", "Arrived")],
    "nurse": [
        column("name"),
        date("hired_on", "Hired"),
        number("experience", "Years of experience"),
    ],
    "guest": [
        column("name"),
        date("born_on", "Date of birth"),
        number("salary", "Salary per year"),
    ],
    "trip": [column("name"), date("starts_on", "Starts"), number("days", "Days")],
    "patient": [column("name"), date("geboren", "Geboren"), date("seit", "Bei uns seit")],
}
SCHEMAS = Schemas(
    {
        name: ModelSpec.model_validate(
            {"id": name, "table": {"name": name}, "columns": [column("id", "ID"), *columns]}
        )
        for name, columns in COLUMNS.items()
    }
)


def read(question: str, model: str, language: str = "en") -> Reading:
    words = words_for(language, question)
    (reading,) = read_question(question, [Offer(SCHEMAS[model], {})], words, NOW, LEXICONS)
    return reading


@pytest.mark.parametrize(
    ("model", "question", "found"),
    [
        (
            "member",
            "members who have been with us for more than two years",
            "joined_on < 2024-11-12",
        ),
        ("member", "members for at least 5 years", "joined_on < 2021-11-12"),
        ("member", "who has been here for less than 6 months?", "joined_on >= 2026-05-12"),
        ("horse", "horses we have had for more than five years", "came_on < 2021-11-12"),
        ("horse", "horses here for less than 2 years", "came_on >= 2024-11-12"),
        ("member", "members who are more than two years old", "born_on <= 2023-11-12"),
        ("member", "members older than 60 years", "born_on <= 1965-11-12"),
        ("trip", "trips for more than 3 days", "days > 3"),
        ("trip", "trips that last for over a week", "days > 7"),
        ("nurse", "nurses with more than 5 years of experience", "experience > 5"),
    ],
)
def test_a_length_of_time_is_about_what_lasted(model: str, question: str, found: str) -> None:
    reading = read(question, model)
    assert (conditions(reading), reading.not_understood) == (found, ())


def test_a_length_of_time_is_about_what_lasted_in_german() -> None:
    reading = read("Patient, seit mehr als zwei Jahren bei uns", "patient", "de")
    assert conditions(reading) == "seit < 2024-11-12"


@pytest.mark.parametrize(
    ("model", "question"),
    [
        ("guest", "guests who have been with us for more than two years"),  # no date is known
        ("guest", "guests with more than two years"),
        ("nurse", "nurses who have been here for more than two years"),  # hired, or experience
    ],
)
def test_a_length_of_time_that_no_field_is_known_for_is_reported(model: str, question: str) -> None:
    reading = read(question, model)
    assert conditions(reading) == ""
    assert "years" in reading.not_understood
