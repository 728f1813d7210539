"""Models that the questions of these tests are about, and readings of questions as text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from groundhook.core.types.model_spec import ModelSpec
from groundhook.core.types.query_language import Where
from groundhook.handlers.db.model.schema import Schemas
from groundhook.handlers.db.question.languages import words_for
from groundhook.handlers.db.question.lexicons import Lexicons, Offer
from groundhook.handlers.db.question.reading import Reading, read_question

NOW = datetime(2026, 11, 12, 10, tzinfo=UTC)
LEXICONS = Lexicons()
Column = dict[str, Any]


def column(name: str, type: str = "string", label: str = "", **more: Any) -> Column:
    return {"name": name, "type": type, "label": label, **more}


def date(name: str, label: str, **more: Any) -> Column:
    return column(name, "date", label, **more)


def number(name: str, label: str, unit: str = "", type: str = "integer") -> Column:
    return column(name, type, label, comment=unit)


def choice(name: str, label: str, *options: str) -> Column:
    return column(name, "enum", label, option=list(options))


COLUMNS: dict[str, list[Column]] = {
    "doctor": [
        column("name", label="Name"),
        date("born_on", "Date of birth"),
        date("hired_on", "Hired"),
        date("license_expires", "License expires"),
        number("salary", "Salary per year"),
        column("languages", label="Languages"),
        column("skills", "json", "Specialities"),
        column("city", label="City"),
        column("meal", label="Favourite meal"),
        column("retired", "boolean", "Retired"),
        number("experience", "Years of experience"),
        number("height", "Height", "cm"),
        choice("status", "Status", "active", "on leave"),
    ],
    "river": [
        column("name", label="Name"),
        number("length", "Length", "km"),
        number("width", "Width", "m"),
        column("state", label="State"),
    ],
    "lake": [
        column("name", label="Name"),
        number("area", "Area", "km²"),
        column("state", label="State"),
    ],
    "state": [
        column("name", label="Name"),
        number("area", "Area", "km²"),
        number("population", "Population"),
        column("capital", label="Capital"),
    ],
    "town": [column("name", label="Name"), column("state", label="State")],
    "book": [
        column("title", label="Title"),
        column("author", label="Author"),
        column("language", label="Language"),
        choice("genre", "Genre", "fiction", "history"),
        number("pages", "Pages"),
        number("price", "Price", type="decimal"),
        number("weight", "Weight", "grams"),
        number("published", "Year published"),
        date("added_on", "Added"),
        date("sold_on", "Sold", nullable=True),
        column("tags", "json", "Tags"),
        column("signed", "boolean", "Signed"),
    ],
    "parcel": [
        column("code", label="Code"),
        number("weight", "Weight", "kg", "decimal"),
        column("origin", label="Origin"),
        column("destination", label="Destination"),
        column("sent_at", "datetime", "Sent"),
        column("delivered_at", "datetime", "Delivered", nullable=True),
        number("transit", "Transit time", "hours"),
        column("insured", "boolean", "Insured"),
        number("cost", "Cost", type="decimal"),
    ],
}
LANGUAGES = ("English, Hebrew", "Hebrew", "English, French", "French, Hebrew", "English")
SAMPLES: dict[str, dict[str, Any]] = {
    "doctor": {
        "name": ("Dana Levi", "Omar Haddad"),
        "languages": LANGUAGES,
        "skills": ("Cardiology", "Pediatrics"),
        "city": ("Haifa", "Mountain View", "Nice"),
        "meal": ("Mountain View", "Curry"),
    },
    "river": {"name": ("Ohio", "Colorado"), "state": ("Colorado", "Ohio", "Texas")},
    "lake": {"name": ("Erie",), "state": ("Florida", "Ohio")},
    "state": {"name": ("Colorado", "Ohio", "Texas", "Florida"), "capital": ("Denver", "Austin")},
    "town": {"name": ("Waco",), "state": ("Texas", "Ohio")},
    "book": {
        "title": ("The Long Road", "Good Omens"),
        "author": ("Ada Sato", "Ben Ortiz"),
        "language": ("German", "English", "French"),
        "tags": ("illustrated", "rare"),
    },
    "parcel": {
        "code": ("P-100",),
        "origin": ("Oslo", "Rome"),
        "destination": ("Rome", "Oslo", "Paris"),
    },
}


def spec(model: str, values: list[dict[str, Any]] | None = None) -> ModelSpec:
    columns = [column("id", "ID"), *COLUMNS[model]]
    return ModelSpec.model_validate(
        {"id": model, "table": {"name": model}, "columns": columns, "values": values or []}
    )


def offers(samples: Mapping[str, Mapping[str, Any]], *models: str) -> list[Offer]:
    schemas = Schemas({model: spec(model) for model in models})
    return [Offer(schemas[model], samples.get(model, {})) for model in models]


OFFERS = {offer.schema.id: offer for offer in offers(SAMPLES, *COLUMNS)}


def readings(question: str, *models: str, language: str = "en") -> list[Reading]:
    offered = [OFFERS[model] for model in models]
    return read_question(question, offered, words_for(language, question), NOW, LEXICONS)


def read(question: str, model: str) -> Reading:
    (reading,) = readings(question, model)
    return reading


def text_of(where: Where) -> str:
    if where.any_of is not None:
        return f"({' or '.join(map(text_of, where.any_of))})"
    if where.all_of is not None:
        return f"({' and '.join(map(text_of, where.all_of))})"
    return f"{where.field} {where.op} {where.value}".removesuffix(" None")


def conditions(reading: Reading) -> str:
    """The conditions of a reading, without searches for words that were not understood."""
    wheres = [where for where in reading.dsl.wheres if where.field != "*"]
    return " and ".join(map(text_of, wheres))
