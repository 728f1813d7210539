"""The parts of a message that a model takes. Pure.

A part that the model does not take is replaced by a note with its name, type and size; its content
is never sent as text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from groundhook.core.concealed import shortened
from groundhook.core.ports import Notice
from groundhook.core.types.connector_spec import ConnectorSpec
from groundhook.core.types.turn import MEDIA, Message

TEXTS = ("text", "input_text", "output_text")
LONGEST_NAME = 100  # characters of a name in a note
_NAMES = ("filename", "file_name", "name", "title")
_TYPES = ("media_type", "mime_type", "mimeType", "mediaType", "format")
# What the host knows of a picture: endpoints refuse keys that they do not know.
_OF_THE_HOST = frozenset(("filename", "media_type", "bytes"))
_CONTENTS = ("file_data", "data", "url")
_DATA_URL = re.compile(r"data:(?P<type>[\w./+-]{1,100})?(?:;[\w=-]{1,100}){0,4},")


# Whether a model reads a part.
_Reads = Callable[[Mapping[str, Any]], bool]


def can_read(part: Mapping[str, Any], spec: ConnectorSpec, defaults: Mapping[str, bool]) -> bool:
    """Return whether a model has the capability that a part needs. `defaults` is what models of the
    connector's type can do where its file does not say it."""
    kind = str(part.get("type"))
    if kind in TEXTS:
        return is_text(part)
    needed = MEDIA[kind][0] if kind in MEDIA else ""
    return bool(needed) and spec.can(needed, defaults.get(needed, False))


def read_parts(parts: Sequence[Mapping[str, Any]], reads: _Reads) -> list[dict[str, Any]]:
    """Return the parts for a model, without data parts, which only the host understands. An image
    whose address is a text becomes OpenAI's object, without its name."""
    return [
        _as_object(part) if reads(part) else {"type": "text", "text": note(part)}
        for part in parts
        if part.get("type") != "data"
    ]


def is_text(part: Mapping[str, Any]) -> bool:
    """Return whether a part is text, which every connector reads."""
    return part.get("type") in TEXTS and isinstance(part.get("text"), str)


def notices(
    messages: Sequence[Message],
    name: str,
    reads: _Reads,
    *,
    hint: str = "capabilities of connector {name!r} says what its model reads",
) -> Iterator[Notice]:
    """Yield a warning for each part of the last user message that the model does not read."""
    last = next((each for each in reversed(messages) if each.role == "user"), None)
    content = last.content if last is not None else None
    for part in content if isinstance(content, list) else ():
        if part.get("type") != "data" and not reads(part):
            yield Notice(
                "part_not_read",
                f"a part of the message was not read: {_describe(part)}",
                hint=hint.format(name=name),
            )


def note(part: Mapping[str, Any]) -> str:
    """Return the text that replaces a part that the model does not take."""
    return f"[{_describe(part)}: not read by this model]"


def _describe(part: Mapping[str, Any]) -> str:
    """Return `file report.pdf, application/pdf, 12 kB`, with what is known of it."""
    kind = str(part.get("type", ""))
    word = MEDIA[kind][1] if kind in MEDIA else f"part of type {shortened(kind, 40)!r}"
    levels = [part, *(value for value in part.values() if isinstance(value, Mapping))]
    name = shortened(_find(levels, _NAMES), LONGEST_NAME)
    content = _find(levels, _CONTENTS)
    if not content and isinstance(image := part.get("image_url"), str):
        content = image
    url = _DATA_URL.match(content)
    type = _find(levels, _TYPES) or (url["type"] if url else "") or ""
    data = content[url.end() :] if url else "" if "://" in content[:20] else content
    size = f"{max(1, len(data) * 3 // 4 // 1024)} kB" if data else ""
    return ", ".join(filter(None, (f"{word} {name}".strip(), shortened(type, 60), size)))


def _find(levels: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    found = (level.get(name) for level in levels for name in names)
    return next((value for value in found if isinstance(value, str) and value), "")


def _as_object(part: Mapping[str, Any]) -> dict[str, Any]:
    if part.get("type") in TEXTS:
        return {**part, "type": "text"}
    image = part.get("image_url")
    if part.get("type") == "image_url" and isinstance(image, str):
        return {**part, "image_url": {"url": image}}
    if part.get("type") == "image_url" and isinstance(image, Mapping):
        kept = {key: value for key, value in image.items() if key not in _OF_THE_HOST}
        return {**part, "image_url": kept}
    return dict(part)
