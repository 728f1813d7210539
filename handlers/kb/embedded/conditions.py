"""Conditions on passages, as the embedded vector engine takes them. `server.filter` has those of a
Qdrant server."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import qdrant_edge as engine

from groundhook.core.types.filters import Both, Exists, Filter, Not, OneOf, Range
from groundhook.handlers.kb.store.points import FIRST, LANGUAGE, encode_value, payload_path

FIRST_PASSAGES = engine.FieldCondition(FIRST, match=engine.MatchValue(1))


def equals(field: str, value: str | int) -> engine.FieldCondition:
    return engine.FieldCondition(field, match=engine.MatchValue(value))


def in_language(language: str, languages: Sequence[str]) -> list[Any]:
    """Return the conditions for passages in a language. The first of several includes all that are
    in none of the others."""
    if len(languages) == 1:
        return []
    if language != languages[0]:
        return [equals(LANGUAGE, language)]
    others = engine.FieldCondition(LANGUAGE, match=engine.MatchAny(list(languages[1:])))
    return [engine.Filter(must_not=[others])]


def filter_of(
    tenant: str | None, hidden: Collection[int], among: Filter | None, more: Sequence[Any] = ()
) -> engine.Filter | None:
    must = [
        *([equals("tenant", tenant)] if tenant is not None else []),
        *([_condition(among)] if among else []),
        *more,
    ]
    if not must and not hidden:
        return None
    # A filter on generations makes the engine's plan twice as slow, so it is there only while a
    # document is being replaced.
    return engine.Filter(
        must=must or None,
        must_not=[engine.FieldCondition("generation", match=engine.MatchAny(sorted(hidden)))]
        if hidden
        else None,
    )


def _condition(filter: Filter) -> Any:
    match filter:
        case OneOf(field, values):
            # An empty list of values matches no passage, as it should.
            return engine.FieldCondition(
                payload_path(field),
                match=engine.MatchAny([encode_value(value) for value in values]),
            )
        case Range(field, gt, gte, lt, lte):
            moments = any(isinstance(bound, str) for bound in (gt, gte, lt, lte))
            kind: Any = engine.RangeDateTime if moments else engine.RangeFloat
            return engine.FieldCondition(
                payload_path(field), range=kind(gt=gt, gte=gte, lt=lt, lte=lte)
            )
        case Exists(field):
            return engine.Filter(must_not=[engine.IsEmptyCondition(payload_path(field))])
        case Not(one):
            return engine.Filter(must_not=[_condition(one)])
        case Both("and", parts):
            return engine.Filter(must=[_condition(part) for part in parts])
        case Both(_, parts):
            return engine.Filter(should=[_condition(part) for part in parts])
