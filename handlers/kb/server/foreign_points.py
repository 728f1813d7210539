"""Points of another program as documents: what their payloads say, and the conditions that select
them. Pure.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qdrant_client import models

from groundhook.core.types.collection_spec import CollectionSpec, ExistingSpec
from groundhook.core.types.fields import Fields, Scalar
from groundhook.core.types.filters import DOCUMENT, Filter
from groundhook.handlers.kb.server import filter as conditions
from groundhook.handlers.kb.store.messages import pack_vector
from groundhook.handlers.kb.store.port import DocumentRecord, FullDocument, Hit, Passage

_LARGEST_ID = 2**64  # ids of points are numbers below this, or UUIDs
_Point = models.Record | models.ScoredPoint


@dataclass(frozen=True)
class ForeignPoints:
    """How the points of a collection are read: `spec` names the keys of their payloads."""

    spec: ExistingSpec
    declared: CollectionSpec

    def hit(self, point: _Point) -> Hit:
        payload = point.payload or {}
        id, text = str(point.id), self._text(payload)
        title = _words(_value(payload, self.spec.title)) or id
        address = _words(_value(payload, self.spec.address))
        return Hit(id, title, address, id, text, "", 0, 0, 0, len(text), self._fields(payload))

    def record(self, point: _Point) -> DocumentRecord:
        hit = self.hit(point)
        return DocumentRecord(
            document=hit.document,
            tenant=self._tenant(point.payload or {}),
            title=hit.title,
            url=hit.url,
            fingerprint="",
            chunks=1,
            bytes=len(hit.content.encode()),
        )

    def full_document(self, point: _Point, vector: str) -> FullDocument:
        hit, text = self.hit(point), self._text(point.payload or {})
        passage = Passage(
            passage=hit.document,
            content=text,
            text=text,
            vector=self.vector(point, vector),
            end=len(text),
        )
        return FullDocument(
            document=hit.document,
            title=hit.title,
            fingerprint="",
            passages=(passage,),
            tenant=self._tenant(point.payload or {}),
            url=hit.url,
            bytes=len(text.encode()),
            fields=hit.fields,
        )

    def vector(self, point: _Point, name: str) -> bytes:
        """Return a vector of a point; b"" without one."""
        vectors: Any = point.vector
        found = vectors.get(name) if isinstance(vectors, Mapping) else vectors
        return pack_vector(found) if found else b""

    def condition(
        self,
        tenant: str | None,
        filter: Filter | None = None,
        *,
        documents: Sequence[str] | None = None,
    ) -> models.Filter:
        """Return the condition for the points of a tenant (None: of all) that fulfil a filter."""
        must: list[models.Condition] = []
        if tenant is not None:
            must.append(_equals(self.declared.tenant_field, [tenant, *_number(tenant)]))
        if documents is not None:
            must.append(_has_id(documents))
        if filter is not None:
            must.append(conditions.condition(filter, _has_value, str))
        return models.Filter(must=must or None)

    def _text(self, payload: Mapping[str, Any]) -> str:
        parts = (_words(_value(payload, path)) for path in self.spec.text)
        return "\n\n".join(part for part in parts if part)

    def _tenant(self, payload: Mapping[str, Any]) -> str:
        field = self.declared.tenant_field
        return _words(_value(payload, field)) if field else ""

    def _fields(self, payload: Mapping[str, Any]) -> Fields:
        found = {name: _value(payload, name) for name in self.declared.fields}
        return {name: value for name, value in found.items() if _is_plain(value)}


def _value(payload: Mapping[str, Any], path: str) -> Any:
    """Return what a payload has at a path of keys with points between them; None if nothing."""
    value: Any = payload
    for key in path.split(".") if path else ():
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if path else None


def _words(value: Any) -> str:
    """Return a value of a payload as text; "" for what is no text, number or list of these."""
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        return ", ".join(part for part in map(_words, value) if part)
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else ""


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(each, (str, int, float, bool)) for each in value)
    return isinstance(value, (str, int, float, bool))


def _number(text: str) -> list[Scalar]:
    """Return the number that an id may be in a payload."""
    return [int(text)] if text.isascii() and text.isdecimal() and len(text) < 19 else []


def _has_id(documents: Collection[str]) -> models.Condition:
    ids: list[Any] = []
    for document in documents:
        if document.isascii() and document.isdecimal() and int(document[:20]) < _LARGEST_ID:
            ids.append(int(document))
        else:
            try:
                ids.append(str(uuid.UUID(document)))
            except ValueError:
                continue  # no point has such an id
    return models.HasIdCondition(has_id=ids)


def _equals(field: str, values: Collection[Scalar]) -> models.Condition:
    """Return the condition that a field, or an entry of its list, has one of the values."""
    return models.Filter(should=[_matches(field, value) for value in values])


def _matches(field: str, value: Scalar) -> models.Condition:
    if isinstance(value, float):
        return models.FieldCondition(key=field, range=models.Range(gte=value, lte=value))
    return models.FieldCondition(key=field, match=models.MatchValue(value=value))


def _has_value(field: str, values: Collection[Scalar]) -> models.Condition:
    if field == DOCUMENT:
        return _has_id([str(value) for value in values])
    return _equals(field, values)
