"""The models of the shop as questions reach them, and readings of questions about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from groundhook.core.types.model_spec import ModelSpec
from groundhook.handlers.db.model.schema import Schema, Schemas
from groundhook.handlers.db.question.languages import AUTO, words_for
from groundhook.handlers.db.question.lexicons import Lexicons, Offer, Samples
from groundhook.handlers.db.question.reading import Reading, read_question
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
    return reading.dsl.model, sorted(wheres), list(reading.not_understood)
