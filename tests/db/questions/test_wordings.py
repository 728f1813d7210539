"""Wordings over hotels with bookings, movies, horses and cars: what people say for the same conditions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from groundhook.core.types.model_spec import ModelSpec
from groundhook.handlers.db.model.schema import Schemas
from groundhook.handlers.db.question.lexicons import Lexicons, Offer
from groundhook.handlers.db.question.reading import read_question
from groundhook.handlers.db.question.vocabulary import vocabulary
from tests.db.questions.models import NOW, choice, column, conditions, date, number

LEXICONS = Lexicons()
MODELS: dict[str, dict[str, Any]] = {
    "hotel": {
        "columns": [
            column("name", label="Name"),
            column("city", label="City"),
            number("stars", "Stars"),
            number("rate", "Price per night", type="decimal"),
            number("beach", "Distance to beach", "m"),
            number("rating", "Guest rating", type="decimal"),
            column("pool", "boolean", "Swimming pool"),
            column("open", "boolean", "Open on weekends", comment="weekends"),
        ],
        "relations": {
            "bookings": {"type": "hasMany", "model": "booking", "key": "hotel_id", "foreign": "id"}
        },
    },
    "booking": {
        "columns": [
            number("hotel_id", "Hotel"),
            column("guest", label="Guest"),
            date("arrives", "Arrival"),
            date("booked_on", "Booked"),
            number("people", "Guests"),
        ],
        "relations": {
            "hotel": {"type": "hasOne", "model": "hotel", "key": "id", "foreign": "hotel_id"}
        },
    },
    "movie": {
        "columns": [
            column("title", label="Title"),
            column("director", label="Director"),
            choice("genre", "Genre", "comedy", "horror"),
            date("released", "Release date"),
            number("runtime", "Runtime", "minutes"),
            number("budget", "Budget"),
        ]
    },
    "horse": {
        "columns": [
            column("name", label="Name"),
            column("breed", label="Breed"),
            date("born", "Birth date"),
            date("arrived", "Arrived"),
            number("height", "Height", "cm"),
            number("price", "Price"),
        ]
    },
    "car": {
        "columns": [
            column("make", label="Make"),
            choice("fuel", "Fuel", "petrol", "diesel"),
            number("year", "Year"),
            number("power", "Power", "hp"),
            number("price", "Price"),
            column("sold", "boolean", "Sold"),
            date("listed", "Listed"),
            date("inspection", "Inspection deadline"),
            date("expires", "Expires"),
        ]
    },
}
SAMPLES: dict[str, dict[str, tuple[str, ...]]] = {
    "hotel": {"name": ("Grand Plaza",), "city": ("Rome", "Paris")},
    "booking": {"guest": ("Anna Weber",)},
    "movie": {"title": ("Blue Moon",), "director": ("Jane Holt", "Paul Reed")},
    "horse": {"name": ("Misty",), "breed": ("Arabian",)},
    "car": {"make": ("Toyota", "Ford")},
}
SPECS = {
    id: ModelSpec.model_validate(
        {"id": id, "table": {"name": id}, **raw, "columns": [column("id", "ID"), *raw["columns"]]}
    )
    for id, raw in MODELS.items()
}
SCHEMAS = Schemas(SPECS)
PLAIN = {id: Offer(SCHEMAS[id], SAMPLES[id]) for id in SPECS}
OFFERS = [
    replace(offer, related={one.name: PLAIN[one.model] for one in offer.schema.relations.values()})
    for offer in PLAIN.values()
]


@pytest.mark.parametrize(
    ("question", "model", "found"),
    [
        ("hotels under 150 a night", "hotel", "rate < 150"),
        ("five star hotels in Rome", "hotel", "stars = 5 and city = Rome"),
        ("hotels with at least 4 stars", "hotel", "stars >= 4"),
        ("hotels within 500 metres of the beach", "hotel", "beach <= 500"),
        ("hotels that have no bookings", "hotel", "bookings null"),
        ("hotels that have never been booked", "hotel", "bookings null"),
        ("bookings for 4 people", "booking", "people = 4"),
        (
            "bookings made in the last two weeks",
            "booking",
            "booked_on >= 2026-10-29 and booked_on < 2026-11-13",
        ),
        (
            "bookings arriving this weekend",
            "booking",
            "arrives >= 2026-11-14 and arrives < 2026-11-16",
        ),
        (
            "bookings arriving on Friday",
            "booking",
            "arrives >= 2026-11-13 and arrives < 2026-11-14",
        ),
        ("movies by Paul Reed", "movie", "director = Paul Reed"),
        ("how many movies did Paul Reed direct", "movie", "director = Paul Reed"),
        ("who directed Blue Moon", "movie", "title = Blue Moon"),
        ("movies released in the 90s", "movie", "released >= 1990-01-01 and released < 2000-01-01"),
        (
            "movies from the eighties",
            "movie",
            "released >= 1980-01-01 and released < 1990-01-01",
        ),
        ("horror movies released on or after 2020-05-01", "movie", "genre = horror and released >= 2020-05-01"),
        ("movies released no later than 2010-12-31", "movie", "released < 2011-01-01"),
        (
            "movies with a budget between 10 and 20 million",
            "movie",
            "budget between [10000000, 20000000]",
        ),
        ("movies with a runtime greater than or equal to 90", "movie", "runtime >= 90"),
        ("cars between 2015 and 2019", "car", "year >= 2015 and year < 2020"),
        ("2019 Fords", "car", "year = 2019 and make = Ford"),
        ("cars older than 10 years", "car", "year < 2016"),
        ("horses older than 10 years", "horse", "born <= 2015-11-12"),
        ("10 year old horses", "horse", "born > 2015-11-12 and born <= 2016-11-12"),
        ("horses under 500", "horse", "price < 500"),
        ("horses that arrived since 2024", "horse", "arrived >= 2024-01-01"),
        ("how old is Misty", "horse", "name = Misty"),
        ("horses 160 cm or taller", "horse", "height >= 160"),
        ("bookings arriving tomorrow", "booking", "arrives >= 2026-11-13 and arrives < 2026-11-14"),
        ("movies that Jane Holt or Paul Reed directed", "movie", "director in ['Jane Holt', 'Paul Reed']"),
        ("all horses but Arabians", "horse", "breed != Arabian"),
        ("cars built after 2015", "car", "year >= 2016"),
        ("movies with a runtime of 90 to 120 minutes", "movie", "runtime between [90, 120]"),
        ("movies longer than 2.5 hours", "movie", "runtime > 150"),
        ("cars that have not been sold", "car", "sold = False"),
        ("what does the Grand Plaza cost per night", "hotel", "name = Grand Plaza"),
        ("movies longer than an hour", "movie", "runtime > 60"),
        ("cars from the 90s", "car", "year >= 1990 and year < 2000"),
        ("cars released before 1980", "car", "year < 1980"),
        ("expired cars", "car", "expires < 2026-11-12"),
        ("cars that run on diesel", "car", "fuel = diesel"),
        ("cars whose inspection deadline has passed", "car", "inspection < 2026-11-12"),
    ],
)  # fmt: skip
def test_a_wording_becomes_its_conditions(question: str, model: str, found: str) -> None:
    (reading,) = read_question(question, OFFERS, vocabulary("en"), NOW, LEXICONS)
    assert (reading.dsl.model, conditions(reading), reading.not_understood) == (model, found, ())


@pytest.mark.parametrize(
    ("question", "order", "limit"),
    [
        ("which hotels are closest to the beach", ("beach", "asc"), None),
        ("most powerful car", ("power", "desc"), 1),
        ("the latest comedy", ("released", "desc"), 1),
        ("oldest car", ("year", "asc"), 1),
        ("which car costs the least", ("price", "asc"), 1),
    ],
)
def test_a_superlative_is_of_the_field_that_it_names(
    question: str, order: tuple[str, str], limit: int | None
) -> None:
    (reading,) = read_question(question, OFFERS, vocabulary("en"), NOW, LEXICONS)
    assert [(one.field, one.order) for one in reading.dsl.orders] == [order]
    assert (reading.dsl.limit, reading.not_understood) == (limit, ())


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("horses with a price below average", "below"),
        ("the fastest horse", "fastest"),
        ("horses between 9 and 11 am", "between"),
        ("bookings by the newest hotel", "newest"),
        ("hotels of the newest booking", "newest"),
        ("bookings for guests on a weekend", "weekend"),
    ],
)
def test_a_wording_that_no_field_is_for_is_reported_and_no_condition(
    question: str, word: str
) -> None:
    (reading,) = read_question(question, OFFERS, vocabulary("en"), NOW, LEXICONS)
    assert (conditions(reading), reading.dsl.orders, reading.dsl.aggregates) == ("", (), ())
    assert word in reading.not_understood
