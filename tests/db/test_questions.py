"""Questions over the shop's schema and the queries they become; and questions that must not become
any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.handlers.db.dsl import EVERY_TEXT
from groundhook.handlers.db.linter import lint
from groundhook.handlers.db.question.languages import AUTO, language_of, words_for
from groundhook.handlers.db.question.lexicons import Lexicons, Offer, Samples
from groundhook.handlers.db.question.reading import Reading, read_question
from groundhook.handlers.db.question.tokens import tokens_of
from groundhook.handlers.db.question.vocabulary import languages, made, vocabulary
from groundhook.handlers.db.schema import Schema, Schemas
from groundhook.host.core.errors import ConfigError, SourceNotConfigured
from groundhook.host.core.types.model_spec import ModelSpec
from tests.db.conftest import NOW, shop_models

LEXICONS = Lexicons()


def offers_of(models: Mapping[str, ModelSpec]) -> dict[str, Offer]:
    """The models with the values of their rows, and with what they are related to."""
    schemas = Schemas(models)
    plain = {
        name: Offer(schemas[name], sampled(schemas[name], spec)) for name, spec in models.items()
    }
    related = {
        name: {one.name: plain[one.model] for one in schemas[name].relations.values()}
        for name in models
    }
    return {name: replace(offer, related=related[name]) for name, offer in plain.items()}


def sampled(schema: Schema, spec: ModelSpec) -> Samples:
    texts = [field.name for field in schema.texts if not field.long and not field.options]
    return {
        name: tuple(sorted({row[name] for row in spec.values if row.get(name)})) for name in texts
    }


SHOP = shop_models()
OFFERS = offers_of(SHOP)


def readings(question: str, *models: str, language: str = AUTO) -> list[Reading]:
    offers = [OFFERS[name] for name in models or OFFERS]
    return read_question(question, offers, words_for(language, question), NOW, LEXICONS)


def read_as(question: str, *models: str) -> tuple[str, list[str], list[str]]:
    """(model, conditions as text, words left over) of a question with one reading."""
    (reading,) = readings(question, *models)
    wheres = [
        f"{where.field} {where.op} {where.value}".removesuffix(" None")
        for where in reading.dsl.wheres
    ]
    return reading.dsl.model, sorted(wheres), list(reading.unplaced)


OCTOBER = ["ordered_at < 2026-11-01 00:00:00", "ordered_at >= 2026-10-01 00:00:00"]

PLACED: dict[str, tuple[str, list[str]]] = {
    "Products cheaper than $100 from Apple": ("product", ["brand = Apple", "price < 100"]),
    "find all active products under $100 in electronics category": (
        "product",
        ["category = Electronics", "price < 100", "status = active"],
    ),
    "Show me products under $100": ("product", ["price < 100"]),
    "products under $100": ("product", ["price < 100"]),
    "products over $1k": ("product", ["price > 1000"]),
    "products under 1,500 dollars": ("product", ["price < 1500"]),
    "products priced at $99.99": ("product", ["price = 99.99"]),
    "products not more than $30": ("product", ["price <= 30"]),
    "products between $50 and $100": ("product", ["price between [50, 100]"]),
    "laptops from 500 to 900 dollars": (
        "product",
        ["category = Laptops", "price between [500, 900]"],
    ),
    "audio $50-$100": ("product", ["category = Audio", "price between [50, 100]"]),
    "rating of at least 4.7 and price under 50": ("product", ["price < 50", "rating >= 4.7"]),
    "laptops with rating above 4.5 and under $1000": (
        "product",
        ["category = Laptops", "price < 1000", "rating > 4.5"],
    ),
    "products with at least 4.5 stars": ("product", ["rating >= 4.5"]),
    "books with 4.8+ stars": ("product", ["category = Books", "rating >= 4.8"]),
    "books 4.8 stars and above": ("product", ["category = Books", "rating >= 4.8"]),
    "books with no less than 4.8 stars": ("product", ["category = Books", "rating >= 4.8"]),
    "Apple or Samsung phones": ("product", ["brand in ['Apple', 'Samsung']", "category = Phones"]),
    "laptop or phone under $700": ("product", ["category in ['Laptops', 'Phones']", "price < 700"]),
    "products not from Apple": ("product", ["brand != Apple"]),
    "non-Apple phones": ("product", ["brand != Apple", "category = Phones"]),
    "active products except Apple and Sony": (
        "product",
        ["brand not in ['Apple', 'Sony']", "status = active"],
    ),
    "featured products": ("product", ["featured = True"]),
    "products that are not featured": ("product", ["featured = False"]),
    "products in stock": ("product", ["stock > 0"]),
    "out of stock laptops": ("product", ["category = Laptops", "stock = 0"]),
    "more than 100 in stock": ("product", ["stock > 100"]),
    "products with fewer than 10 units": ("product", ["stock < 10"]),
    "products without a description": ("product", ["description null"]),
    "products called Magic": ("product", ["name like Magic"]),
    "brand is Acme": ("product", ["brand = Acme"]),
    "category: electronics": ("product", ["category = Electronics"]),
    "What is the price of the iPad mini?": ("product", ["name = iPad mini"]),
    "products newer than 2025": ("product", ["released_at >= 2026-01-01"]),
    "products released before 2020": ("product", ["released_at < 2020-01-01"]),
    "products released in the last 90 days": (
        "product",
        ["released_at < 2026-11-13", "released_at >= 2026-08-14"],
    ),
    "electroncs under $50": ("product", ["category = Electronics", "price < 50"]),
    "orders last month": ("order", OCTOBER),
    "cancelled orders in October": ("order", [*OCTOBER, "status = cancelled"]),
    "orders since March": ("order", ["ordered_at >= 2026-03-01 00:00:00"]),
    "orders before 2026": ("order", ["ordered_at < 2026-01-01 00:00:00"]),
    "orders this week": (
        "order",
        ["ordered_at < 2026-11-16 00:00:00", "ordered_at >= 2026-11-09 00:00:00"],
    ),
    "orders from yesterday": (
        "order",
        ["ordered_at < 2026-11-12 00:00:00", "ordered_at >= 2026-11-11 00:00:00"],
    ),
    "orders today": (
        "order",
        ["ordered_at < 2026-11-13 00:00:00", "ordered_at >= 2026-11-12 00:00:00"],
    ),
    "orders from 2 days ago": (
        "order",
        ["ordered_at < 2026-11-11 00:00:00", "ordered_at >= 2026-11-10 00:00:00"],
    ),
    "orders on March 5th, 2026": (
        "order",
        ["ordered_at < 2026-03-06 00:00:00", "ordered_at >= 2026-03-05 00:00:00"],
    ),
    "orders between March and May 2026": (
        "order",
        ["ordered_at < 2026-06-01 00:00:00", "ordered_at >= 2026-03-01 00:00:00"],
    ),
    "orders in Q1 2026": (
        "order",
        ["ordered_at < 2026-04-01 00:00:00", "ordered_at >= 2026-01-01 00:00:00"],
    ),
    "orders older than 6 months": ("order", ["ordered_at < 2026-05-12 00:00:00"]),
    "orders less than a week old": ("order", ["ordered_at >= 2026-11-05 00:00:00"]),
    "orders shipped last week": ("order", ["shipped_at < 2026-11-09", "shipped_at >= 2026-11-02"]),
    "pending or paid orders over $500": ("order", ["status in ['pending', 'paid']", "total > 500"]),
    "refunded orders with total between 100 and 200": (
        "order",
        ["status = refunded", "total between [100, 200]"],
    ),
    "customer orders over $500": ("order", ["total > 500"]),
    "orders over 2000": ("order", ["total > 2000"]),
    "order 42": ("order", ["id = 42"]),
    "status of order SO-10744": ("order", ["number = SO-10744"]),
    "Show me Alice Martin's orders for AirPods Pro": (
        "order",
        ["customer = Alice Martin", "product = AirPods Pro"],
    ),
    "orders that are not gifts": ("order", ["gift = False"]),
    "customers from Germany": ("customer", ["country = Germany"]),
    "gold customers who joined before 2025": (
        "customer",
        ["joined_at < 2025-01-01", "tier = gold"],
    ),
    "customers who joined in the last year": (
        "customer",
        ["joined_at < 2026-11-13", "joined_at >= 2025-11-12"],
    ),
    "customers in Berlin not subscribed to the newsletter": (
        "customer",
        ["city = Berlin", "newsletter = False"],
    ),
    "customers in Lisbon or London": ("customer", ["city in ['Lisbon', 'London']"]),
}

NOT_OCTOBER = [
    {"field": "ordered_at", "op": "<", "value": "2026-10-01 00:00:00"},
    {"field": "ordered_at", "op": ">=", "value": "2026-11-01 00:00:00"},
]

# What several words become together: the query as JSON, without what is implied.
BUILT: dict[str, dict[str, Any]] = {
    "orders to Berlin or over $2000": {
        "model": "order",
        "wheres": [
            {
                "or": [
                    {"field": "city", "op": "=", "value": "Berlin"},
                    {"field": "total", "op": ">", "value": 2000},
                ]
            }
        ],
    },
    "featured phones under $500 or rated above 4.6": {
        "model": "product",
        "wheres": [
            {"field": "featured", "op": "=", "value": True},
            {"field": "category", "op": "=", "value": "Phones"},
            {
                "or": [
                    {"field": "price", "op": "<", "value": 500},
                    {"field": "rating", "op": ">", "value": 4.6},
                ]
            },
        ],
    },
    "books under $15 or products rated above 4.8": {
        "model": "product",
        "wheres": [
            {
                "or": [
                    {
                        "and": [
                            {"field": "category", "op": "=", "value": "Books"},
                            {"field": "price", "op": "<", "value": 15},
                        ]
                    },
                    {"field": "rating", "op": ">", "value": 4.8},
                ]
            }
        ],
    },
    "laptops under $500 or over $2000": {
        "model": "product",
        "wheres": [
            {"field": "category", "op": "=", "value": "Laptops"},
            {
                "or": [
                    {"field": "price", "op": "<", "value": 500},
                    {"field": "price", "op": ">", "value": 2000},
                ]
            },
        ],
    },
    "how many orders were cancelled?": {
        "model": "order",
        "wheres": [{"field": "status", "op": "=", "value": "cancelled"}],
        "aggregates": [{"function": "count"}],
    },
    "average price of phones": {
        "model": "product",
        "wheres": [{"field": "category", "op": "=", "value": "Phones"}],
        "aggregates": [{"function": "avg", "field": "price"}],
    },
    "number of products per brand": {
        "model": "product",
        "groups": ["brand"],
        "aggregates": [{"function": "count"}],
    },
    "what is the highest rating?": {
        "model": "product",
        "aggregates": [{"function": "max", "field": "rating"}],
    },
    "how many different brands are there": {
        "model": "product",
        "aggregates": [{"function": "count", "field": "brand", "distinct": True}],
    },
    "orders of customers from Germany": {
        "model": "order",
        "wheres": [{"field": "buyer.country", "op": "=", "value": "Germany"}],
    },
    "orders of products by Apple": {
        "model": "order",
        "wheres": [{"field": "item.brand", "op": "=", "value": "Apple"}],
    },
    "customers without orders": {
        "model": "customer",
        "wheres": [{"field": "orders", "op": "null", "value": None}],
    },
    "orders worth less than $20 or more": {
        "model": "order",
        "wheres": [{"field": "total", "op": ">=", "value": 20}],
    },
    "products with price not between 50 and 100": {
        "model": "product",
        "wheres": [
            {
                "or": [
                    {"field": "price", "op": "<", "value": 50},
                    {"field": "price", "op": ">", "value": 100},
                ]
            }
        ],
    },
    "orders not in October": {"model": "order", "wheres": [{"or": NOT_OCTOBER}]},
    "anything but Apple phones": {
        "model": "product",
        "wheres": [
            {"field": "brand", "op": "!=", "value": "Apple"},
            {"field": "category", "op": "=", "value": "Phones"},
        ],
    },
    "products that are neither Apple nor Samsung": {
        "model": "product",
        "wheres": [{"field": "brand", "op": "not in", "value": ["Apple", "Samsung"]}],
    },
    "laptops around $1000": {
        "model": "product",
        "wheres": [
            {"field": "category", "op": "=", "value": "Laptops"},
            {"field": "price", "op": "between", "value": [900, 1100]},
        ],
    },
    "products rated 4 to 4.5": {
        "model": "product",
        "wheres": [{"field": "rating", "op": "between", "value": [4, 4.5]}],
    },
    "products rated 2 stars or lower": {
        "model": "product",
        "wheres": [{"field": "rating", "op": "<=", "value": 2}],
    },
    "average order value per customer": {
        "model": "order",
        "groups": ["customer"],
        "aggregates": [{"function": "avg", "field": "total"}],
    },
    "which brand has the most products?": {
        "model": "product",
        "groups": ["brand"],
        "aggregates": [{"function": "count"}],
        "limit": 1,
    },
    "orders of customer Alice": {
        "model": "order",
        "wheres": [{"field": "buyer.name", "op": "like", "value": "Alice"}],
    },
    "orders over 1.000": {
        "model": "order",
        "wheres": [{"field": "total", "op": ">", "value": 1000}],
    },
    "products with a rating of at least 4.7": {
        "model": "product",
        "wheres": [{"field": "rating", "op": ">=", "value": 4.7}],
    },
    "products with a rating": {
        "model": "product",
        "wheres": [{"field": "rating", "op": "not null", "value": None}],
    },
    "products with stock": {
        "model": "product",
        "wheres": [{"field": "stock", "op": ">", "value": 0}],
    },
    "my next order": {
        "model": "order",
        "wheres": [{"field": "ordered_at", "op": ">=", "value": "2026-11-12 10:00:00"}],
        "limit": 1,
    },
    "products released in the 2010s": {
        "model": "product",
        "wheres": [
            {"field": "released_at", "op": ">=", "value": "2010-01-01"},
            {"field": "released_at", "op": "<", "value": "2020-01-01"},
        ],
    },
    "customers who joined next month": {
        "model": "customer",
        "wheres": [
            {"field": "joined_at", "op": ">=", "value": "2026-12-01"},
            {"field": "joined_at", "op": "<", "value": "2027-01-01"},
        ],
    },
}

ORDERED: dict[str, tuple[list[str], int | None]] = {
    "top 5 newest phones": (["released_at desc"], 5),
    "the cheapest laptop": (["price asc"], 1),
    "the cheapest laptops": (["price asc"], None),
    "10 cheapest active toys": (["price asc"], 10),
    "most expensive orders of 2025": (["total desc"], None),
    "least expensive audio": (["price asc"], None),
    "highest rated books": (["rating desc"], None),
    "best rated kitchen products sorted by price": (["rating desc", "price asc"], None),
    "products by brand": (["brand asc"], None),
    "sort products by price descending": (["price desc"], None),
    "what are the 3 oldest orders": (["ordered_at asc"], 3),
    "last 5 orders": (["ordered_at desc"], 5),
    "my last order": (["ordered_at desc"], 1),
    "top 3 products": (["rating desc"], 3),
}

TRAPS: dict[str, str] = {
    "at least you tried": "'at least' with nothing to compare, and no 'least'",
    "last but not least": "an order that orders nothing",
    "over the moon": "a preposition",
    "products under the sea": "a preposition before no number",
    "between a rock and a hard place": "no range",
    "more than words": "no number",
    "march of the penguins": "no month",
    "may the force be with you": "no month",
    "newer is not always better": "no date",
    "the most popular brand": "no order of records",
    "older than the hills": "no date",
    "up to you": "no limit",
    "the price of freedom is high": "a field without a value",
    "How do I grow apples at home?": "neither the brand nor the category",
    "products with more than 5 hamsters": "a number of what no field counts",
    "products with at least 3 reviews": "a number of what no field counts",
    "customers with more than 5 orders": "another model would have to be counted",
    "top secret documents": "no limit",
    "I may order later": "no order by anything",
    "applet": "near to a brand, and not the brand",
    "customers from Atlantis": "no country that is known",
    "thank you": "nothing at all",
    "released on a Monday": "any Monday, and not the last one",
    "boots": "near to a category, and not the category",
    "customers from Atlantis or Lemuria": "no alternatives that are known",
}


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
    assert reading.unplaced == ()


@pytest.mark.parametrize("question", BUILT)
def test_related_requests_are_sent_together(question: str) -> None:
    (reading,) = readings(question)
    dsl = reading.dsl.wire()
    assert {key: value for key, value in dsl.items() if key != "orders"} == BUILT[question]
    assert reading.unplaced == ()


def test_a_model_whose_figures_explain_every_word_comes_before_one_that_is_only_named() -> None:
    (reading,) = readings("how much did customers from France spend in total?")
    assert (reading.dsl.model, reading.unplaced) == ("order", ())
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


def test_words_that_could_not_be_placed_are_reported_and_searched_for() -> None:
    (reading,) = readings("wireless purple headphones under $200", "product")
    assert reading.unplaced == ("wireless", "purple", "headphones")
    assert [(where.field, where.op, where.value) for where in reading.dsl.wheres] == [
        ("price", "<", 200),
        ("*", "match", ["wireless", "purple", "headphone"]),
    ]


def test_a_condition_behind_a_not_that_was_not_understood_is_taken_back() -> None:
    (reading,) = readings("products not since under $100", "product")
    assert reading.dsl.wheres == ()
    assert reading.unplaced == ("not", "since", "under", "$100")
    (reading,) = readings("not under products $100", "product")
    assert [where for where in reading.dsl.wheres if where.field != EVERY_TEXT] == []


def test_a_time_is_never_compared_with_a_number_field() -> None:
    for reading in readings("stars without yesterday", "product"):
        assert lint(reading.dsl, SHOP) == []


def test_the_best_of_what_is_no_record_is_no_limit_of_records() -> None:
    (reading,) = readings("top 3 brands", "product")
    assert (reading.dsl.limit, reading.unplaced) == (None, ("top", "3"))


def test_values_of_records_that_are_only_related_are_not_guessed_from_other_forms_of_a_word() -> (
    None
):
    (reading,) = readings("noise cancelling headphones", "product")
    assert reading.unplaced == ("noise", "cancelling", "headphones")


def test_a_negated_unknown_word_is_kept_out_of_what_is_found() -> None:
    assert read_as("headphones not waterproof", "product")[1] == [
        "* match ['headphone']",
        "* match none ['waterproof']",
    ]


def test_a_quoted_text_is_searched_for_as_it_is_and_counts_as_placed() -> None:
    assert read_as('products with "noise cancelling"') == (
        "product",
        ["* match ['noise cancelling']"],
        [],
    )


def test_a_misspelt_value_is_corrected_and_reported() -> None:
    (reading,) = readings("samsng phones")
    assert [where.value for where in reading.dsl.wheres] == ["Samsung", "Phones"]
    assert reading.notes == ("'samsng' was read as 'samsung'",)


def test_a_field_is_never_guessed_from_a_misspelt_word_that_changes_nothing() -> None:
    (reading,) = readings("statue of liberty", "product")
    assert reading.unplaced == ("statue", "liberty")


def test_a_question_that_fits_two_models_equally_searches_both() -> None:
    assert [reading.dsl.model for reading in readings("under $100")] == ["product", "order"]


def test_a_question_that_says_nothing_about_the_models_asks_for_nothing() -> None:
    assert [reading.asks for reading in readings("thank you")] == [False, False, False]
    assert [reading.asks for reading in readings("how many products do we have")] == [True]
    assert all(reading.asks for reading in readings("show me everything"))


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
        ],
        "values": [],
    },
    "hire": {
        "name": "Hire",
        "table": {"name": "hire"},
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
        ("cars from 2024 or newer", ["year >= 2024"]),
        ("cars from 2019 or older", ["year < 2020"]),
        (
            "cars whose next inspection is due within the next 14 days",
            ["next_check < 2026-11-27", "next_check >= 2026-11-12"],
        ),
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
    assert (sorted(conditions), reading.unplaced) == (wheres, ())


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
        reading.unplaced,
    ) == (figures, groups, ())


def test_a_rate_that_no_price_is_about_is_reported() -> None:
    (reading,) = read_question(
        "cars under €40 a week", list(HIRED.values()), vocabulary("en"), NOW, LEXICONS
    )
    assert reading.unplaced == ("week",)


def test_a_month_without_a_year_is_the_nearest_where_dates_lie_ahead() -> None:
    assert flights("flights in December")[0][0] == {
        "field": "departs_at",
        "op": ">=",
        "value": "2026-12-01 00:00:00",
    }
    (orders,) = readings("orders in December")
    assert orders.dsl.wheres[0].value == "2025-12-01 00:00:00"


WORDS = sorted(
    {
        word
        for questions in (PLACED, ORDERED, BUILT, TRAPS)
        for question in questions
        for word in question.split()
    }
)


@given(st.lists(st.sampled_from(WORDS), max_size=12))
def test_any_words_in_any_order_give_a_sound_query_and_the_same_one_again(words: list[str]) -> None:
    question = " ".join(words) or "x"
    first = readings(question)
    assert first == readings(question)
    for reading in first:
        assert lint(reading.dsl, SHOP) == []


@given(st.text(max_size=60), st.sampled_from([AUTO, *languages()]))
def test_any_text_can_be_read_in_any_language(text: str, language: str) -> None:
    for reading in readings(text or "x", language=language):
        assert lint(reading.dsl, SHOP) == []


@given(
    st.one_of(
        st.text(max_size=40),
        st.lists(st.sampled_from([*WORDS, "zebra", "x-9", "!"]), max_size=10).map(" ".join),
    )
)
def test_every_word_of_a_question_is_either_placed_or_reported(question: str) -> None:
    for reading in readings(question, language="en"):
        words = [*reading.placed, *reading.unplaced]
        pieces = [
            letter for token in tokens_of(question) for letter in token.text if letter.isalnum()
        ]
        assert sorted(letter for word in words for letter in word if letter.isalnum()) == sorted(
            pieces
        )


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
    assert reading.unplaced == ()


@pytest.mark.parametrize("question", ["products under $100", "thank you", "???", "Apple", "4711"])
def test_a_question_in_no_known_language_is_read_as_english(question: str) -> None:
    assert language_of(question) == "en"


@pytest.mark.parametrize("language", languages())
def test_every_language_says_all_that_english_says(language: str) -> None:
    english, own = vocabulary("en").file, vocabulary(language).file
    assert set(own.comparisons) == set(english.comparisons)
    assert set(own.figures) == set(english.figures)
    assert set(own.dates.units) == set(english.dates.units)
    assert (len(own.dates.months), len(own.dates.weekdays)) == (12, 7)


def test_another_language_is_a_file_and_an_unknown_one_names_those_there_are() -> None:
    with pytest.raises(SourceNotConfigured, match="en"):
        vocabulary("xx")


def test_a_wrong_key_in_the_file_of_a_language_is_named() -> None:
    raw: dict[str, Any] = {
        **vocabulary("en").file.model_dump(),
        "and": ["and"],
        "or": ["or"],
        "fillerz": ["the"],
    }
    with pytest.raises(ConfigError, match="fillerz"):
        made("en", raw)
