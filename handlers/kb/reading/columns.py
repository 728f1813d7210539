"""What the columns of a row mean: its id, title, text and address, by declaration or by their
names. Pure."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groundhook.handlers.kb.reading.markdown import markdown_blocks
from groundhook.handlers.kb.reading.rows import Row
from groundhook.host.core.errors import IngestError, Place, suggestion
from groundhook.host.core.types.collection_spec import RowSpec
from groundhook.host.core.types.documents import Document, DocumentField

_IDS = ("id", "_id", "key", "uuid", "slug", "sku")
_TITLES = ("title", "name", "subject", "headline", "question")
_URLS = ("url", "link", "href", "permalink")
_TEXTS = ("content", "text", "body", "description", "answer", "abstract", "summary")
_LONGEST_ID = 512


@dataclass(frozen=True)
class RowDocument:
    """A row as a document. `used` are the columns that became part of it; `own_id`: its id is its
    own, not made of its text."""

    id: str
    own_id: bool
    document: Document
    used: Collection[str]


@dataclass(frozen=True)
class _Roles:
    id: str
    title: str
    url: str
    text: tuple[str, ...]
    named: bool  # whether the text's columns are told in front of their values


class Columns:
    """The meaning of columns under one declaration. `apart` are columns that are no text by default
    (the tenant's)."""

    def __init__(self, spec: RowSpec, apart: Collection[str] = ()) -> None:
        self._spec = spec
        self._apart = apart
        self._known: dict[tuple[str, ...], _Roles] = {}

    def document(self, row: Row, name: str) -> RowDocument:
        """Raises IngestError, with the line, for a row without text, or without the columns that
        are declared."""
        if row.error:
            raise IngestError(row.error, place=Place(name, row.line))
        values = _flat(row.values)
        roles = self._roles(tuple(values), Place(name, row.line))
        parts = [(column, text) for column in roles.text if (text := _text(values.get(column)))]
        if not parts:
            wanted = ", ".join(repr(column) for column in roles.text) or "any column"
            raise IngestError(f"the row has no text in {wanted}", place=Place(name, row.line))
        content = (
            "\n".join(f"{column}: {text}" for column, text in parts)
            if roles.named
            else "\n\n".join(t for _, t in parts)
        )
        title = _text(values.get(roles.title)) if roles.title else ""
        id = (
            unicodedata.normalize("NFC", _text(values.get(roles.id)))[:_LONGEST_ID]
            if roles.id
            else ""
        )
        if roles.id and not id:
            raise IngestError(
                f"the row has nothing in its column {roles.id!r}", place=Place(name, row.line)
            )
        return RowDocument(
            id or hashlib.blake2b(f"{title}\0{content}".encode(), digest_size=6).hexdigest(),
            bool(id),
            Document(
                title=title or next(iter(content.splitlines()))[:80],
                text=content,
                blocks=markdown_blocks(content, 0),
                url=_text(values.get(roles.url)) if roles.url else "",
                fields={column: DocumentField(value, row.line) for column, value in values.items()},
            ),
            {roles.id, roles.title, roles.url, *roles.text},
        )

    def _roles(self, columns: tuple[str, ...], place: Place) -> _Roles:
        if columns not in self._known:
            if len(self._known) > 1000:  # rows of JSON may each have other keys
                self._known.clear()
            self._known[columns] = self._told_apart(columns, place)
        return self._known[columns]

    def _told_apart(self, columns: Sequence[str], place: Place) -> _Roles:
        spec = self._spec
        for column in (spec.id, *spec.text):
            if column and column not in columns:
                hint = suggestion(column, columns)
                raise IngestError(
                    f"the row has no column {column!r}, which `rows` declares",
                    place=place,
                    hint=hint,
                )
        id, title, url = (
            said or _first(names, columns)
            for said, names in ((spec.id, _IDS), (spec.title, _TITLES), (spec.url, _URLS))
        )
        text = spec.text or tuple(filter(None, [_first(_TEXTS, columns)]))
        rest = tuple(
            column for column in columns if column and column not in {id, title, url, *self._apart}
        )
        return _Roles(
            id,
            title,
            url,
            text or rest or tuple(filter(None, [title])),
            named=len(text) != 1 and len(rest) > 0,
        )


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a row; those of an object `fields` stand beside the others, which outrank
    them."""
    inner = values.get("fields")
    if not isinstance(inner, Mapping):
        return dict(values)
    return {**inner, **{key: value for key, value in values.items() if key != "fields"}}


def _first(names: Sequence[str], columns: Sequence[str]) -> str:
    lowered = {column.lower().strip(): column for column in reversed(columns)}
    return next((lowered[name] for name in names if name in lowered), "")


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value.replace("\r\n", "\n").replace("\r", "\n").replace("\0", " ").strip()
    if isinstance(value, (list, tuple)):
        return "\n\n".join(filter(None, (_text(each) for each in value)))
    return json.dumps(value, ensure_ascii=False)
