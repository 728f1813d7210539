"""The items of OpenAI's Responses, its tools and choices, as chat completions have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from groundhook.core.errors import NotSupported
from groundhook.host.server.problems import WrongRequest

_FILE = ("filename", "file_data", "file_url", "file_id")
_TEXTS = ("input_text", "output_text", "text")


def as_tool(tool: Any) -> Any:
    """Return a tool as chat completions have it; others are refused there."""
    if not isinstance(tool, Mapping) or tool.get("type") != "function" or "function" in tool:
        return tool
    return {"type": "function", "function": {key: tool[key] for key in tool if key != "type"}}


def as_choice(choice: Any) -> Any:
    if isinstance(choice, Mapping) and choice.get("type") == "function" and "name" in choice:
        return {"type": "function", "function": {"name": choice["name"]}}
    return choice


def as_messages(
    given: str | Sequence[Mapping[str, Any]],
) -> tuple[list[dict[str, Any]], list[tuple[str, ...]]]:
    """Return the input as messages of chat completions, and the paths of the items of which each is
    made. Calls of one answer are one message."""
    made: list[dict[str, Any]] = []
    items: list[tuple[str, ...]] = []
    if isinstance(given, str):
        return [{"role": "user", "content": given}], [("input",)]
    for n, item in enumerate(given):
        path = f"input[{n}]"
        match item.get("type", "message"):
            case "message":
                content = _as_content(item.get("content"), f"{path}.content")
                made.append({"role": item.get("role"), "content": content})
                items.append((path,))
            case "function_call":
                if not made or made[-1]["role"] != "assistant":
                    made.append({"role": "assistant", "content": ""})
                    items.append((path,))
                made[-1].setdefault("tool_calls", []).append(_as_call(item, path))
                items[-1] = (*items[-1], path)
            case "function_call_output":
                output = item.get("output")
                if output is None:
                    raise WrongRequest(f"{path}.output: should be text or a list of parts")
                content = _as_content(output, f"{path}.output")
                made.append(
                    {"role": "tool", "tool_call_id": item.get("call_id"), "content": content}
                )
                items.append((path,))
            case "reasoning":
                continue  # thoughts are not sent again
            case kind:
                raise NotSupported(f"{path}.type: {str(kind)[:80]!r} is not offered")
    return made, items


def _as_call(item: Mapping[str, Any], path: str) -> dict[str, Any]:
    for key in ("call_id", "name", "arguments"):
        if not isinstance(item.get(key), str):
            raise WrongRequest(f"{path}.{key}: should be text")
    function = {"name": item["name"], "arguments": item["arguments"]}
    return {"id": item["call_id"], "type": "function", "function": function}


def _as_content(content: Any, path: str) -> Any:
    if not isinstance(content, (list, tuple)):
        return content
    parts: list[dict[str, Any]] = []
    for n, part in enumerate(content):
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind in _TEXTS:
            parts.append({"type": "text", "text": part.get("text")})
        elif kind == "input_image" and part.get("image_url"):
            parts.append({"type": "image_url", "image_url": {"url": part["image_url"]}})
        elif kind == "input_file":
            file = {key: part[key] for key in _FILE if part.get(key)}
            parts.append({"type": "file", "file": file})
        else:
            raise NotSupported(
                f"{path}[{n}].type: offered are 'input_text', 'input_image' and 'input_file'"
            )
    texts = [part["text"] for part in parts if part["type"] == "text"]
    if len(texts) == len(parts) and all(isinstance(text, str) for text in texts):
        return "\n".join(texts)
    return parts
