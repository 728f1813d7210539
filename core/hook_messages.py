"""The messages of a turn after all changes, and their text for people.

A fold over events: `send` adds a message, the other actions change it. Pure and total: an action
that does not fit the message is applied as far as possible and never raises, so that a client can
follow any stream.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from groundhook.core.types.events import Event, HookMessage

DEEPEST = 64  # steps of a path


@dataclass(frozen=True)
class MessageState:
    """The state of a message. `ended`: it is complete."""

    id: str
    message: Any
    block_id: str = ""
    thread_id: str = ""
    ended: bool = False


Messages = Mapping[str, MessageState]  # by id, in the order of sending


def fold(events: Iterable[Event]) -> list[MessageState]:
    """Return the messages after all events of a turn, in the order of sending."""
    messages: Messages = {}
    for event in events:
        messages = step(messages, event)
    return list(messages.values())


def step(messages: Messages, event: Event) -> Messages:
    """Return the messages after one more event. Other events, and changes of a message that was
    never sent, change nothing."""
    if not isinstance(event, HookMessage):
        return messages
    if event.action == "end" and not event.message_id:
        ended = {
            id: replace(each, ended=True)
            for id, each in messages.items()
            if each.block_id == event.block_id
        }
        return {**messages, **ended}
    if event.action == "send":
        sent = MessageState(
            event.message_id,
            event.message,
            event.block_id,
            event.thread_id,
            ended=not event.streaming,
        )
        return {**messages, sent.id: sent}
    known = messages.get(event.message_id)
    return messages if known is None else {**messages, known.id: apply(known, event)}


def added_text(before: MessageState | None, after: MessageState | None) -> tuple[str, bool]:
    """Return the text that an event adds for a person, and whether it begins a new text: the text
    after the previous one, or the whole text if it was replaced. A message without text is written
    out as JSON, once."""
    if after is None:
        return "", False
    if before is None:
        return message_text(after.message), True
    old, new = text_in(before.message), text_in(after.message) or ""
    if not new or new == old:
        return "", False
    # Without an old text, a person has read the message as JSON, or a text that was removed since.
    if not old or not new.startswith(old):
        return new, True
    return new[len(old) :], False


def message_text(message: Any) -> str:
    """Return the text in a message, or the message as JSON if it has none."""
    found = text_in(message)
    return found if found is not None else json.dumps(message, ensure_ascii=False, default=str)


def text_in(message: Any) -> str | None:
    """Return the message if it is text, or the text in the `props` of an object; None without
    text."""
    if message is None or isinstance(message, str):
        return message or ""
    if isinstance(message, Mapping):
        for holder in (message.get("props"), message):
            for key in ("content", "message", "text"):
                if isinstance(holder, Mapping) and isinstance(holder.get(key), str):
                    return str(holder[key])
    return None


def apply(state: MessageState, event: HookMessage) -> MessageState:
    """Return the message after an action on it."""
    match event.action:
        case "end":
            return replace(state, ended=True)
        case "append":
            return replace(state, message=put_at(state.message, event.path, event.message, append))
        case "merge":
            return replace(state, message=put_at(state.message, event.path, event.message, merge))
        case "set":
            return replace(
                state,
                message=put_at(state.message, event.path, event.message, lambda _, new: new),
            )
        case _:
            return replace(state, message=event.message)


def put_at(whole: Any, path: str, value: Any, put: Callable[[Any, Any], Any]) -> Any:
    """Return `whole` with `put(old value, value)` at the path. Steps are keys, or positions in
    lists; missing objects on the path are created, and a position beyond the end of a list
    appends."""
    if path.count(".") >= DEEPEST:
        return whole
    step, _, rest = path.partition(".")
    if not step:
        return put(whole, value)
    if isinstance(whole, list):
        if not step.isdecimal():
            return whole
        # No list is so long, and Python converts no number of thousands of digits.
        index = min(int(step), len(whole)) if len(step) < 10 else len(whole)
        inner = put_at(whole[index] if index < len(whole) else None, rest, value, put)
        return [*whole[:index], inner, *whole[index + 1 :]]
    holder = whole if isinstance(whole, Mapping) else {}
    return {**holder, step: put_at(holder.get(step), rest, value, put)}


def append(old: Any, new: Any) -> Any:
    """Return text after text, the entries of a list after those of a list, any other value as the
    last entry of a list."""
    if old is None:
        return new
    if isinstance(old, str):
        return old + (new if isinstance(new, str) else str(new))
    if isinstance(old, list):
        return [*old, *new] if isinstance(new, list) else [*old, new]
    return new


def merge(old: Any, new: Any) -> Any:
    """Return two objects merged key by key, recursively; any other value is replaced."""
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return new
    return {
        **old,
        **{key: merge(old[key], value) if key in old else value for key, value in new.items()},
    }
