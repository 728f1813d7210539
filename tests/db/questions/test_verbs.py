"""Verbs of questions, over employees and memberships: what a verb says of the words after it."""

from __future__ import annotations

from typing import Any

import pytest

from groundhook.core.types.model_spec import ModelSpec
from groundhook.handlers.db.model.schema import Schemas
from groundhook.handlers.db.question.lexicons import Lexicons, Offer
from groundhook.handlers.db.question.reading import read_question
from groundhook.handlers.db.question.vocabulary import vocabulary
from tests.db.questions.models import NOW, column, conditions, date, number

LEXICONS = Lexicons()
MODELS: dict[str, dict[str, Any]] = {
    "employee": {
        "columns": [
            column("name", label="Name"),
            column("manager", label="Manager", comment="reports to"),
            number("salary", "Salary", "earns"),
            date("joined", "Joined"),
            date("born", "Birthday"),
            column("office", label="Office"),
            column("remote", "boolean", "Works from home"),
        ],
    },
    "membership": {
        "columns": [
            column("city", label="City"),
            date("begins_on", "Starts"),
            date("paid_on", "Paid"),
            number("renewals", "Renewals"),
            number("fines", "Fines"),
        ],
    },
    "book": {
        "columns": [column("title", label="Title"), date("published", "Published")],
    },
}
SCHEMAS = Schemas(
    {
        id: ModelSpec.model_validate(
            {"id": id, "table": {"name": id}, "columns": [column("id", "ID"), *raw["columns"]]}
        )
        for id, raw in MODELS.items()
    }
)
SAMPLES = {"employee": {"name": ["Anna Weber", "Otto Brandt"], "manager": ["Otto Brandt"]}}
OFFERS = [Offer(SCHEMAS[name], SAMPLES.get(name, {})) for name in MODELS]


@pytest.mark.parametrize(
    ("question", "found"),
    [
        (
            "memberships starting in March 2026",
            "begins_on >= 2026-03-01 and begins_on < 2026-04-01",
        ),
        ("memberships starting next month", "begins_on >= 2026-12-01 and begins_on < 2027-01-01"),
        ("memberships starting from March 2026", "begins_on >= 2026-03-01"),
        ("memberships renewed by more than 2", "renewals > 2"),
        ("memberships whose renewals exceed 5", "renewals > 5"),
        ("memberships that need more than 2 renewals", "renewals > 2"),
        ("employees reporting to Otto", "manager like Otto"),
        ("memberships paid starting 2025", "paid_on >= 2025-01-01"),
    ],
)
def test_a_verb_names_the_field_of_the_words_after_it(question: str, found: str) -> None:
    (reading,) = read_question(question, OFFERS, vocabulary("en"), NOW, LEXICONS)
    assert (conditions(reading), reading.not_understood) == (found, ())


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("employees who earn more than twice the average salary", ("more", "than", "twice")),
        ("memberships with a final letter", ("final", "letter")),
    ],
)
def test_a_word_that_only_resembles_one_of_a_field_is_no_condition(
    question: str, words: tuple[str, ...]
) -> None:
    (reading,) = read_question(question, OFFERS, vocabulary("en"), NOW, LEXICONS)
    assert [one.field for one in reading.dsl.wheres] == ["*"]
    assert reading.not_understood == words


def test_a_name_of_no_manager_is_reported_and_not_taken_for_an_employee() -> None:
    (reading,) = read_question(
        "employees reporting to Anna", OFFERS, vocabulary("en"), NOW, LEXICONS
    )
    assert reading.not_understood == ("Anna",)


@pytest.mark.parametrize(
    ("question", "order"),
    [
        ("who earns the most?", ("salary", "desc")),
        ("which employee earns the least?", ("salary", "asc")),
        ("which employee joined first?", ("joined", "asc")),
    ],
)
def test_a_verb_and_the_most_the_least_or_first_ask_for_one_record(
    question: str, order: tuple[str, str]
) -> None:
    (reading,) = read_question(question, OFFERS, vocabulary("en"), NOW, LEXICONS)
    assert [(one.field, one.order) for one in reading.dsl.orders] == [order]
    assert (reading.dsl.limit, reading.not_understood) == (1, ())


def test_a_date_is_not_grouped_by_year() -> None:
    question = "how many books were published each year"
    (reading,) = read_question(question, OFFERS, vocabulary("en"), NOW, LEXICONS)
    assert reading.dsl.groups == ()
    assert "year" in " ".join(reading.not_understood)


@pytest.mark.parametrize("question", ["employees whose birthday is in May", "books of a weekend"])
def test_a_time_that_comes_again_and_again_is_reported(question: str) -> None:
    (reading,) = read_question(question, OFFERS, vocabulary("en"), NOW, LEXICONS)
    assert reading.not_understood
    assert [one.field for one in reading.dsl.wheres if one.field != "*"] == []


@pytest.mark.parametrize("question", ["highest salary per office", "the highest salary by office"])
def test_the_highest_number_of_each_group_is_a_figure(question: str) -> None:
    (reading,) = read_question(question, OFFERS, vocabulary("en"), NOW, LEXICONS)
    (figure,) = reading.dsl.aggregates
    assert (figure.function, figure.field, reading.dsl.groups) == ("max", "salary", ("office",))
    assert reading.not_understood == ()


@pytest.mark.parametrize(
    "question",
    [
        "who has the highest salary in each office",
        "names of employees with highest salary per office",
        "highest salary per employee",
        "highest salary per office and manager",
        "highest salary and lowest salary per office",
        "which manager has the highest salary per office",
    ],
)
def test_the_highest_of_each_group_is_no_figure_beside_other_words(question: str) -> None:
    (reading,) = read_question(question, OFFERS, vocabulary("en"), NOW, LEXICONS)
    assert (reading.dsl.aggregates, reading.dsl.groups) == ((), ())
    assert reading.not_understood


def test_a_value_of_the_group_is_a_condition() -> None:
    question = "highest salary by manager Otto"
    (reading,) = read_question(question, OFFERS, vocabulary("en"), NOW, LEXICONS)
    assert (conditions(reading), reading.dsl.groups) == ("manager like Otto", ())
