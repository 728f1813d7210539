"""The payload that both engines store with a point, and the values made from it. Pure.

Payload fields are under `fields`. The embedded engine cannot match booleans, since its binding
converts them to numbers: they are stored as 0 and 1, and converted back by their declared type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from groundhook.handlers.kb.balance import Sum, read, summed, written
from groundhook.handlers.kb.language import PLAIN, language_of, script_of
from groundhook.handlers.kb.messages import unpacked
from groundhook.handlers.kb.store import DocumentRecord, FullDocument, Hit, Passage
from groundhook.host.core.types.fields import Fields, Scalar
from groundhook.host.core.types.filters import DOCUMENT

DENSE, WORDS = "dense", "bm25"  # the two vectors of a point
HEADINGS = " › "  # between the headings above a passage
FIRST = "first"  # of the payload: the first passage of its document
LANGUAGE = "language"  # of the payload: see `language`
_PRIOR_LENGTH, _PRIOR_PASSAGES = 700, 32  # the assumed mean length, and how many passages it equals
_TELLING = 120  # characters of a text that show which language of its script it is in
_UNCHANGED = ("passage", "content", "heading", "page", "start", "end")
_unchanged_of = itemgetter(*_UNCHANGED)


def language(passage: Passage, usual: str) -> str:
    """Return the language of a passage: the collection's `usual` one if the text is too short to
    show it or its script is unknown."""
    found = language_of(passage.content)
    latin = script_of(found) == "latin" and script_of(usual) in ("latin", "")
    if found == PLAIN or (latin and len(passage.content) < _TELLING):
        return usual
    return found


def sums(document: FullDocument, usual: str) -> dict[str, Sum]:
    """Return what a document's passages add to the means of their languages, rounded as it is
    stored."""
    given = [(language(each, usual), unpacked(each.vector)) for each in document.passages]
    return read(written(summed(given)))


def payload(document: FullDocument, ordinal: int, usual: str) -> dict[str, Any]:
    """Return the payload of a passage in a collection of the `usual` language."""
    return {
        "tenant": document.tenant,
        "document": document.document,
        **({"fields": stored_fields(document.fields)} if document.fields else {}),
        **({FIRST: 1} if ordinal == 0 else {}),
        LANGUAGE: language(document.passages[ordinal], usual),
        **_kept(document.passages[ordinal]),
    }


def incoming(
    stored: DocumentRecord,
    kept: Sequence[tuple[Mapping[str, Any], bytes]],
    types: Mapping[str, str],
) -> FullDocument:
    """Return a document as it was put, from its passages' payloads and vectors in order."""
    fields = kept[0][0].get("fields", {}) if kept else {}
    return FullDocument(
        document=stored.document,
        tenant=stored.tenant,
        title=stored.title,
        url=stored.url,
        fingerprint=stored.fingerprint,
        bytes=stored.bytes,
        source=stored.source,
        fields=shown_fields(fields, types),
        passages=tuple(_restored(payload, vector) for payload, vector in kept),
    )


def hit(
    payload: Mapping[str, Any],
    types: Mapping[str, str],
    *,
    document: str,
    title: str,
    url: str,
    ordinal: int,
) -> Hit:
    """Return a passage from its payload. `types` are those of the payload fields."""
    passage, content, heading, page, start, end = _unchanged_of(payload)
    fields = payload.get("fields")
    shown = shown_fields(fields, types) if fields else {}
    return Hit(
        document,
        title,
        url,
        passage,
        content,
        heading,
        page,
        ordinal,
        start,
        end,
        shown,
        payload.get("gap", ""),
    )


def path_of(field: str) -> str:
    """Return the path of a field in the payload."""
    return "document" if field == DOCUMENT else f'fields."{field}"'


def stored_fields(fields: Fields) -> dict[str, Any]:
    """Return payload fields as the engines can match them."""
    return {
        name: [stored_value(v) for v in value] if isinstance(value, list) else stored_value(value)
        for name, value in fields.items()
    }


def shown_fields(stored: Mapping[str, Any], types: Mapping[str, str]) -> dict[str, Any]:
    """Return the payload fields that `stored_fields` converted."""
    return {
        name: [shown_value(v, types.get(name)) for v in value]
        if isinstance(value, list)
        else shown_value(value, types.get(name))
        for name, value in stored.items()
    }


def stored_value(value: Scalar) -> Any:
    return int(value) if isinstance(value, bool) else value


def shown_value(value: Any, type: str | None) -> Any:
    return bool(value) if type == "boolean" else value


def mean_length(length: int, passages: int) -> float:
    """Return the mean length of a passage in characters, with a prior for small collections."""
    return (length + _PRIOR_LENGTH * _PRIOR_PASSAGES) / (passages + _PRIOR_PASSAGES)


def lead(passage: Passage) -> str:
    """Return the headings that the text of a passage has before its content; "" if the text does
    not end with the content."""
    return (
        passage.text.removesuffix(passage.content) if passage.text.endswith(passage.content) else ""
    )


def _kept(passage: Passage) -> dict[str, Any]:
    """Return the payload of a passage, without its vector."""
    kept = {name: getattr(passage, name) for name in _UNCHANGED}
    if passage.gap:
        kept["gap"] = passage.gap
    if passage.text.endswith(passage.content):
        kept["lead"] = lead(passage)
    else:
        kept["text"] = passage.text
    return kept


def _restored(payload: Mapping[str, Any], vector: bytes) -> Passage:
    text = payload.get("text", payload.get("lead", "") + payload["content"])
    gap = payload.get("gap", "")  # passages of earlier versions have none
    return Passage(
        text=text, vector=vector, gap=gap, **{name: payload[name] for name in _UNCHANGED}
    )
