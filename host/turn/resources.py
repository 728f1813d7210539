"""Read resources of MCP servers as sources: those that a message refers to, and those that an
assistant's list of servers names.

A resource is read whole and becomes passages in reading order. Text is used as it is, HTML is
converted to Markdown, PDF to the text of its pages; anything else is an error.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from groundhook.core.errors import HostError, SourceError, SourceMalformed
from groundhook.core.ports import SourceResult, ToolServers, Warn
from groundhook.core.readers.pool import TextReaders
from groundhook.core.types.search import Item

HTML = ("text/html", "application/xhtml+xml")
LONGEST = 1500  # characters of a passage
MOST = 200  # passages of one resource
# Media types that are text, in addition to text/*, *+json and *+xml.
_TEXTS = (
    "application/json",
    "application/xml",
    "application/yaml",
    "application/javascript",
    "image/svg+xml",
)


async def read_resource(
    servers: ToolServers,
    server: str,
    name: str,
    uri: str,
    texts: TextReaders,
    warn: Warn,
) -> SourceResult:
    """Return the passages of a resource, each with a score of 1. `server` is a full id, `name` what
    the assistant calls it. Raises ServerError, SourceError."""
    contents = (await servers.ask(server, "resources/read", {"uri": uri}))["contents"]
    items: list[Item] = []
    for content in contents:
        where = str(content.get("uri") or uri)
        try:
            text = await _convert_to_text(content, where, texts)
        except HostError as exc:
            if len(contents) == 1:
                raise
            await warn(exc.code, str(exc))
            continue
        pieces = list(passages(text))
        if len(pieces) > MOST:
            await warn(
                "resource_cut",
                f"the resource {where!r} of MCP server {name!r} is long: of its {len(pieces)}"
                f" passages the first {MOST} are used",
            )
        items += [
            _make_item(server, name, where, number, piece)
            for number, piece in enumerate(pieces[:MOST])
        ]
    return SourceResult(items=tuple(items))


def passages(text: str) -> Iterator[str]:
    """Yield the paragraphs of a text, joined up to LONGEST characters; a longer one is cut at a
    space."""
    held = ""
    for paragraph in (piece.strip() for piece in text.replace("\r\n", "\n").split("\n\n")):
        while len(paragraph) > LONGEST:
            if held:
                yield held
                held = ""
            at = paragraph.rfind(" ", LONGEST // 2, LONGEST) + 1 or LONGEST
            yield paragraph[:at].strip()
            paragraph = paragraph[at:].strip()
        if held and len(held) + len(paragraph) + 2 > LONGEST:
            yield held
            held = ""
        held = f"{held}\n\n{paragraph}" if held and paragraph else held or paragraph
    if held:
        yield held


async def _convert_to_text(content: Mapping[str, Any], uri: str, texts: TextReaders) -> str:
    kind = str(content.get("mimeType") or "text/plain").partition(";")[0].strip().lower()
    if isinstance(content.get("text"), str):
        text: str = content["text"]
        return await texts.html(text) if kind in HTML else text
    data = _decode_bytes(content, uri)
    if kind == "application/pdf":
        return "\n\n".join(await texts.pdf(data))
    if kind.startswith("text/") or kind in _TEXTS or kind.endswith(("+json", "+xml")):
        text = data.decode("utf-8", "replace")
        return await texts.html(text) if kind in HTML else text
    raise SourceError(
        f"the resource {uri!r} is {kind}, which is not text",
        hint="a hook can read it: ctx.mcp.ReadResource",
    )


def _decode_bytes(content: Mapping[str, Any], uri: str) -> bytes:
    try:
        return base64.b64decode(content.get("blob") or "", validate=True)
    except (binascii.Error, TypeError, ValueError) as exc:
        raise SourceMalformed(f"the resource {uri!r} holds neither text nor base64") from exc


def _make_item(server: str, name: str, uri: str, number: int, text: str) -> Item:
    return Item(
        type="kb",
        title=_find_title(uri),
        content=text,
        url=uri if urlsplit(uri).scheme in ("http", "https") else "",
        score=1.0,
        document_id=uri,
        collection=f"mcp:{name}",
        key=f"mcp:{server}:{uri}#{number}",
    )


def _find_title(uri: str) -> str:
    parts = urlsplit(uri)
    return (
        (parts.path.rstrip("/").rpartition("/")[2] or parts.netloc or uri) if parts.scheme else uri
    )
