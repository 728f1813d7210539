"""The payload that both engines store with a point, and the values that are read from it. Pure.

Payload fields are under `fields`. The embedded engine cannot match booleans, since its binding
converts them to numbers: they are stored as 0 and 1, and converted back by their declared type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from groundhook.core.types.fields import Fields, Scalar
from groundhook.core.types.filters import DOCUMENT
from groundhook.handlers.kb.balance import Sum, format_sums, parse_sums, sum_vectors
from groundhook.handlers.kb.language import PLAIN, language_of, script_of
from groundhook.handlers.kb.store.messages import unpack_vector
from groundhook.handlers.kb.store.port import DocumentRecord, FullDocument, Hit, Passage

DENSE, WORDS = "dense", "bm25"  # the two vectors of a point
HEADINGS = " › "  # between the headings above a passage
FIRST = "first"  # of the payload: the first passage of its document
LANGUAGE = "language"  # of the payload: see `language`
_TELLING_LENGTH = 120  # characters of a text that show which language of its script it is in
_UNCHANGED = ("passage", "content", "heading", "page", "start", "end")
_unchanged_of = itemgetter(*_UNCHANGED)


def language(passage: Passage, usual: str) -> str:
    """Return the language of a passage; the collection's `usual` one if the script is unknown or
    the text is too short to tell."""
    found = language_of(passage.content)
    latin = script_of(found) == "latin" and script_of(usual) in ("latin", "")
    if found == PLAIN or (latin and len(passage.content) < _TELLING_LENGTH):
        return usual
    return found


def language_sums(document: FullDocument, usual: str) -> dict[str, Sum]:
    """Return what the passages of a document add to the sums of their languages, rounded as it is
    stored."""
    given = [(language(each, usual), unpack_vector(each.vector)) for each in document.passages]
    return parse_sums(format_sums(sum_vectors(given)))


def point_payload(document: FullDocument, ordinal: int, usual: str) -> dict[str, Any]:
    """Return the payload of a passage in a collection of the `usual` language."""
    return {
        "tenant": document.tenant,
        "document": document.document,
        **({"fields": encode_fields(document.fields)} if document.fields else {}),
        **({FIRST: 1} if ordinal == 0 else {}),
        LANGUAGE: language(document.passages[ordinal], usual),
        **_passage_payload(document.passages[ordinal]),
    }


def full_document(
    stored: DocumentRecord,
    kept: Sequence[tuple[Mapping[str, Any], bytes]],
    types: Mapping[str, str],
) -> FullDocument:
    """Return a document with its passages, from their payloads and vectors in order."""
    fields = kept[0][0].get("fields", {}) if kept else {}
    return FullDocument(
        document=stored.document,
        tenant=stored.tenant,
        title=stored.title,
        url=stored.url,
        fingerprint=stored.fingerprint,
        bytes=stored.bytes,
        source=stored.source,
        fields=decode_fields(fields, types),
        passages=tuple(_parse_passage(payload, vector) for payload, vector in kept),
    )


def make_hit(
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
    shown = decode_fields(fields, types) if fields else {}
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


def payload_path(field: str) -> str:
    """Return the path of a field in the payload."""
    return "document" if field == DOCUMENT else f'fields."{field}"'


def encode_fields(fields: Fields) -> dict[str, Any]:
    """Return payload fields as the engines can match them."""
    return {
        name: [encode_value(v) for v in value] if isinstance(value, list) else encode_value(value)
        for name, value in fields.items()
    }


def decode_fields(stored: Mapping[str, Any], types: Mapping[str, str]) -> dict[str, Any]:
    """Return the payload fields that `encode_fields` converted."""
    return {
        name: [decode_value(v, types.get(name)) for v in value]
        if isinstance(value, list)
        else decode_value(value, types.get(name))
        for name, value in stored.items()
    }


def encode_value(value: Scalar) -> Any:
    return int(value) if isinstance(value, bool) else value


def decode_value(value: Any, type: str | None) -> Any:
    return bool(value) if type == "boolean" else value


def headings_before(passage: Passage) -> str:
    """Return the headings in the text of a passage before its content; "" if the text does not end
    with the content."""
    return (
        passage.text.removesuffix(passage.content) if passage.text.endswith(passage.content) else ""
    )


def _passage_payload(passage: Passage) -> dict[str, Any]:
    """Return the payload of a passage, without its vector."""
    kept = {name: getattr(passage, name) for name in _UNCHANGED}
    if passage.gap:
        kept["gap"] = passage.gap
    if passage.text.endswith(passage.content):
        kept["lead"] = headings_before(passage)
    else:
        kept["text"] = passage.text
    return kept


def _parse_passage(payload: Mapping[str, Any], vector: bytes) -> Passage:
    text = payload.get("text", payload.get("lead", "") + payload["content"])
    gap = payload.get("gap", "")  # passages of earlier versions have none
    return Passage(
        text=text, vector=vector, gap=gap, **{name: payload[name] for name in _UNCHANGED}
    )
