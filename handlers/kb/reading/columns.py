"""Assign the columns of a row to its id, title, text and address, by declaration or by their names.
Pure."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groundhook.core.errors import IngestError, Place, suggestion
from groundhook.core.types.collection_spec import RowSpec
from groundhook.core.types.documents import Document, DocumentField
from groundhook.handlers.kb.reading.markdown import markdown_blocks
from groundhook.handlers.kb.reading.rows import FileRow
from groundhook.handlers.kb.reading.text import MARK, stray_nuls

_IDS = ("id", "_id", "key", "uuid", "slug", "sku")
_TITLES = ("title", "name", "subject", "headline", "question")
_URLS = ("url", "link", "href", "permalink")
_TEXTS = ("content", "text", "body", "description", "answer", "abstract", "summary")
_LONGEST_ID = 512
ABOUT = "__about"  # column of documents of toolkits: what searches find them by


@dataclass(frozen=True)
class RowDocument:
    """A row as a document. `used` are the columns that are part of it. `own_id`: the id is from a
    column, not a hash of the text."""

    id: str
    own_id: bool
    document: Document
    used: Collection[str]


@dataclass(frozen=True)
class _Roles:
    """The column of each part of a document; "" if there is none."""

    id: str
    title: str
    url: str
    text: tuple[str, ...]
    named: bool  # whether each value of the text follows the name of its column


class Columns:
    """Converts rows to documents under one declaration. `apart` are columns that are not text by
    default (the tenant's)."""

    def __init__(self, spec: RowSpec, apart: Collection[str] = ()) -> None:
        self._spec = spec
        self._apart = apart
        self._known: dict[tuple[str, ...], _Roles] = {}

    def document(self, row: FileRow, name: str) -> RowDocument:
        """Return the row as a document. Raises IngestError, with the line, for a row without text
        or without a declared column."""
        place = Place(name, row.line)
        if row.error:
            raise IngestError(row.error, place=place)
        values = _flatten(row.values)
        roles = self._roles(tuple(values), place)
        content = _content(values, roles, place)
        notes = _nul_notes(values, place)
        title = _text_in(values, roles.title)
        own_id = _own_id(values, roles, place)
        return RowDocument(
            own_id or hashlib.blake2b(f"{title}\0{content}".encode(), digest_size=6).hexdigest(),
            bool(own_id),
            Document(
                title=title or next(iter(content.splitlines()))[:80],
                text=content,
                blocks=markdown_blocks(content, 0),
                url=_text_in(values, roles.url),
                fields={column: DocumentField(value, row.line) for column, value in values.items()},
                notes=notes,
                about=_text_in(values, ABOUT),
            ),
            {roles.id, roles.title, roles.url, *roles.text, ABOUT},
        )

    def _roles(self, columns: tuple[str, ...], place: Place) -> _Roles:
        if columns not in self._known:
            if len(self._known) > 1000:  # rows of JSON may each have other keys
                self._known.clear()
            self._known[columns] = self._assign_roles(columns, place)
        return self._known[columns]

    def _assign_roles(self, columns: Sequence[str], place: Place) -> _Roles:
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
            declared or _first(names, columns)
            for declared, names in ((spec.id, _IDS), (spec.title, _TITLES), (spec.url, _URLS))
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


def _flatten(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a row, with those of an object `fields` beside the others. A value
    outside `fields` wins."""
    inner = values.get("fields")
    if not isinstance(inner, Mapping):
        return dict(values)
    return {**inner, **{key: value for key, value in values.items() if key != "fields"}}


def _content(values: Mapping[str, Any], roles: _Roles, place: Place) -> str:
    """Return the text of a row. Raises IngestError if it has none."""
    parts = [(column, text) for column in roles.text if (text := _text(values.get(column)))]
    if not parts:
        wanted = ", ".join(map(repr, roles.text)) or "any column"
        raise IngestError(f"the row has no text in {wanted}", place=place)
    if roles.named:
        return "\n".join(f"{column}: {text}" for column, text in parts)
    return "\n\n".join(text for _, text in parts)


def _nul_notes(values: Mapping[str, Any], place: Place) -> tuple[str, ...]:
    """Return the note on NUL characters in a row. Raises IngestError if it has many."""
    texts = [value for value in values.values() if isinstance(value, str)]
    size, count = sum(map(len, texts)), sum(text.count("\0") for text in texts)
    return tuple(f"line {place.line}: {note}" for note in stray_nuls(count, size, "the row", place))


def _own_id(values: Mapping[str, Any], roles: _Roles, place: Place) -> str:
    """Return the id in the row; "" if no column has ids. Raises IngestError if the column is
    empty in this row."""
    id = unicodedata.normalize("NFC", _text_in(values, roles.id))[:_LONGEST_ID]
    if roles.id and not id:
        raise IngestError(f"the row has no value in its column {roles.id!r}", place=place)
    return id


def _text_in(values: Mapping[str, Any], column: str) -> str:
    return _text(values.get(column)) if column else ""


def _first(names: Sequence[str], columns: Sequence[str]) -> str:
    """Return the column whose name is earliest in `names`; case does not matter."""
    lowered = {column.lower().strip(): column for column in reversed(columns)}
    return next((lowered[name] for name in names if name in lowered), "")


def _text(value: Any) -> str:
    """Return a value as text: the elements of a list as paragraphs, other values as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        plain = value.lstrip(MARK).replace("\r\n", "\n").replace("\r", "\n")
        return plain.replace("\0", " ").strip()
    if isinstance(value, (list, tuple)):
        return "\n\n".join(filter(None, (_text(each) for each in value)))
    return json.dumps(value, ensure_ascii=False)
