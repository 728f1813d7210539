"""Questions in German and Hebrew about the shop's products."""

from __future__ import annotations

from typing import Any

import pytest

from groundhook.core.types.model_spec import ModelSpec
from groundhook.handlers.db.question.languages import AUTO, language_of, words_for
from groundhook.handlers.db.question.lexicons import Offer
from groundhook.handlers.db.question.reading import read_question
from tests.db.conftest import NOW
from tests.db.questions.shop import LEXICONS, SHOP, offers_of

LANGUAGES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "Welche Produkte kosten weniger als 1.000,50 Euro?": (
        "de",
        "product",
        {"wheres": [{"field": "price", "op": "<", "value": 1000.5}]},
    ),
    "die drei teuersten Produkte": (
        "de",
        "product",
        {"orders": [{"field": "price", "order": "desc"}], "limit": 3},
    ),
    "Wie viele Produkte sind nicht auf Lager?": (
        "de",
        "product",
        {
            "wheres": [{"field": "stock", "op": "=", "value": 0}],
            "aggregates": [{"function": "count"}],
        },
    ),
    "Produkte von Apple oder Sony": (
        "de",
        "product",
        {"wheres": [{"field": "brand", "op": "in", "value": ["Apple", "Sony"]}]},
    ),
    "Produkte ohne Bewertung": (
        "de",
        "product",
        {"wheres": [{"field": "rating", "op": "null", "value": None}]},
    ),
    "Produkte, die seit dem 5. März 2026 erschienen sind": (
        "de",
        "product",
        {"wheres": [{"field": "released_at", "op": ">=", "value": "2026-03-05"}]},
    ),
    "Produkte mit einer Bewertung von 4 bis 4,5": (
        "de",
        "product",
        {"wheres": [{"field": "rating", "op": "between", "value": [4, 4.5]}]},
    ),
    "weder Apple noch Sony": (
        "de",
        "product",
        {"wheres": [{"field": "brand", "op": "not in", "value": ["Apple", "Sony"]}]},
    ),
    "Welche Marke hat die meisten Produkte?": (
        "de",
        "product",
        {
            "groups": ["brand"],
            "aggregates": [{"function": "count"}],
            "orders": [{"field": "count", "order": "desc"}],
            "limit": 1,
        },
    ),
    "מוצרים עם דירוג מעל 4 ופחות מ-50 שקל": (
        "he",
        "product",
        {
            "wheres": [
                {"field": "rating", "op": ">", "value": 4},
                {"field": "price", "op": "<", "value": 50},
            ]
        },
    ),
    "מוצרים שיצאו בחודש שעבר": (
        "he",
        "product",
        {
            "wheres": [
                {"field": "released_at", "op": ">=", "value": "2026-10-01"},
                {"field": "released_at", "op": "<", "value": "2026-11-01"},
            ]
        },
    ),
    "מוצרים מתחת ל-100 שקל": (
        "he",
        "product",
        {"wheres": [{"field": "price", "op": "<", "value": 100}]},
    ),
    "כמה מוצרים יש?": ("he", "product", {"aggregates": [{"function": "count"}]}),
    "מוצרים לא של Apple": (
        "he",
        "product",
        {"wheres": [{"field": "brand", "op": "!=", "value": "Apple"}]},
    ),
    "שלושת המוצרים הכי יקרים": (
        "he",
        "product",
        {"orders": [{"field": "price", "order": "desc"}], "limit": 3},
    ),
    "מוצרים בין 50 ל-100 ₪": (
        "he",
        "product",
        {"wheres": [{"field": "price", "op": "between", "value": [50, 100]}]},
    ),
    "מחיר ממוצע לפי מותג": (
        "he",
        "product",
        {"aggregates": [{"function": "avg", "field": "price"}], "groups": ["brand"]},
    ),
}


def translated() -> Offer:
    """The shop's products with names in German and Hebrew, as an author would add them: in the
    comments."""
    raw = SHOP["product"].model_dump(mode="json", by_alias=True)
    names = {
        "brand": "Marke, מותג",
        "price": "Preis, מחיר",
        "rating": "Bewertung, דירוג",
        "stock": "Lager, מלאי",
        "released_at": "erschienen, יצא",
    }
    raw["columns"] = [
        {**column, "comment": names.get(column["name"], column["comment"])}
        for column in raw["columns"]
    ]
    raw["table"]["comment"] = "Produkt, מוצר"
    return offers_of({"product": ModelSpec.model_validate({**raw, "relations": {}})})["product"]


@pytest.mark.parametrize("question", LANGUAGES)
def test_questions_in_german_and_hebrew_are_recognised_and_read(question: str) -> None:
    language, model, expected = LANGUAGES[question]
    assert language_of(question) == language
    (reading,) = read_question(question, [translated()], words_for(AUTO, question), NOW, LEXICONS)
    dsl = reading.dsl.wire()
    implied = {"orders"} - set(expected)
    assert {key: value for key, value in dsl.items() if key not in implied} == {
        "model": model,
        **expected,
    }
    assert reading.not_understood == ()


@pytest.mark.parametrize("question", ["products under $100", "thank you", "???", "Apple", "4711"])
def test_a_question_in_no_known_language_is_read_as_english(question: str) -> None:
    assert language_of(question) == "en"
