"""Selects the part of a conversation that a turn gets as its history. Pure.

The newest messages within the limits, in order. The history never begins with an answer, and the
tool calls of an answer come with their results or not at all. Markers in answers stay as written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from groundhook.core.tokens import estimated_tokens
from groundhook.core.types.chats import ChatMessage, KeptTool
from groundhook.core.types.search import Item
from groundhook.core.types.turn import Message

RESULT_LENGTH = 4000  # most characters of a tool's result that a later turn repeats
MESSAGE_TOKENS = 4  # what a message costs beside its text


def split(
    path: Sequence[ChatMessage], *, most_messages: int, most_tokens: int
) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """Return the messages that are omitted, and those for the model: the newest of `path` that
    fit, at most `most_messages`, and about `most_tokens` in all."""
    given: list[list[Message]] = []
    messages = tokens = 0
    for message in reversed(path):
        wire = list(_wire(message))
        messages += bool(wire)
        tokens += sum(message_tokens(one) for one in wire)
        if messages > most_messages or tokens > most_tokens:
            break
        given.append(wire)
    while given and (not given[-1] or given[-1][0].role != "user"):
        given.pop()
    omitted = path[: len(path) - len(given)]
    return (
        tuple(one for message in omitted for one in _wire(message)),
        tuple(one for wire in reversed(given) for one in wire),
    )


def sources(path: Sequence[ChatMessage]) -> Mapping[str, Item]:
    """Return the sources that the answers cite, by their markers in lower case; of the newest
    answer that cites one."""
    return {
        citation.marker.lower(): citation.item
        for message in path
        if message.answer is not None
        for citation in message.answer.citations
        if citation.item is not None
    }


def message_tokens(message: Message) -> int:
    """Return about how many tokens a message takes."""
    calls = json.dumps(message.tool_calls) if message.tool_calls else ""
    return MESSAGE_TOKENS + estimated_tokens(message.text + calls)


def _wire(message: ChatMessage) -> Iterator[Message]:
    """Yield a message as the model's API expects it; nothing for an answer without text and
    calls."""
    if message.role == "user":
        yield Message(role="user", content=message.content)
        return
    tools = message.answer.tools if message.answer else ()
    for round in sorted({tool.round for tool in tools}):
        yield from _round([tool for tool in tools if tool.round == round and tool.complete])
    if message.text:
        yield Message(role="assistant", content=message.content)


def _round(tools: Sequence[KeptTool]) -> Iterator[Message]:
    if not tools:
        return
    yield Message(
        role="assistant",
        content="",
        tool_calls=[
            {
                "id": tool.call_id,
                "type": "function",
                "function": {"name": tool.name, "arguments": _json(tool.arguments)},
            }
            for tool in tools
        ],
    )
    for tool in tools:
        value = tool.result if tool.error is None else {"error": tool.error}
        text = value if isinstance(value, str) else _json(value)
        if len(text) > RESULT_LENGTH:
            text = f"{text[:RESULT_LENGTH]}\n[cut here: the result has {len(text)} characters]"
        yield Message(role="tool", tool_call_id=tool.call_id, content=text)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
