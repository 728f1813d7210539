"""Memories as documents of a collection. Pure. The id of a document is that of the memory in
decimal digits; its text is exactly the content.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from groundhook.core.language.sentences import spans
from groundhook.core.types.collection_queries import CollectionDocument
from groundhook.core.types.fields import Fields, FieldValue
from groundhook.toolkits.memory.values import LARGEST_ID

LONGEST_PREVIEW = 400  # characters of a preview that is made
_LINK = re.compile(r"\[\[\s*([^\[\]:\s][^\[\]:\n]{0,127}?)\s*:\s*(\d{1,16})\s*\]\]")


def preview_of(content: str) -> str:
    """Return the first sentences of a memory's content, up to three, on one line."""
    preview, content = "", content.lstrip()[: LONGEST_PREVIEW * 4]
    for start, end in spans(content)[:3]:
        sentence = " ".join(content[start:end].split())
        if preview and len(preview) + len(sentence) >= LONGEST_PREVIEW:
            break
        preview = f"{preview} {sentence}".strip()
    if len(preview) <= LONGEST_PREVIEW:
        return preview
    return preview[:LONGEST_PREVIEW].rpartition(" ")[0] + " …"


def links_of(content: str) -> list[str]:
    """Return the links `[[collection:id]]` in a memory's content, each once, as `collection:id`."""
    found = (f"{name}:{int(id)}" for name, id in _LINK.findall(content) if int(id) <= LARGEST_ID)
    return list(dict.fromkeys(found))


def parsed_link(link: str) -> tuple[str, str]:
    """`backend:12` → the collection and the id."""
    name, _, id = link.rpartition(":")
    return name, id


def turn_of(conversation: str, turn: int | None) -> str:
    """Return the field `turn` of a memory that is a turn of a conversation, `chat 7:12`; "" of
    another one."""
    return f"{conversation}:{turn}" if conversation else ""


def turns_beside(fields: Fields, width: int) -> tuple[list[str], list[str]]:
    """Return the field `turn` of the turns up to `width` before a memory's, and of those after it,
    in their order; none of a memory that is no turn."""
    before: list[str] = []
    after: list[str] = []
    for value in values_in(fields, "turn"):
        conversation, _, number = value.rpartition(":")
        place = int(number) if number.isascii() and number.isdigit() and len(number) <= 16 else -1
        if conversation and place >= 0:
            before += [f"{conversation}:{each}" for each in range(max(0, place - width), place)]
            after += [f"{conversation}:{place + each + 1}" for each in range(width)]
    return before, after


def number_of(id: str) -> int | None:
    """Return the number of a memory from the id of its document; None for a document that is no
    memory, such as one that was put into the collection by other means."""
    number = int(id) if id.isascii() and id.isdigit() and len(id) <= 16 else LARGEST_ID + 1
    return number if number <= LARGEST_ID and str(number) == id else None


def document(
    id: int,
    *,
    title: str,
    content: str,
    preview: str = "",
    tags: Sequence[str] = (),
    supersedes: Sequence[int] = (),
    written: datetime | None,
    turn: str = "",
    tenant: str = "",
) -> CollectionDocument:
    """Return the document of a memory; a preview that is missing is made from the content, and
    marked as `made`."""
    fields: dict[str, FieldValue] = {
        "preview": preview.strip() or preview_of(content),
        "made": not preview.strip(),
        "tags": list(tags),
        "written": moment(written) if written else [],
        "supersedes": [str(old) for old in supersedes],
        "links": list(links_of(content)),
        "turn": turn or [],
    }
    return CollectionDocument(
        id=str(id),
        text=content,
        title=title,
        fields={name: value for name, value in fields.items() if value != []},
        tenant=tenant,
        # A made preview consists of sentences of the content.
        about="\n\n".join(filter(None, (preview.strip(), ", ".join(tags)))),
    )


def moment(value: datetime) -> str:
    """Return a time as collections store it; one without a zone is UTC."""
    try:
        moment = value.astimezone(UTC) if value.tzinfo else value
    except OverflowError:  # in the first or the last year, where the zone does not matter
        moment = value
    return f"{moment.replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def preview_in(fields: Fields, text: str) -> str:
    """Return the preview of a stored memory, also of a document that was not put as one."""
    preview = fields.get("preview")
    return preview if isinstance(preview, str) else preview_of(text)


def values_in(fields: Mapping[str, FieldValue], name: str) -> list[str]:
    """Return the values of a field as texts; a single value is a list of one."""
    value = fields.get(name, [])
    return [str(one) for one in (value if isinstance(value, list) else [value])]
