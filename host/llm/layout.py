"""Arranges the messages of a call in the order and the roles that chat templates accept. Pure.

Chat templates of self-hosted models fail on a second system message, a system message that is not
first, a conversation that the assistant begins, and two messages of one role in a row; the endpoint
then answers 400. Arranged messages have at most one system message, which is the first, then begin
with the user, and have no two user or assistant messages in a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from groundhook.core.types.turn import Message

SYSTEM = ("system", "developer")
GAP = "\n\n"

SourcesPlace = Literal["user", "system"]
SystemPlace = Literal["first", "none"]


def arranged(
    messages: Sequence[Message],
    *,
    sources: str = "",
    place: SourcesPlace = "user",
    system: SystemPlace = "first",
) -> list[Message]:
    """Return the messages as a template accepts them. `sources` is the text that the last user
    message begins with; with `place` "system" it moves to the end of the system message. With
    `system` "none" the system message becomes the beginning of the first user message."""
    if place == "system":
        messages = _move_sources(messages, sources)
    made = _move_greeting(_merge_neighbours(_merge_system(messages)))
    return _fold_system(made) if system == "none" else made


def last_user(messages: Sequence[Message]) -> int:
    """Return the index of the last user message; the number of messages without one."""
    found = (n for n in reversed(range(len(messages))) if messages[n].role == "user")
    return next(found, len(messages))


def prepend(message: Message, text: str) -> Message:
    """Return the message with `text` in front of its content."""
    return message.model_copy(update={"content": _join(text, message.content)})


def _merge_system(messages: Sequence[Message]) -> list[Message]:
    found = [message for message in messages if message.role in SYSTEM]
    rest = [message for message in messages if message.role not in SYSTEM]
    if not found:
        return rest
    text = GAP.join(filter(None, (message.text for message in found)))
    return [Message(role=found[0].role, content=text), *rest]


def _merge_neighbours(messages: Sequence[Message]) -> list[Message]:
    """Join neighbours of one role into one message; a message with tool calls stays on its own."""
    made: list[Message] = []
    for message in messages:
        before = made[-1] if made else None
        if (
            before is not None
            and message.role == before.role
            and message.role in ("user", "assistant")
            and message.name == before.name
            and not before.tool_calls
        ):
            content = _join(before.content, message.content)
            made[-1] = message.model_copy(update={"content": content})
        else:
            made.append(message)
    return made


def _move_greeting(messages: list[Message]) -> list[Message]:
    """Move a greeting that the assistant begins with into the system message."""
    head = 1 if messages and messages[0].role in SYSTEM else 0
    greeting = messages[head] if len(messages) > head + 1 else None
    if greeting is None or greeting.role != "assistant" or greeting.tool_calls:
        return messages
    before = messages[0].text if head else ""
    text = GAP.join(filter(None, (before, f"You began this conversation with:\n{greeting.text}")))
    role = messages[0].role if head else "system"
    return [Message(role=role, content=text), *messages[head + 1 :]]


def _fold_system(messages: list[Message]) -> list[Message]:
    """Move the system message to the beginning of the first user message."""
    if not messages or messages[0].role not in SYSTEM:
        return messages
    text, rest = messages[0].text, messages[1:]
    if rest and rest[0].role == "user":
        return [prepend(rest[0], text), *rest[1:]]
    return [Message(role="user", content=text), *rest]


def _move_sources(messages: Sequence[Message], sources: str) -> Sequence[Message]:
    at = last_user(messages)
    if not sources or at == len(messages):
        return messages
    content = messages[at].content
    if isinstance(content, str) and content.startswith(sources):
        left: Any = content[len(sources) :].removeprefix(GAP)
    elif isinstance(content, list) and content and content[0].get("text") == sources:
        left = content[1:]
    else:
        return messages
    question = [messages[at].model_copy(update={"content": left})] if left else []
    system = Message(role="system", content=sources)
    return [*messages[:at], system, *question, *messages[at + 1 :]]


def _join(first: Any, second: Any) -> Any:
    """Join two contents: text when both are text, else parts."""
    if not isinstance(first, list) and not isinstance(second, list):
        return GAP.join(filter(None, (first, second)))
    return [*_parts(first), *_parts(second)]


def _parts(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []
