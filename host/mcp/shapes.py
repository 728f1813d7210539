"""What MCP messages hold, as plain data, and how tools of servers are shown to language models.
Pure functions."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from groundhook.host.core.errors import ToolFailed
from groundhook.host.mcp.lines import Oversize

LONGEST_NAME = 64  # of a function, in OpenAI's API
LONGEST_DESCRIPTION = 1024

_FIRST = re.compile(rb'^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18})\s*,')
_LAST = re.compile(rb'[,{]\s*"id"\s*:\s*(\d{1,18})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


def answered(line: Oversize) -> int | None:
    """Which request a message answers of which only the two ends are known: its id stands before or
    behind everything else, where nothing inside the result can forge it."""
    found = _FIRST.search(line.head) or _LAST.search(line.tail)
    return int(found[1]) if found else None


def text_of(result: Mapping[str, Any]) -> str:
    """The text in the content of a tool's result, a line for each block."""
    return "\n".join(
        block["text"] for block in result.get("content", ()) if block.get("type") == "text"
    )


def with_error(result: dict[str, Any]) -> dict[str, Any]:
    """A tool's result as callers get it: where the tool reports a failure, `error` says which."""
    if not result.get("isError"):
        return {
            key: value for key, value in result.items() if key in ("content", "structuredContent")
        }
    return {
        "content": result.get("content", []),
        "isError": True,
        "error": text_of(result) or "the tool failed and did not say why",
    }


def value_of(server: str, tool: str, result: Mapping[str, Any]) -> Any:
    """What a tool answered, as one value: its structured content, else the JSON in its text, else
    its text; where it has no text, its content. Raises ToolFailed for a result with `error`."""
    if "error" in result:
        raise ToolFailed(f"tool {tool!r} of MCP server {server!r} failed: {result['error']}")
    if "structuredContent" in result:
        return result["structuredContent"]
    text = text_of(result)
    try:
        return loaded(text)
    except ValueError:
        return text or result.get("content", [])


def loaded(text: str) -> Any:
    """The value of JSON text that somebody else wrote. Raises ValueError, also for what is nested
    too deeply, and for half a surrogate pair, which cannot be sent on to anybody."""
    try:
        value = json.loads(text)
    except RecursionError as exc:
        raise ValueError("nested too deeply") from exc
    except json.JSONDecodeError:
        raise
    except ValueError as exc:
        raise ValueError("a number has too many digits") from exc
    if "\\ud" in text.lower():
        json.dumps(value, ensure_ascii=False).encode()
    return value


def only_reads(tool: Mapping[str, Any]) -> bool:
    """Whether the server says that calling a tool twice does no harm."""
    hints = tool.get("annotations") or {}
    return bool(hints.get("readOnlyHint") or hints.get("idempotentHint"))


def prompt_arguments(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Arguments of a prompt are text in the protocol: other values become JSON."""
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in arguments.items()
    }


def unique_names(tools: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Names for tools of servers that a language model may call: `server__tool` with the signs that
    OpenAI's API allows, at most 64 of them. Where two would be the same, or one is too long, a
    piece of a hash tells them apart; a tool has the same name in every turn as long as its
    neighbours do not change."""
    pairs = list(dict.fromkeys(tools))
    plain = {
        pair: "__".join(re.sub(r"[^A-Za-z0-9_-]", "_", part) for part in pair) for pair in pairs
    }
    taken = list(plain.values())
    return {
        pair: name if len(name) <= LONGEST_NAME and taken.count(name) == 1 else _hashed(pair, name)
        for pair, name in plain.items()
    }


def function(name: str, tool: Mapping[str, Any]) -> dict[str, Any]:
    """A tool as OpenAI's chat completions API takes it."""
    said = tool.get("description") or tool.get("title") or ""
    parameters = {"type": "object", "properties": {}, **(tool.get("inputSchema") or {})}
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": said[:LONGEST_DESCRIPTION],
            "parameters": parameters,
        },
    }


def _hashed(pair: tuple[str, str], name: str) -> str:
    mark = hashlib.sha256(json.dumps(pair).encode()).hexdigest()[:8]
    return f"{name[: LONGEST_NAME - 9]}_{mark}"
