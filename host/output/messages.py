"""The messages of a turn as they stand after everything that was done to them, and what a person
would read in them.

A fold over events: `send` makes a message, the other actions change it. Pure and total: an action
that does not fit what is there makes the most of it and never raises, so that a client can follow
any stream.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from groundhook.host.core.types.events import Event, HookMessage

DEEPEST = 64  # steps of a path


@dataclass(frozen=True)
class Standing:
    """A message as it stands. `ended`: nothing more will be appended to it."""

    id: str
    message: Any
    block_id: str = ""
    thread_id: str = ""
    ended: bool = False


Messages = Mapping[str, Standing]  # by id, in the order in which they were sent


def fold(events: Iterable[Event]) -> list[Standing]:
    """The messages that a turn's events leave, in the order in which they were sent."""
    messages: Messages = {}
    for event in events:
        messages = step(messages, event)
    return list(messages.values())


def step(messages: Messages, event: Event) -> Messages:
    """The messages after one more event. Events of other kinds, and changes of a message that was
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
        sent = Standing(
            event.message_id,
            event.message,
            event.block_id,
            event.thread_id,
            ended=not event.streaming,
        )
        return {**messages, sent.id: sent}
    known = messages.get(event.message_id)
    return messages if known is None else {**messages, known.id: changed(known, event)}


def spoken(before: Standing | None, after: Standing | None) -> tuple[str, bool]:
    """What an event adds to what a person has read of a message, and whether that begins anew: the
    words that follow those that were there, or all of them when others stand in their place. A
    message without words is told once, written out."""
    if after is None:
        return "", False
    if before is None:
        return message_text(after.message), True
    old, new = words(before.message), words(after.message) or ""
    if not new or new == old:
        return "", False
    if old is None or not new.startswith(old):  # None: what was read is the message written out
        return new, True
    return new[len(old) :], False


def message_text(message: Any) -> str:
    """The words in a message, or the message written out when there are none."""
    found = words(message)
    return found if found is not None else json.dumps(message, ensure_ascii=False, default=str)


def words(message: Any) -> str | None:
    """Text itself, or what an object has among its `props` for people to read; None when it has
    nothing of the kind."""
    if message is None or isinstance(message, str):
        return message or ""
    if isinstance(message, Mapping):
        for holder in (message.get("props"), message):
            for key in ("content", "message", "text"):
                if isinstance(holder, Mapping) and isinstance(holder.get(key), str):
                    return str(holder[key])
    return None


def changed(standing: Standing, event: HookMessage) -> Standing:
    """The message after an action on it."""
    match event.action:
        case "end":
            return replace(standing, ended=True)
        case "append":
            return replace(
                standing, message=at(standing.message, event.path, event.message, appended)
            )
        case "merge":
            return replace(
                standing, message=at(standing.message, event.path, event.message, merged)
            )
        case "set":
            return replace(
                standing,
                message=at(standing.message, event.path, event.message, lambda _, new: new),
            )
        case _:
            return replace(standing, message=event.message)


def at(whole: Any, path: str, value: Any, put: Callable[[Any, Any], Any]) -> Any:
    """`whole` with `put(what is at the path, value)` at the path. Steps are keys, or positions
    where there is a list; what the path needs and is not there is made, and a position behind the
    end of a list is the one after the last."""
    if path.count(".") >= DEEPEST:
        return whole
    step, _, rest = path.partition(".")
    if not step:
        return put(whole, value)
    if isinstance(whole, list):
        if not step.isdecimal():
            return whole
        index = min(int(step), len(whole))
        inner = at(whole[index] if index < len(whole) else None, rest, value, put)
        return [*whole[:index], inner, *whole[index + 1 :]]
    holder = whole if isinstance(whole, Mapping) else {}
    return {**holder, step: at(holder.get(step), rest, value, put)}


def appended(old: Any, new: Any) -> Any:
    """Text behind text, the entries of a list behind those of a list, anything else as a list's
    last entry."""
    if old is None:
        return new
    if isinstance(old, str):
        return old + (new if isinstance(new, str) else str(new))
    if isinstance(old, list):
        return [*old, *new] if isinstance(new, list) else [*old, new]
    return new


def merged(old: Any, new: Any) -> Any:
    """Objects key by key, all the way down; anything else is replaced."""
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return new
    return {
        **old,
        **{key: merged(old[key], value) if key in old else value for key, value in new.items()},
    }
