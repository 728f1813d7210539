"""The rules of the grammar by themselves: what each returns for the words at a position, and that
none changes what was found before."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime

import pytest

from groundhook.core.types.model_spec import ModelSpec
from groundhook.core.types.query_language import Where
from groundhook.handlers.db.model.schema import Schemas
from groundhook.handlers.db.question.cursor import Cursor
from groundhook.handlers.db.question.lexicons import Offer, build_lexicon
from groundhook.handlers.db.question.parsed import Parsed, Piece
from groundhook.handlers.db.question.rules import RULES
from groundhook.handlers.db.question.tokens import tokens_of
from groundhook.handlers.db.question.vocabulary import vocabulary

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
    "relations": {
        "drivers": {"type": "hasMany", "model": "driver", "key": "car_id", "foreign": "id"}
    },
}
DRIVER = {
    "id": "driver",
    "table": {"name": "driver"},
    "columns": [
        {"name": "id", "type": "ID"},
        {"name": "name", "type": "string", "label": "Name"},
        {"name": "height", "type": "integer", "label": "Height"},
        {"name": "salary", "type": "integer", "label": "Salary"},
        {"name": "born_on", "type": "date", "label": "Birth date"},
        {"name": "seen_at", "type": "datetime", "label": "Seen"},
        {"name": "car_id", "type": "integer"},
    ],
    "relations": {"car": {"type": "hasOne", "model": "car", "key": "id", "foreign": "car_id"}},
}
HORSE = {
    "id": "horse",
    "table": {"name": "horse"},
    "columns": [
        {"name": "id", "type": "ID"},
        {"name": "name", "type": "string", "label": "Name"},
        {"name": "stable", "type": "string", "label": "Stable"},
        {"name": "age", "type": "integer", "label": "Age"},
        {"name": "amount", "type": "decimal", "label": "Amount"},
    ],
}
SAMPLES: dict[str, dict[str, tuple[str, ...]]] = {
    "car": {"make": ("Toyota", "Volvo"), "city": ("Rome",)},
    "driver": {"name": ("Anna Berg",)},
    "horse": {"name": ("Amie",)},
}
NOW = datetime(2026, 3, 15, 12, tzinfo=UTC)
MODELS = {
    name: ModelSpec.model_validate(raw)
    for name, raw in (("car", CAR), ("driver", DRIVER), ("horse", HORSE))
}


def cursor_on(words: str, model: str = "car") -> Cursor:
    schemas = Schemas(MODELS)
    cars, drivers = (Offer(schemas[name], SAMPLES[name]) for name in ("car", "driver"))
    related = {"car": {"drivers": drivers}, "driver": {"car": cars}}
    offer = Offer(schemas[model], SAMPLES[model], related.get(model, {}))
    return Cursor(tokens_of(words), build_lexicon(offer, vocabulary("en"), []), NOW)


def shown(parsed: Parsed | None, cursor: Cursor) -> str:
    assert parsed is not None
    figures = [f"{one.function} {one.field}" for one in parsed.aggregates]
    made = [
        *(f"{where.field} {where.op} {where.value}" for where in parsed.wheres),
        *figures,
        *(f"per {name}" for name in parsed.groups),
        *(f"by {order.field} {order.order}" for order in parsed.orders),
        *([f"limit {parsed.limit}"] if parsed.limit else []),
        *(["the model"] if parsed.named_at is not None else []),
        *([f"about {parsed.about.relation}"] if parsed.about and parsed.about.relation else []),
        *([f"mentions {parsed.mention.name}"] if parsed.mention else []),
        *(f"the text {phrase}" for phrase in parsed.phrases),
        *(f"{cursor.typed[i].text} reported" for i in parsed.not_understood),
    ]
    return ", ".join(made) or f"nothing up to {parsed.end}"


BY_NAME: dict[str, Callable[..., Parsed | None]] = {rule.__name__: rule for rule in RULES}
CASES = [
    ("SO-10744", "identifier", "SO reported, 10744 reported"),
    ("not from Rome", "negation", "city != Rome"),
    ("isn't under 9000 dollars", "negation", "price >= 9000"),
    ("top 3 cities by number of cars", "ranked", "count *, per city, by count desc, limit 3"),
    ("max and min price", "figures", "max price, min price"),
    ("how many", "figure", "count *"),
    ("average price", "figure", "avg price"),
    ("costs between 10 and 20", "verb_led", "price between [10, 20]"),
    ("per make and city", "grouped", "count *, per make, per city"),
    ("in Rome", "preposition_rule", "city = Rome"),
    ("between 10 and 20 dollars", "between", "price between [10, 20]"),
    ("between Friday and Monday", "between", "bought_on >= 2026-03-06, bought_on < 2026-03-10"),
    ("older than 3 months", "compared_date", "bought_on < 2025-12-15"),
    ("since 2024", "time_rule", "bought_on >= 2024-01-01"),
    ("before 2020 bought", "time_rule", "bought_on < 2020-01-01"),
    ("last Friday", "time_rule", "bought_on >= 2026-03-13, bought_on < 2026-03-14"),
    ("next March", "time_rule", "bought_on >= 2027-03-01, bought_on < 2027-04-01"),
    ("first 3", "limit", "limit 3"),
    ("newest 3", "limit", "by bought_on desc, limit 3"),
    ("my last car", "nothing", "nothing up to 1"),
    ("last car", "limit", "by bought_on desc, limit 1"),
    ("3 cars", "limit", "limit 3"),
    ("under 9000 dollars", "number", "price < 9000"),
    ("minimum seats 4", "number", "seats >= 4"),
    ("4 or 5 seats", "number", "seats in [4, 5]"),
    ("4 seats or more", "number", "seats >= 4"),
    ("$50-$100", "number", "price between [50, 100]"),
    ("seats at least 4", "field_led", "seats >= 4"),
    ("seats not over 4", "field_led", "seats <= 4"),
    ("make is Acme", "field_led", "make = Acme"),
    ("price descending", "field_led", "by price desc"),
    ("make containing Acm", "field_led", "make like Acm"),
    ("with seats", "having", "seats > 0"),
    ("with drivers", "having_related", "drivers not null None"),
    ("Toyota or Volvo", "values_rule", "make in ['Toyota', 'Volvo']"),
    ("cost nothing", "condition", "price = 0"),
    ("highest price per city", "extreme_of_each", "max price, per city"),
    ("cheapest", "order_words", "by price asc"),
    ("highest price", "order_words", "by price desc"),
    ("sorted by city, price descending", "order_words", "by city asc, by price desc"),
    ("containing rust", "containing", "nothing up to 1"),
    ('"Toyota"', "quoted", "make = Toyota"),
    ('"no rust"', "quoted", "the text no rust"),
    ("car 17", "named", "id = 17, the model"),
    ("price of", "mentioned", "mentions price"),
    ("lasts over", "number_verb", "nothing up to 1"),
    ("please", "nothing", "nothing up to 1"),
]
OF_DRIVERS = [
    ("how tall is Anna", "how_much", "mentions height"),
    ("40 years old", "of_age", "born_on > 1985-03-15, born_on <= 1986-03-15"),
    ("aged 30 or more", "of_age", "born_on <= 1996-03-15"),
    ("earns over 9000", "verb_led", "salary > 9000"),
    ("earns the most", "order_words", "by salary desc"),
    ("called Berg", "called", "name like Berg"),
    ("Anna", "part", "name like Anna"),
    ("cars", "related", "about car"),
    (
        "at 9 pm yesterday",
        "time_of_day",
        "seen_at >= 2026-03-14 00:00:00, seen_at < 2026-03-15 00:00:00,"
        " seen_at >= 2026-03-14 21:00:00, seen_at < 2026-03-14 21:01:00",
    ),
]
OF_HORSES = [
    ("aged 3", "of_age", "age = 3"),
    ("aged 3 or more", "of_age", "age >= 3"),
    ("amount of", "figure", "sum amount"),
    ("amount of 20", "figure", "amount = 20"),
    ("top stables by amount", "ranked", "sum amount, per stable, by sum_amount desc"),
]
EVERY = [
    (model, *case)
    for model, cases in (("car", CASES), ("driver", OF_DRIVERS), ("horse", OF_HORSES))
    for case in cases
]


@pytest.mark.parametrize(("model", "words", "rule", "made"), EVERY)
def test_a_rule_returns_what_its_words_say(model: str, words: str, rule: str, made: str) -> None:
    cursor = cursor_on(words, model)
    assert shown(BY_NAME[rule](cursor, Parsed(), 0), cursor) == made


def test_a_field_that_was_mentioned_is_summed_for_each_group() -> None:
    cursor = cursor_on("amount per stable", "horse")
    draft = Parsed(mention=cursor.lexicon.fields["amount"])
    assert shown(BY_NAME["grouped"](cursor, draft, 1), cursor) == "sum amount, per stable"


def test_an_exception_follows_a_request_for_everything() -> None:
    cursor, excepted = cursor_on("all cars but Volvo"), BY_NAME["excepted"]
    found = excepted(cursor, Parsed(), 2)
    assert found is not None
    assert (found.end, found.exceptions) == (3, (2,))
    assert excepted(cursor_on("cars but Volvo"), Parsed(), 1) is None


def test_the_group_with_the_most_records_is_that_of_the_field_mentioned() -> None:
    cursor = cursor_on("make with the most cars")
    draft = Parsed(3, mention=cursor.lexicon.fields["make"])
    made = "count *, per make, by count desc, limit 1, the model"
    assert shown(BY_NAME["most"](cursor, draft, 3), cursor) == made


def test_a_rate_behind_a_bound_is_reported() -> None:
    cursor = cursor_on("price under 100 per seat")
    draft = Parsed(3, pieces=(Piece(0, 3, (Where(field="price", op="<", value=100),)),))
    found = BY_NAME["rate_of_bound"](cursor, draft, 3)
    assert shown(found, cursor) == "per reported, seat reported"


def test_every_rule_has_a_case() -> None:
    alone = {"excepted", "most", "rate_of_bound"}
    assert BY_NAME.keys() - {rule for _, _, rule, _ in EVERY} == alone


@pytest.mark.parametrize(("model", "words"), sorted({case[:2] for case in EVERY}))
def test_no_rule_changes_what_was_found_before(model: str, words: str) -> None:
    cursor, draft = cursor_on(words, model), Parsed()
    before, about = deepcopy(draft), cursor.about
    for rule in RULES:
        rule(cursor, draft, 0)
    assert (draft, cursor.about) == (before, about)
