"""Questions over trainers, rivers and books: rolling periods, negated verbs, the field that a verb
names, words that are no fillers, units, lists, ages, prefixes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from groundhook.core.types.model_spec import ModelSpec
from groundhook.core.types.query_language import Where
from groundhook.handlers.db.model.schema import Schemas
from groundhook.handlers.db.question.languages import words_for
from groundhook.handlers.db.question.lexicons import Offer
from groundhook.handlers.db.question.reading import Reading, read_question

NOW = datetime(2026, 11, 12, 10, tzinfo=UTC)
COLUMNS: dict[str, list[dict[str, object]]] = {
    "trainer": [
        {"name": "name", "type": "string", "label": "Name"},
        {"name": "born_on", "type": "date", "label": "Born"},
        {"name": "joined_on", "type": "date", "label": "Joined"},
        {"name": "salary", "type": "integer", "label": "Salary per year"},
        {"name": "languages", "type": "string", "label": "Languages"},
        {"name": "city", "type": "string", "label": "City"},
        {"name": "food", "type": "string", "label": "Favourite food"},
        {"name": "insured", "type": "boolean", "label": "Insured"},
        {"name": "status", "type": "enum", "label": "Status", "option": ["active", "paused"]},
    ],
    "river": [
        {"name": "name", "type": "string", "label": "Name"},
        {"name": "length", "type": "integer", "label": "Length", "comment": "km"},
        {"name": "width", "type": "integer", "label": "Width", "comment": "metres"},
    ],
    "book": [
        {"name": "title", "type": "string", "label": "Title"},
        {"name": "language", "type": "string", "label": "Language"},
        {"name": "genre", "type": "enum", "label": "Genre", "option": ["fiction", "history"]},
        {
            "name": "weight",
            "type": "integer",
            "label": "Weight",
            "comment": "grams",
            "nullable": True,
        },
        {"name": "sold_on", "type": "date", "label": "Sold", "nullable": True},
    ],
}
SAMPLES: dict[str, dict[str, tuple[str, ...]]] = {
    "trainer": {
        "languages": ("English, Hebrew", "Hebrew", "English, French", "French, Hebrew"),
        "city": ("Haifa", "Mountain View", "Nice"),
        "food": ("Mountain View", "Curry"),
    },
    "river": {"name": ("Ohio", "Green")},
    "book": {"language": ("German", "English")},
}


def spec(model: str, values: Sequence[dict[str, object]] = ()) -> ModelSpec:
    columns = [{"name": "id", "type": "ID"}, *COLUMNS[model]]
    return ModelSpec.model_validate(
        {"id": model, "table": {"name": model}, "columns": columns, "values": values}
    )


def read(question: str, model: str) -> Reading:
    schemas = Schemas({model: spec(model)})
    offer = Offer(schemas[model], SAMPLES[model])
    (reading,) = read_question(question, [offer], words_for("en", question), NOW)
    return reading


def text_of(where: Where) -> str:
    if where.any_of is not None:
        return f"({' or '.join(map(text_of, where.any_of))})"
    return f"{where.field} {where.op} {where.value}"


def text(reading: Reading) -> str:
    return " and ".join(map(text_of, reading.dsl.wheres))


def since(day: str) -> str:
    return f"sold_on >= {day} and sold_on < 2026-11-13"


@pytest.mark.parametrize(
    ("model", "question", "conditions"),
    [
        # rolling periods
        ("book", "books sold in the past 3 weeks", since("2026-10-22")),
        ("book", "books sold in the past month", since("2026-10-12")),
        ("book", "books sold over the most recent 6 weeks", since("2026-10-01")),
        ("book", "books sold in these 5 weeks", since("2026-10-08")),
        ("book", "books sold during the previous 10 days", since("2026-11-02")),
        # a "not" governs its clause
        ("book", "books not written in German", "language != German"),
        ("trainer", "trainers who do not speak English", "languages match none ['English']"),
        ("trainer", "trainers who do not live in Haifa", "city != Haifa"),
        # the field that the verb names, by its type and role
        ("trainer", "trainers since 2015", "joined_on >= 2015-01-01"),
        ("trainer", "trainers who joined in 2024 or later", "joined_on >= 2024-01-01"),
        # a value of two fields
        ("trainer", "trainers in Mountain View", "city = Mountain View"),
        ("trainer", "trainers with food Mountain View", "food = Mountain View"),
        # units
        ("river", "rivers longer than 1000 km", "length > 1000"),
        ("river", "rivers over 1000 km long", "length > 1000"),
        ("river", "rivers wider than 0.2 km", "width > 200"),
        ("book", "books heavier than 1.5 kg", "weight > 1500"),
        # lists
        ("trainer", "Hebrew trainers", "languages like Hebrew"),
        (
            "trainer",
            "trainers who speak French and Hebrew",
            "languages like French and languages like Hebrew",
        ),
        (
            "trainer",
            "trainers who speak French or Hebrew",
            "(languages like French or languages like Hebrew)",
        ),
        # ages
        ("trainer", "trainers aged 60 or more", "born_on <= 1966-11-12"),
        ("trainer", "trainers over 60", "born_on <= 1965-11-12"),
        ("trainer", "trainers under 18", "born_on > 2008-11-12"),
        ("trainer", "trainers younger than 40", "born_on > 1986-11-12"),
        ("trainer", "trainers older than 50 years", "born_on <= 1975-11-12"),
        (
            "trainer",
            "trainers between 20 and 30 years old",
            "born_on > 1995-11-12 and born_on <= 2006-11-12",
        ),
        # prefixes
        ("trainer", "uninsured trainers", "insured = False"),
        ("trainer", "inactive trainers", "status != active"),
        ("book", "nonfiction books", "genre != fiction"),
        # phrases are fillers
        ("trainer", "what kind of trainers do you know", ""),
    ],
)
def test_a_question_becomes_the_conditions_that_it_says(
    model: str, question: str, conditions: str
) -> None:
    assert text(read(question, model)) == conditions


@pytest.mark.parametrize("word", ["good", "great", "kind", "nice", "tall", "old"])
def test_an_adjective_that_nothing_defines_is_reported_and_not_searched_for(word: str) -> None:
    reading = read(f"{word} trainers in Haifa", "trainer")
    assert reading.not_understood == reading.left_out == (word,)
    assert text(reading) == "city = Haifa"


def test_periods_of_an_unknown_length_are_reported() -> None:
    reading = read("books sold in the past weeks", "book")
    assert reading.not_understood
    assert not reading.dsl.wheres


@pytest.mark.parametrize(
    ("question", "field"), [("newest trainer", "joined_on"), ("youngest trainer", "born_on")]
)
def test_persons_are_new_by_the_day_they_joined_and_young_by_their_birth(
    question: str, field: str
) -> None:
    (order,) = read(question, "trainer").dsl.orders
    assert (order.field, order.order) == (field, "desc")


def test_the_choice_among_two_fields_with_a_value_is_reported() -> None:
    assert "food" in " ".join(read("trainers in Mountain View", "trainer").notes)
    assert "food" in " ".join(read("Mountain View trainers", "trainer").notes)


def test_how_long_something_is_asks_for_what_the_record_says() -> None:
    reading = read("how long is the Ohio?", "river")
    assert (text(reading), reading.not_understood) == ("name = Ohio", ())
