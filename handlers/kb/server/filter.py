"""Conditions for a Qdrant server: filters on payload fields, and those that select visible points.
Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from qdrant_client import models

from groundhook.core.types.fields import Scalar
from groundhook.core.types.filters import Both, Exists, Filter, Not, OneOf, Range
from groundhook.handlers.kb.store.points import LANGUAGE, encode_value, payload_path

RECORD, SETTINGS = "document", "made"  # `kind` of records; passages have none


def of_passages(
    tenant: str | None,
    excluded: Collection[str],
    among: Filter | None,
    spoken: Sequence[models.Condition] = (),
) -> models.Filter:
    """Return the condition for passages that a search may find."""
    must = [*_tenant(tenant), *([_condition(among)] if among else []), *spoken]
    must_not = [equals("hidden", True), *([one_of("version", excluded)] if excluded else [])]
    return models.Filter(must=must or None, must_not=must_not)


def of_language(language: str, languages: Sequence[str]) -> list[models.Condition]:
    """Return the condition for passages in a language. The first of several includes all that are
    in none of the others."""
    if len(languages) == 1:
        return []
    if language != languages[0]:
        return [equals(LANGUAGE, language)]
    return [models.Filter(must_not=[one_of(LANGUAGE, languages[1:])])]


def of_tenant(tenant: str) -> models.Filter:
    return models.Filter(must=_tenant(tenant))


def of_records(
    tenant: str | None,
    among: Filter | None = None,
    *,
    documents: Sequence[str] | None = None,
    source: str = "",
) -> models.Filter:
    """Return the condition for records of documents. `tenant` None: of all; `source`: those that
    come from that file or folder, and those of an earlier version, which lack it."""
    must = [equals("kind", RECORD), *_tenant(tenant), *([_condition(among)] if among else [])]
    if documents is not None:
        must.append(one_of("document", documents))
    if source:
        unsaid = models.IsEmptyCondition(is_empty=models.PayloadField(key="within"))
        must.append(models.Filter(should=[equals("within", source), unsaid]))
    return models.Filter(must=must)


def of_record(id: str) -> models.Filter:
    return models.Filter(must=[models.HasIdCondition(has_id=[id])])


def of_versions(versions: Collection[str]) -> models.Filter:
    """Return the condition for passages of versions of documents."""
    return models.Filter(must=[one_of("version", versions)], must_not=[equals("kind", RECORD)])


def of_documents(tenant: str, documents: Collection[str], *, shown: bool = False) -> models.Filter:
    """Return the condition for documents' passages of all versions, or of those that are shown."""
    hidden = [equals("hidden", True)] if shown else []
    return models.Filter(
        must=[*_tenant(tenant), one_of("document", documents)],
        must_not=[*hidden, equals("kind", RECORD)],
    )


def equals(key: str, value: str | bool) -> models.Condition:
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


def one_of(key: str, values: Collection[Any]) -> models.Condition:
    return models.FieldCondition(key=key, match=models.MatchAny(any=list(values)))


def _tenant(tenant: str | None) -> list[models.Condition]:
    return [] if tenant is None else [equals("tenant", tenant)]


def _condition(filter: Filter) -> models.Condition:
    return condition(filter, _has_value, payload_path)


def _has_value(field: str, values: Collection[Scalar]) -> models.Condition:
    return one_of(payload_path(field), [encode_value(value) for value in values])


def condition(
    filter: Filter,
    has_value: Callable[[str, Collection[Scalar]], models.Condition],
    path: Callable[[str], str],
) -> models.Condition:
    """Return the condition for payloads. `has_value` makes that for a field with one of some
    values, `path` returns the key of a field in the payload."""
    match filter:
        case OneOf(field, values):
            return has_value(field, values)
        case Range(field, gt, gte, lt, lte):
            moments = any(isinstance(bound, str) for bound in (gt, gte, lt, lte))
            kind: Any = models.DatetimeRange if moments else models.Range
            return models.FieldCondition(
                key=path(field), range=kind(gt=gt, gte=gte, lt=lt, lte=lte)
            )
        case Exists(field):
            empty = models.IsEmptyCondition(is_empty=models.PayloadField(key=path(field)))
            return models.Filter(must_not=[empty])
        case Not(one):
            return models.Filter(must_not=[condition(one, has_value, path)])
        case Both("and", parts):
            return models.Filter(must=[condition(part, has_value, path) for part in parts])
        case Both(_, parts):
            return models.Filter(should=[condition(part, has_value, path) for part in parts])
