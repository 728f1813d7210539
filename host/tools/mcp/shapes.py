"""Conversion of MCP results to plain values, and of tools to function schemas for language models.
Pure functions."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from groundhook.core.concealed import shortened
from groundhook.core.errors import ToolFailed
from groundhook.core.json_text import read_json
from groundhook.host.tools.mcp.lines import Oversize

MAX_NAME = 64  # characters of a function's name in OpenAI's API
MAX_DESCRIPTION = 1024
MAX_NOTE = 300  # characters of a note in place of a block

UNREAD = "groundhook/unread"  # the key of the note of a block in its `_meta`
# The texts that each type of block needs; a resource may have data in place of its text.
_NEEDED = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource": ("uri", "text"),
    "blob": ("uri", "blob"),
    "resource_link": ("uri", "name"),
}

_FIRST = re.compile(rb'^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18})\s*,')
_LAST = re.compile(rb'[,{]\s*"id"\s*:\s*(\d{1,18})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


def answered_id(line: Oversize) -> int | None:
    """Return the id of the request that an oversized message answers, if it is the first or last
    member of the object; elsewhere, the result's content could forge it."""
    found = _FIRST.search(line.head) or _LAST.search(line.tail)
    return int(found[1]) if found else None


def text_of(result: Mapping[str, Any]) -> str:
    """Return the content of a tool's result as text, one block per line: texts, the texts of
    embedded resources, and a note for each other block."""
    return "\n".join(map(_block_text, result.get("content", ())))


def attachments_of(result: Mapping[str, Any]) -> str:
    """Return the blocks of a tool's result that are not plain text, as text."""
    blocks = [block for block in result.get("content", ()) if not _is_text(block)]
    return text_of({"content": blocks})


def unread_of(result: Mapping[str, Any]) -> list[str]:
    """Return the notes of the blocks whose content is not text, or that are of no known type."""
    notes = []
    for block in result.get("content", ()):
        if _is_binary(block):
            notes.append(_describe(block))
        elif UNREAD in (block.get("_meta") or {}):
            notes.append(str(block["_meta"][UNREAD]))
    return notes


def known_block(block: Any) -> Any:
    """Return a block of a tool's result; a text that names it in place of one that the protocol
    does not have, for which the SDK would refuse the whole result."""
    if not isinstance(block, Mapping) or _is_known(block):
        return block
    note = _describe(block)
    return {"type": "text", "text": f"[{note}: not read]", "_meta": {UNREAD: note}}


def _is_known(block: Mapping[str, Any]) -> bool:
    held, kind = block, block.get("type")
    if kind == "resource":
        resource = block.get("resource")
        held = resource if isinstance(resource, Mapping) else {}
        kind = "blob" if "blob" in held else kind
    needed = _NEEDED.get(str(kind), ())
    return bool(needed) and all(isinstance(held.get(key), str) for key in needed)


def _is_text(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "text" and UNREAD not in (block.get("_meta") or {})


def _block_text(block: Mapping[str, Any]) -> str:
    if block.get("type") == "text":
        return str(block.get("text", ""))
    resource = block.get("resource")
    if isinstance(resource, Mapping) and isinstance(resource.get("text"), str):
        return f"[{_describe(block)}]\n{resource['text']}"
    return f"[{_describe(block)}{': not read' if _is_binary(block) else ''}]"


def _is_binary(block: Mapping[str, Any]) -> bool:
    if block.get("type") in ("text", "resource_link"):
        return False
    resource = block.get("resource")
    return not (isinstance(resource, Mapping) and isinstance(resource.get("text"), str))


def _describe(block: Mapping[str, Any]) -> str:
    """Return `image, image/png, 12 kB`, or `resource file:///a.txt, text/plain`."""
    held = block.get("resource")
    about = held if isinstance(held, Mapping) else block
    kind = str(block.get("type", "part")).removesuffix("_link")
    named = " ".join(str(about[key]) for key in ("name", "uri") if about.get(key))
    data = about.get("data") or about.get("blob") or ""
    size = f"{max(1, len(data) * 3 // 4 // 1024)} kB" if isinstance(data, str) and data else ""
    words = (f"{kind} {named}".strip(), str(about.get("mimeType") or ""), size)
    return shortened(", ".join(filter(None, words)), MAX_NOTE)


def tool_result(result: dict[str, Any]) -> dict[str, Any]:
    """Return a tool's result for callers; a failure that the tool reports is in `error`."""
    if not result.get("isError"):
        return {
            key: value for key, value in result.items() if key in ("content", "structuredContent")
        }
    return {
        "content": result.get("content", []),
        "isError": True,
        "error": text_of(result) or "the tool failed without a message",
    }


def value_of(server: str, tool: str, result: Mapping[str, Any]) -> Any:
    """Return a tool's result as one value: its structured content, else the JSON in its text if it
    has nothing else, else its content as text. Raises ToolFailed for a result with `error`."""
    if "error" in result:
        raise ToolFailed(f"tool {tool!r} of MCP server {server!r} failed: {result['error']}")
    if "structuredContent" in result:
        return result["structuredContent"]
    text = text_of(result)
    if attachments_of(result):
        return text
    try:
        return parse_json(text)
    except ValueError:
        return text or result.get("content", [])


def parse_json(text: str) -> Any:
    """Parse untrusted JSON. Raises ValueError, also for text that is nested too deeply, for a
    number with too many digits, and for half of a surrogate pair, which cannot be encoded."""
    value = read_json(text)
    if "\\ud" in text.lower():
        json.dumps(value, ensure_ascii=False).encode()
    return value


def is_read_only(tool: Mapping[str, Any]) -> bool:
    """Return whether the server declares that repeating a call of the tool is safe."""
    hints = tool.get("annotations") or {}
    return bool(hints.get("readOnlyHint") or hints.get("idempotentHint"))


def prompt_arguments(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return a prompt's arguments as text, which the protocol requires; other values become
    JSON."""
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in arguments.items()
    }


def unique_names(tools: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return function names for tools: `server__tool` in the characters that OpenAI's API allows,
    at most 64. A name that is too long or not unique gets part of a hash. A tool has the same name
    in every turn as long as the set of tools does not change."""
    pairs = list(dict.fromkeys(tools))
    plain = {
        pair: "__".join(re.sub(r"[^A-Za-z0-9_-]", "_", part) for part in pair) for pair in pairs
    }
    taken = list(plain.values())
    return {
        pair: name if len(name) <= MAX_NAME and taken.count(name) == 1 else _hashed(pair, name)
        for pair, name in plain.items()
    }


def function_schema(name: str, tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool in the format of OpenAI's chat completions API."""
    description = tool.get("description") or tool.get("title") or ""
    parameters = {"type": "object", "properties": {}, **(tool.get("inputSchema") or {})}
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description[:MAX_DESCRIPTION],
            "parameters": parameters,
        },
    }


def _hashed(pair: tuple[str, str], name: str) -> str:
    mark = hashlib.sha256(json.dumps(pair).encode()).hexdigest()[:8]
    return f"{name[: MAX_NAME - 9]}_{mark}"
