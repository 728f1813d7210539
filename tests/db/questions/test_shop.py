"""Questions over the shop and the queries they become; and questions that must not become any."""

from __future__ import annotations

import pytest

from groundhook.handlers.db.query.dsl import EVERY_TEXT
from tests.db.questions.shop import OFFERS, read_as, readings
from tests.db.questions.shop_questions import BUILT, ORDERED, PLACED, TRAPS


@pytest.mark.parametrize("question", PLACED)
def test_every_word_of_the_question_becomes_its_condition(question: str) -> None:
    model, wheres = PLACED[question]
    assert read_as(question) == (model, sorted(wheres), [])


@pytest.mark.parametrize("question", ORDERED)
def test_sort_orders_and_limits_are_read(question: str) -> None:
    (reading,) = readings(question)
    assert (
        [f"{order.field} {order.order}" for order in reading.dsl.orders],
        reading.dsl.limit,
    ) == ORDERED[question]
    assert reading.not_understood == ()


@pytest.mark.parametrize("question", BUILT)
def test_related_requests_are_sent_together(question: str) -> None:
    (reading,) = readings(question)
    dsl = reading.dsl.wire()
    assert {key: value for key, value in dsl.items() if key != "orders"} == BUILT[question]
    assert reading.not_understood == ()


def test_a_model_whose_figures_explain_every_word_comes_before_one_that_is_only_named() -> None:
    (reading,) = readings("how much did customers from France spend in total?")
    assert (reading.dsl.model, reading.not_understood) == ("order", ())
    assert [where.wire() for where in reading.dsl.wheres] == [
        {"field": "buyer.country", "op": "=", "value": "France"}
    ]
    assert [one.called for one in reading.dsl.aggregates] == ["sum_total"]


@pytest.mark.parametrize("question", TRAPS)
def test_words_that_only_look_like_conditions_yield_no_filter(question: str) -> None:
    for name in OFFERS:
        for reading in readings(question, name):
            assert [where for where in reading.dsl.wheres if where.field != EVERY_TEXT] == [], (
                TRAPS[question]
            )
            assert reading.dsl.limit is None
