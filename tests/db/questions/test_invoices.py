"""Questions over customers, invoices, products and payments, whose columns are called as people
call many things: no unrequested filter, in any wording."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from groundhook.core.types.model_spec import ModelSpec
from groundhook.core.types.query_language import Where
from groundhook.handlers.db.model.schema import Schemas
from groundhook.handlers.db.question.languages import AUTO, words_for
from groundhook.handlers.db.question.lexicons import Lexicons, Offer
from groundhook.handlers.db.question.reading import Reading, read_question
from groundhook.handlers.db.question.tokens import LONGEST_QUESTION

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)  # a Sunday
LEXICONS = Lexicons()


def column(name: str, type: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type, **more}


MODELS: dict[str, dict[str, Any]] = {
    "customer": {
        "columns": [
            column("id", "ID"),
            column("name", "string", label="Name"),
            column("email", "string", label="Email", nullable=True),
            column("city", "string", label="City"),
            column("vat_id", "string", label="VAT ID", nullable=True),
            column("since", "date", label="Customer since"),
            column("closed_on", "date", label="Closed", nullable=True),
            column("newsletter", "boolean", label="Subscriber"),
            column("score", "float", label="Standing", nullable=True),
        ],
        "relations": {
            "invoices": {
                "type": "hasMany",
                "model": "invoice",
                "key": "customer_id",
                "foreign": "id",
            }
        },
    },
    "invoice": {
        "columns": [
            column("id", "ID"),
            column("number", "string", label="Number"),
            column("customer_id", "bigInteger"),
            column(
                "status",
                "enum",
                option=["draft", "sent", "paid", "overdue", "cancelled"],
                label="Status",
            ),
            column("total", "decimal", precision=12, scale=2, label="Total"),
            column("order", "string", label="Purchase order", nullable=True),
            column("issued_on", "date", label="Issued"),
            column("paid_on", "date", label="Paid on", nullable=True),
            column("desc", "text", label="Description", nullable=True),
        ],
        "relations": {
            "customer": {
                "type": "hasOne",
                "model": "customer",
                "key": "id",
                "foreign": "customer_id",
            }
        },
    },
    "product": {
        "columns": [
            column("id", "ID"),
            column("name", "string", label="Name"),
            column("category", "string", label="Category"),
            column("price", "decimal", precision=10, scale=2, label="Price"),
            column("stock", "integer", label="Stock"),
            column("select", "boolean", label="Featured"),
            column("weight", "float", label="Weight", comment="kilograms, kg", nullable=True),
        ]
    },
    "payment": {
        "columns": [
            column("id", "ID"),
            column("amount", "decimal", precision=12, scale=2, label="Amount"),
            column("method", "enum", option=["card", "bank transfer", "cash"], label="Method"),
            column("received_at", "datetime", label="Received"),
            column("invoice_id", "bigInteger"),
        ],
        "relations": {
            "invoice": {"type": "hasOne", "model": "invoice", "key": "id", "foreign": "invoice_id"}
        },
    },
}
SAMPLES = {
    "customer": {
        "city": ("Berlin", "Paris", "York", "New York"),
        "name": ("Anna Müller", "Bob Tables"),
    },
    "product": {"category": ("Chairs", "Lamps", "Tables"), "name": ("Bar Stool", "Desk Lamp")},
}
SPECS = {
    name: ModelSpec.model_validate(
        {"id": name, "name": name.title(), "table": {"name": name}, **raw}
    )
    for name, raw in MODELS.items()
}


def readings(question: str, language: str = AUTO) -> list[Reading]:
    schemas = Schemas(SPECS)
    plain = {name: Offer(schemas[name], SAMPLES.get(name, {})) for name in SPECS}
    offers = [
        Offer(
            offer.schema,
            offer.samples,
            {one.name: plain[one.model] for one in offer.schema.relations.values()},
        )
        for offer in plain.values()
    ]
    return read_question(question, offers, words_for(language, question), NOW, LEXICONS)


def text_of(where: Where) -> str:
    if where.any_of is not None:
        return f"({' or '.join(map(text_of, where.any_of))})"
    if where.all_of is not None:
        return " and ".join(map(text_of, where.all_of))
    value = "" if where.value is None else f" {where.value}"
    return f"{where.field} {where.op}{value}".replace(" 00:00:00", "")


def read(question: str) -> tuple[str, Reading]:
    """The conditions of a question with one reading, as text, and that reading."""
    (reading,) = readings(question)
    return " and ".join(map(text_of, reading.dsl.wheres)), reading


def month(field: str, start: str, end: str) -> str:
    return f"{field} >= {start} and {field} < {end}"


UNDERSTOOD = {
    # what a "not" reaches
    "invoices that are neither paid nor cancelled": "paid_on null and status != cancelled",
    "invoices not paid or cancelled": "paid_on null and status != cancelled",
    "customers without email or VAT ID": "email null and vat_id null",
    "products not featured or under 10 euros": "(select = False or price < 10)",
    "Produkte weder Featured noch Lamps": "select = False and category != Lamps",
    # what has no value is not lost to a "not"
    "invoices not paid in March": "(paid_on < 2026-03-01 or paid_on >= 2026-04-01 or paid_on null)",
    "invoices not older than 30 days": "issued_on >= 2026-10-23",
    "customers without invoices in Berlin": "invoices null and city = Berlin",
    "customers with invoices that are not overdue": "invoices.status != overdue",
    # what happened, and what did not
    "closed customers": "closed_on not null",
    "customers who were closed": "closed_on not null",
    "customers closed or without email": "(closed_on not null or email null)",
    "customers not closed": "closed_on null",
    "customers in Berlin who closed": "city = Berlin and closed_on not null",
    "which invoices did we cancel": "status = cancelled",
    "customers closed in March": month("closed_on", "2026-03-01", "2026-04-01"),
    # one related record
    "invoices of customer 42 over 100": "customer_id = 42 and total > 100",
    # values with a condition of their own
    "lamps under 50 or chairs over 500": (
        "(category = Lamps and price < 50 or category = Chairs and price > 500)"
    ),
    "lamps under 50 and chairs under 100": (
        "(category = Lamps and price < 50 or category = Chairs and price < 100)"
    ),
    "featured lamps under 50 or chairs over 500": (
        "select = True and (category = Lamps and price < 50 or category = Chairs and price > 500)"
    ),
    "lamps and chairs under 50": "category in ['Lamps', 'Chairs'] and price < 50",
    # several times
    "payments in March and April": (
        f"({month('received_at', '2026-03-01', '2026-04-01')} or"
        f" {month('received_at', '2026-04-01', '2026-05-01')})"
    ),
    "payments in March or April 2025": (
        f"({month('received_at', '2025-03-01', '2025-04-01')} or"
        f" {month('received_at', '2025-04-01', '2025-05-01')})"
    ),
    "payments from March to June 2025": month("received_at", "2025-03-01", "2025-07-01"),
    "payments from November to February": month("received_at", "2025-11-01", "2026-03-01"),
    "payments from 1 November to 28 February 2026": month(
        "received_at", "2025-11-01", "2026-03-01"
    ),
    "payments between Friday and Monday": month("received_at", "2026-11-13", "2026-11-17"),
    "payments between 2026-05-01 and 2026-03-01": month("received_at", "2026-03-01", "2026-05-02"),
    "invoices issued in March and paid in April": (
        f"{month('issued_on', '2026-03-01', '2026-04-01')} and"
        f" {month('paid_on', '2026-04-01', '2026-05-01')}"
    ),
    "customers since 2020": "since >= 2020-01-01",
    # days
    "payments on 15/03/2026": month("received_at", "2026-03-15", "2026-03-16"),
    "payments on 03/15/2026": month("received_at", "2026-03-15", "2026-03-16"),
    "payments on 15-03-2026": month("received_at", "2026-03-15", "2026-03-16"),
    # numbers
    "invoices over 1.500,50 euros": "total > 1500.5",
    "invoices over 1,500.50 euros": "total > 1500.5",
    "invoices over €1.500": "total > 1500",
    "products lighter than 1.500 kg": "weight < 1.5",
    "products heavier than 10 kg": "weight > 10",
    "payments below -100": "amount < -100",
    "products with five in stock": "stock = 5",
    "products with less than a dozen in stock": "stock < 12",
    "payments between -10 and 10": "amount between [-10, 10]",
    "products priced 49 or 100": "price in [49, 100]",
    "products with price 49, 100 or 249": "price in [49, 100, 249]",
    "products for 49 or 100 euros": "price in [49, 100]",
    "products costing exactly 49 or 100": "price in [49, 100]",
    "products with price 49, 10 or more in stock": "price = 49 and stock >= 10",
    "invoices with a total of 100": "total = 100",
    "invoices with total over 5000": "total > 5000",
    # words that ask and say nothing
    "how much does the Desk Lamp cost": "name = Desk Lamp",
    'invoices containing "rush delivery"': "* match ['rush delivery']",
}


@pytest.mark.parametrize("question", UNDERSTOOD)
def test_each_condition_is_the_requested_one(question: str) -> None:
    wheres, reading = read(question)
    assert (wheres, reading.not_understood) == (UNDERSTOOD[question], ())


FIGURES = {
    "total of paid invoices in 2025": ("sum_total", ()),
    "average invoice in 2025": ("avg_total", ()),
    "total amount of payments per method": ("sum_amount", ("method",)),
    "sum of cash payments": ("sum_amount", ()),
    "average payment per method": ("avg_amount", ("method",)),
    "what is the highest payment amount": ("max_amount", ()),
    "how much was paid by card in 2026": ("sum_amount", ()),
    "total number of invoices": ("count", ()),
    "average total of overdue invoices": ("avg_total", ()),
    "number of payments per method": ("count", ("method",)),
}


@pytest.mark.parametrize("question", FIGURES)
def test_figures_of_records_that_are_sums_of_money_are_of_that_money(question: str) -> None:
    _, reading = read(question)
    (figure,) = reading.dsl.aggregates
    assert (figure.called, reading.dsl.groups, reading.not_understood) == (*FIGURES[question], ())


@pytest.mark.parametrize(
    "question",
    ["revenue per customer", "top 5 customers by revenue", "which customer has the most invoices"],
)
def test_related_records_of_the_same_name_are_not_counted_as_one(question: str) -> None:
    _, reading = read(question)
    assert (reading.dsl.model, reading.dsl.groups) == ("invoice", ("customer.name", "customer_id"))


def test_several_figures_groups_and_orders_are_all_of_them() -> None:
    _, figures = read("average, min and max price of lamps")
    assert [one.called for one in figures.dsl.aggregates] == ["avg_price", "min_price", "max_price"]
    _, groups = read("number of invoices per status and city")
    assert (groups.dsl.groups, groups.not_understood) == (("status", "customer.city"), ())
    for question in (
        "customers sorted by city then name",
        "customers sorted by city, name",
        "customers by city and name",
    ):
        _, orders = read(question)
        assert [(one.field, one.order) for one in orders.dsl.orders] == [
            ("city", "asc"),
            ("name", "asc"),
        ]
    _, mixed = read("products sorted by category and price descending")
    assert [(one.field, one.order) for one in mixed.dsl.orders] == [
        ("category", "asc"),
        ("price", "desc"),
    ]


SUPERLATIVES = {
    "the highest payment": ("amount", "desc", 1),
    "highest cash payment": ("amount", "desc", 1),
    "lowest three payments": ("amount", "asc", 3),
    "largest 5 invoices": ("total", "desc", 5),
    "biggest invoice this year": ("total", "desc", 1),
    "oldest unpaid invoice": ("issued_on", "asc", 1),
}


@pytest.mark.parametrize("question", SUPERLATIVES)
def test_the_highest_of_records_that_are_sums_of_money_is_the_one_of_most(question: str) -> None:
    _, reading = read(question)
    (order,) = reading.dsl.orders
    assert (order.field, order.order, reading.dsl.limit, reading.not_understood) == (
        *SUPERLATIVES[question],
        (),
    )


NOT_UNDERSTOOD = {
    # What is compared in a way that is not known becomes no condition on what it is compared with.
    "products more expensive than the Desk Lamp": (
        "",
        ["more", "expensive", "than", "Desk", "Lamp"],
    ),
    "products rounder than 10 kg": ("* match ['rounder']", ["rounder", "10"]),
    "the biggest product": ("", ["biggest"]),
    "newest and oldest customer": ("", ["oldest"]),
    "payments on 03/04/2026": ("* match ['03/04/2026']", ["03/04/2026"]),
    # There being none of some kind is not the same as there being one of another.
    "customers without overdue invoices": ("", ["without", "overdue"]),
    "customers with no invoices over 1000": ("", ["no", "over", "1000"]),
    "customers without invoices since 2025": ("", ["without", "since", "2025"]),
    # Of persons a mere number is an age, and no number that they happen to have.
    "customers under 18": ("", ["under", "18"]),
    # Words that speak of others are not searched for.
    "average invoice total per month": ("", ["per", "month"]),
}


@pytest.mark.parametrize("question", NOT_UNDERSTOOD)
def test_words_that_are_not_understood_become_no_condition_and_are_reported(question: str) -> None:
    wheres, reading = read(question)
    assert (wheres, list(reading.not_understood)) == NOT_UNDERSTOOD[question]


def test_words_neither_understood_nor_searched_are_reported() -> None:
    _, reading = read("products rounder than 10 kg")
    assert (reading.not_understood, reading.left_out) == (("rounder", "10"), ("10",))


def test_a_flag_requested_both_ways_is_reported() -> None:
    wheres, reading = read("customers who are subscribers and non-subscribers")
    assert (wheres, len(reading.notes)) == ("newsletter = True", 1)


def test_a_question_too_long_to_be_read_to_its_end_says_so() -> None:
    _, reading = read("invoices over 500 " + "please " * LONGEST_QUESTION + "that are overdue")
    assert any("2000 characters" in note for note in reading.notes)
