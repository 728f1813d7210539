"""Tool calls and results as parts of messages: as `stream_end.message` has them, and as messages
that come in again for the next turn. Pure.

    {type: "tool-call", toolCallId, toolName, input}
    {type: "tool-result", toolCallId, toolName, output}

`output` is a plain value, or {type: "json" | "text" | "error-json" | "error-text", value}.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from groundhook.core.types.tools import ToolOutcome
from groundhook.core.types.turn import Message
from groundhook.host.tools.toolbox import text_of

CALL, RESULT = "tool-call", "tool-result"
_WRAPPED = ("json", "text", "error-json", "error-text")


def result_part(name: str, outcome: ToolOutcome) -> dict[str, Any]:
    """Return the part for the outcome of a call; `name` is that under which it was called."""
    failed = outcome.error is not None
    return {
        "type": RESULT,
        "toolCallId": outcome.toolcall_id,
        "toolName": name,
        "output": {"type": "error-text", "value": outcome.error} if failed else outcome.result,
    }


def expanded(messages: Sequence[Message], limit: int) -> list[Message]:
    """Return the messages with calls and results as connectors take them: `tool_calls` of an
    assistant, each followed by a message of the role `tool`. A call without a result is omitted;
    a result is cut after `limit` characters."""
    if not any(_has_parts(message) for message in messages):
        return list(messages)
    answered = {
        id
        for message in messages
        for id in (message.tool_call_id, *map(_read_id, _list_parts(message, RESULT)))
        if id
    }
    made: list[Message] = []
    for message in messages:
        if not _has_parts(message):
            made.append(message)
        elif message.role == "tool":
            made += [_make_tool_message(part, limit) for part in _list_parts(message, RESULT)]
        else:
            made += _split(message, answered, limit)
    return made


def _split(message: Message, answered: Collection[str], limit: int) -> Iterator[Message]:
    """Yield a message of the assistant as several: text with calls, their results, text again."""
    texts: list[Mapping[str, Any]] = []
    calls: dict[str, dict[str, Any]] = {}
    results: list[Message] = []

    def flush() -> Iterator[Message]:
        called = list(calls.values())
        if texts or called:
            yield Message(
                role=message.role, content=[dict(each) for each in texts], tool_calls=called or None
            )
        yield from results
        texts.clear()
        calls.clear()
        results.clear()

    for part in message.content if isinstance(message.content, list) else ():
        kind, id = part.get("type"), _read_id(part)
        if kind == CALL:
            if results:
                yield from flush()
            if id in answered:
                calls[id] = _make_call(id, part)
        elif kind == RESULT:
            calls.setdefault(id, _make_call(id, part))
            results.append(_make_tool_message(part, limit))
        else:
            if calls:
                yield from flush()
            texts.append(part)
    yield from flush()


def _make_call(id: str, part: Mapping[str, Any]) -> dict[str, Any]:
    given = part.get("input", part.get("args", {}))
    arguments = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    name = str(part.get("toolName", ""))
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _make_tool_message(part: Mapping[str, Any], limit: int) -> Message:
    output = part.get("output", part.get("result"))
    if (
        isinstance(output, Mapping)
        and output.get("type") in _WRAPPED
        and output.keys() <= {"type", "value"}
    ):
        failed = str(output["type"]).startswith("error")
        output = {"error": output.get("value")} if failed else output.get("value")
    text = text_of(output)
    if len(text) > limit:
        text = f"{text[:limit]}\n[cut here]"
    return Message(role="tool", tool_call_id=_read_id(part), content=text)


def _read_id(part: Mapping[str, Any]) -> str:
    return str(part.get("toolCallId") or "")


def _list_parts(message: Message, kind: str) -> list[dict[str, Any]]:
    content = message.content if isinstance(message.content, list) else []
    return [part for part in content if part.get("type") == kind]


def _has_parts(message: Message) -> bool:
    return message.role in ("assistant", "tool") and bool(
        _list_parts(message, RESULT) or _list_parts(message, CALL)
    )
