"""The rules of the grammar by themselves: what each returns for the words at a position, and that
none changes what was found before."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime

import pytest

from groundhook.handlers.db.question.cursor import Cursor
from groundhook.handlers.db.question.draft import Draft, Parsed
from groundhook.handlers.db.question.lexicons import Offer, build_lexicon
from groundhook.handlers.db.question.rules import RULES, having
from groundhook.handlers.db.question.rules_field import field_led
from groundhook.handlers.db.question.rules_figure import figure, figures, grouped, ranked
from groundhook.handlers.db.question.rules_list import amounts
from groundhook.handlers.db.question.rules_model import named
from groundhook.handlers.db.question.rules_negation import condition, negation
from groundhook.handlers.db.question.rules_number import amount_led, between, compare
from groundhook.handlers.db.question.rules_order import limit, order_words
from groundhook.handlers.db.question.rules_time import compared_date, date_led
from groundhook.handlers.db.question.rules_value import prepositioned, values
from groundhook.handlers.db.question.tokens import tokens_of
from groundhook.handlers.db.question.vocabulary import vocabulary
from groundhook.handlers.db.schema import Schemas
from groundhook.host.core.types.model_spec import ModelSpec

CAR = {
    "id": "car",
    "table": {"name": "car"},
    "columns": [
        {"name": "id", "type": "ID"},
        {"name": "make", "type": "string", "label": "Make"},
        {"name": "city", "type": "string", "label": "City"},
        {"name": "price", "type": "decimal", "label": "Price"},
        {"name": "seats", "type": "integer", "label": "Seats"},
        {"name": "bought_on", "type": "date", "label": "Bought"},
    ],
}
SAMPLES = {"make": ("Toyota", "Volvo"), "city": ("Rome",)}
NOW = datetime(2026, 3, 15, 12, tzinfo=UTC)
Rule = Callable[[Cursor, Draft], Parsed | None]


def cursor_on(words: str) -> Cursor:
    offer = Offer(Schemas({"car": ModelSpec.model_validate(CAR)})["car"], SAMPLES)
    return Cursor(tokens_of(words), build_lexicon(offer, vocabulary("en"), []), NOW)


def shown(parsed: Parsed | None) -> str:
    assert parsed is not None
    figures = [f"{one.function} {one.field}" for one in parsed.aggregates]
    made = [
        *(f"{where.field} {where.op} {where.value}" for where in parsed.wheres),
        *figures,
        *(f"per {name}" for name in parsed.groups),
        *(f"by {order.field} {order.order}" for order in parsed.orders),
        *([f"limit {parsed.limit}"] if parsed.limit else []),
        *(["the model"] if parsed.named_at is not None else []),
    ]
    return ", ".join(made)


CASES: list[tuple[str, Rule, str]] = [
    ("under 9000 dollars", lambda c, d: compare(c, d, 0, False), "price < 9000"),
    ("under 9000 dollars", lambda c, d: compare(c, d, 0, True), "price >= 9000"),
    ("4 seats or more", lambda c, d: amount_led(c, d, 0), "seats >= 4"),
    ("4 or 5 seats", lambda c, d: amounts(c, d, 0), "seats in [4, 5]"),
    ("between 10 and 20 dollars", lambda c, d: between(c, d, 0), "price between [10, 20]"),
    ("since 2024", lambda c, d: date_led(c, d, 0), "bought_on >= 2024-01-01"),
    ("older than 3 months", lambda c, d: compared_date(c, d, 0), "bought_on < 2025-12-15"),
    ("seats at least 4", lambda c, d: field_led(c, d, 0, False), "seats >= 4"),
    ("Toyota or Volvo", lambda c, d: values(c, 0, False), "make in ['Toyota', 'Volvo']"),
    ("in Rome", lambda c, d: prepositioned(c, 0), "city = Rome"),
    ("not from Rome", lambda c, d: negation(c, d, 0), "city != Rome"),
    ("cost nothing", lambda c, d: condition(c, d, 0), "price = 0"),
    ("with seats", lambda c, d: having(c, d, 0), "seats > 0"),
    ("how many", lambda c, d: figure(c, d, 0), "count *"),
    ("average price", lambda c, d: figure(c, d, 0), "avg price"),
    ("max and min price", lambda c, d: figures(c, d, 0), "max price, min price"),
    ("per make and city", lambda c, d: grouped(c, d, 0), "count *, per make, per city"),
    (
        "top 3 cities by number of cars",
        lambda c, d: ranked(c, d, 0),
        "count *, per city, by count desc, limit 3",
    ),
    ("cheapest", lambda c, d: order_words(c, d, 0), "by price asc"),
    ("highest price", lambda c, d: order_words(c, d, 0), "by price desc"),
    ("first 3", lambda c, d: limit(c, d, 0), "limit 3"),
    ("car 17", lambda c, d: named(c, d, 0), "id = 17, the model"),
]


@pytest.mark.parametrize(("words", "rule", "made"), CASES)
def test_a_rule_returns_what_its_words_say(words: str, rule: Rule, made: str) -> None:
    assert shown(rule(cursor_on(words), Draft())) == made


@pytest.mark.parametrize("words", sorted({words for words, _, _ in CASES}))
def test_no_rule_changes_what_was_found_before(words: str) -> None:
    cursor, draft = cursor_on(words), Draft()
    before, about = deepcopy(draft), cursor.about
    for rule in RULES:
        rule(cursor, draft, 0)
    assert (draft, cursor.about) == (before, about)
