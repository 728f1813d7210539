"""Files that a message brings, as its parts have them. Pure.

{type: "file", file: {filename, file_data: "data:application/pdf;base64,…"}}
{type: "file", file: {filename, file_data: "https://example.org/report.pdf"}}
{type: "input_file", filename, file_data}
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol
from urllib.parse import unquote, unquote_to_bytes, urlsplit

from groundhook.core.errors import UsageError
from groundhook.core.types.collection_spec import EmbeddingSpec
from groundhook.core.types.search import Item

COLLECTION = "attached"  # of the passages of such files; no collection of the app
LONGEST_NAME = 200
FILES = ("file", "input_file")
_DATA_URL = re.compile(
    r"data:(?P<type>[\w.+-]{1,100}/[\w.+-]{1,100})?(?:;[\w.+=-]{1,100}){0,4}?(?P<base64>;base64)?,",
    re.ASCII,
)
_CONTENTS = ("file_data", "file_url", "url")
_ADDRESSES = ("https://", "http://")


@dataclass(frozen=True)
class AttachedPart:
    """A file of a message: its content as a data URL, or its https address; `id` is that of a file
    which the chat already has. `media_type` is empty if it is not known."""

    name: str
    media_type: str = ""
    data_url: str = ""
    address: str = ""
    id: str = ""

    @property
    def data(self) -> bytes:
        """The content of the data URL. Raises UsageError."""
        return data_of(self.data_url, self.name)

    @cached_property
    def key(self) -> str:
        """A digest of the file, the same wherever it is attached."""
        content = self.data_url.partition(",")[2] or self.address
        return hashlib.sha256(f"{self.name}\0{content}".encode(errors="replace")).hexdigest()[:32]


@dataclass(frozen=True)
class AttachedPassage:
    """A part of a file, at characters `start` to `end` of its text. `page` counts from 1; 0 in a
    format without pages."""

    text: str
    start: int
    end: int
    heading: str = ""
    page: int = 0


class AttachedText(Protocol):
    """The text of a file in passages."""

    @property
    def passages(self) -> Sequence[AttachedPassage]:
        """The passages in reading order."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """Sentences on what could not be read, for the reader."""
        ...

    async def best(
        self, question: str, most: int, /, *, embedding: EmbeddingSpec, embedding_ms: int
    ) -> list[tuple[int, float]]:
        """Return the positions of the passages that fit the question, the best first, each with a
        score of 0-1: by words and by the meaning that `embedding` gives them, or by words alone
        where that takes longer than `embedding_ms`."""
        ...


class AttachedReader(Protocol):
    """Reads files that a message brings."""

    async def read(self, name: str, media_type: str, data: bytes, /) -> AttachedText:
        """Return the text of a file. Raises IngestError."""
        ...


def attached_part(part: Mapping[str, Any]) -> AttachedPart | None:
    """Return the file of a part; None for a part of another type. Raises UsageError."""
    if part.get("type") not in FILES:
        return None
    given = part.get("file", part)
    if not isinstance(given, Mapping):
        raise UsageError("a file part must hold file: {filename, file_data}")
    content = next((given[key] for key in _CONTENTS if given.get(key)), "")
    if not isinstance(content, str) or not (content or given.get("file_id")):
        raise UsageError(
            "a file part has no content", hint="file_data: a data URL, or an https address"
        )
    kind = _text(given.get("media_type"))
    if content and not content.startswith(("data:", *_ADDRESSES)):
        content = f"data:{kind};base64,{content}"  # base64 alone, as some clients send it
    return _attached(given, content, kind)


def attached_picture(part: Mapping[str, Any]) -> AttachedPart | None:
    """Return the picture of a part, as a file; None for a part of another type."""
    if part.get("type") != "image_url":
        return None
    given = part.get("image_url")
    image = {"url": given} if isinstance(given, str) else given
    if not isinstance(image, Mapping):
        return None
    url = _text(image.get("url"))
    if url and not url.startswith(("data:", *_ADDRESSES)):
        return None
    return _attached({"filename": "picture", **part, **image}, url, _text(image.get("media_type")))


def _attached(given: Mapping[str, Any], content: str, kind: str) -> AttachedPart:
    """Return the file of a part with its content: a data URL, an address, or ""."""
    name, id = _name(_text(given.get("filename"))), _text(given.get("file_id"))
    if content.startswith(_ADDRESSES):
        return AttachedPart(name or _name_in(content), kind, address=content)
    found = _DATA_URL.match(content)
    kind = kind or (found["type"] if found else "") or ""
    return AttachedPart(name or "file", kind, data_url=content, id=id)


class WrongFile(UsageError):
    """The content of a file or picture in a request is not what it says."""


def data_of(url: str, name: str) -> bytes:
    """Return the bytes of a data URL. Raises WrongFile."""
    head = _DATA_URL.match(url)
    body = url[head.end() :] if head else ""
    if head is None or not head["base64"]:
        if head is None:
            raise WrongFile(f"the file {name!r} is no data URL and no https address")
        return unquote_to_bytes(body)
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError) as exc:
        raise WrongFile(f"the file {name!r} is not valid base64") from exc


def data_url(data: bytes, media_type: str = "") -> str:
    """Return bytes as a data URL."""
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


def is_attached(item: Item) -> bool:
    """Return whether an item is a passage of a file that a message brought."""
    return item.type == "kb" and item.collection == COLLECTION and item.key.startswith("file:")


def _text(given: Any) -> str:
    return given if isinstance(given, str) else ""


def _name(given: str) -> str:
    """Return the last step of a name, since some clients send a path."""
    name = given.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return " ".join(name.split())[-LONGEST_NAME:]


def _name_in(address: str) -> str:
    try:
        parts = urlsplit(address)
    except ValueError:
        return "file"
    return _name(unquote(parts.path)) or _name(parts.netloc) or "file"
