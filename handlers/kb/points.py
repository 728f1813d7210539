"""What both engines keep with a point: its payload, and the way back from it. Pure.

Payload fields stand under `fields`. The embedded engine's binding matches no booleans (they become
numbers on the way): they are stored as 0 and 1, and given back by their declared type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from groundhook.handlers.kb.balance import Sum, read, summed, written
from groundhook.handlers.kb.language import PLAIN, language_of, script_of
from groundhook.handlers.kb.store import Hit, Incoming, Passage, Stored, unpacked
from groundhook.host.core.types.fields import Fields, Scalar
from groundhook.host.core.types.filters import DOCUMENT

DENSE, WORDS = "dense", "bm25"  # the two vectors of a point
HEADINGS = " › "  # between the headings that a passage stands under
FIRST = "first"  # of the payload: the first passage of its document
LANGUAGE = "language"  # of the payload: see `language`
_PRIOR_LENGTH, _PRIOR_PASSAGES = 700, 32  # the mean length before a collection has one of its own
_TELLING = 120  # characters in which common words tell languages of one script apart
_AS_THEY_ARE = ("passage", "content", "heading", "page", "start", "end")
_AS_IT_IS = itemgetter(*_AS_THEY_ARE)


def language(passage: Passage, usual: str) -> str:
    """The language of a passage: the collection's `usual` one, where its text does not show it or
    its script is not known. A few words in Latin script show too little."""
    found = language_of(passage.content)
    latin = script_of(found) == "latin" and script_of(usual) in ("latin", "")
    if found == PLAIN or (latin and len(passage.content) < _TELLING):
        return usual
    return found


def sums(document: Incoming, usual: str) -> dict[str, Sum]:
    """What the passages of a document add to the means of their languages, as it is kept."""
    given = [(language(each, usual), unpacked(each.vector)) for each in document.passages]
    return read(written(summed(given)))


def payload(document: Incoming, ordinal: int, usual: str) -> dict[str, Any]:
    """What is kept with a passage of a document in a collection of the `usual` language."""
    return {
        "tenant": document.tenant,
        "document": document.document,
        **({"fields": stored_fields(document.fields)} if document.fields else {}),
        **({FIRST: 1} if ordinal == 0 else {}),
        LANGUAGE: language(document.passages[ordinal], usual),
        **_kept(document.passages[ordinal]),
    }


def incoming(
    stored: Stored, kept: Sequence[tuple[Mapping[str, Any], bytes]], types: Mapping[str, str]
) -> Incoming:
    """A document as it was put, from its passages' payloads and vectors in order."""
    fields = kept[0][0].get("fields", {}) if kept else {}
    return Incoming(
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
    """A passage as it is, whatever was asked. `types` are those of the payload fields."""
    passage, content, heading, page, start, end = _AS_IT_IS(payload)
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
    """Where a field stands in the payload."""
    return "document" if field == DOCUMENT else f'fields."{field}"'


def stored_fields(fields: Fields) -> dict[str, Any]:
    """Payload fields as the engines can match them."""
    return {
        name: [stored_value(v) for v in value] if isinstance(value, list) else stored_value(value)
        for name, value in fields.items()
    }


def shown_fields(stored: Mapping[str, Any], types: Mapping[str, str]) -> dict[str, Any]:
    """What `stored_fields` was made from."""
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
    """Characters in a passage: of what is there and what is coming, and a little of what is
    usual."""
    return (length + _PRIOR_LENGTH * _PRIOR_PASSAGES) / (passages + _PRIOR_PASSAGES)


def lead(passage: Passage) -> str:
    """What the text of a passage has before its content, which it ends with as a rule: the headings
    it stands under."""
    return (
        passage.text.removesuffix(passage.content) if passage.text.endswith(passage.content) else ""
    )


def _kept(passage: Passage) -> dict[str, Any]:
    """A passage without its vector."""
    kept = {name: getattr(passage, name) for name in _AS_THEY_ARE}
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
        text=text, vector=vector, gap=gap, **{name: payload[name] for name in _AS_THEY_ARE}
    )
