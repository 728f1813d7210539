"""`ctx.Send`, `ctx.Append` and the other calls that send messages to the client.

Defines the form of messages and of paths in them; the host makes ids and events.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from groundhook.core.errors import UsageError
from groundhook.core.hook_services import HookServices
from groundhook.core.types.events import MessageAction
from groundhook.hooks.api.row import HostCall, RunCall, kind_of, pad, quote

CONTENT, PROPS = "props.content", "props"
DEEPEST = 64  # levels of a message, steps of a path: what reads a message recurses into it
LONGEST_ID = 128  # characters; every event of a message repeats its id
TEXTS = ("text", "markdown")  # types of messages that every client shows

_INDEX = re.compile(r"\[(\d+)\]")


def _send(*, streaming: bool) -> RunCall:
    async def run(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
        message, block_id = pad(arguments, 2)
        block = "" if block_id is None else _check_id(call.js, "block", block_id)
        parsed = _parse_message(call.js, message)
        if meant := _find_meant_type(parsed):
            unknown = (
                f"{call.js}: text of the type {parsed['type']!r} may not be shown;"
                f" did you mean {meant!r}?"
            )
            await services.warn("unknown_option", unknown)
        return json.dumps(await services.output.send(parsed, block, streaming=streaming))

    return run


async def _append(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    id, content, path = pad(arguments, 3)
    if content is None:
        raise UsageError(f"{call.js}: there is nothing to append")
    where = _parse_path(call.js, CONTENT if path is None else path)
    message = _check_id(call.js, "message", id)
    await services.output.change("append", message, _find_data(call.js, content, where), where)
    return json.dumps(message)


async def _replace(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    id, given = pad(arguments, 2)
    message = _check_id(call.js, "message", id)
    value = _drop_ids(_parse_message(call.js, given))
    await services.output.change("replace", message, value, "")
    return json.dumps(message)


async def _merge(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    id, data, path = pad(arguments, 3)
    if path is None and _is_message(data):
        where, value = "", _drop_ids(_parse_message(call.js, data))
    else:
        where = _parse_path(call.js, PROPS if path is None else path)
        value = _find_data(call.js, data, where)
    if not isinstance(value, Mapping):
        raise UsageError(f"{call.js}: what is merged must be an object, not {kind_of(value)}")
    message = _check_id(call.js, "message", id)
    await services.output.change("merge", message, value, where)
    return json.dumps(message)


async def _set(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    id, data, path = pad(arguments, 3)
    where = _parse_path(call.js, path)
    message = _check_id(call.js, "message", id)
    await services.output.change("set", message, _find_data(call.js, data, where), where)
    return json.dumps(message)


async def _end(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    """End a message. A final text is appended to it, a final message replaces it."""
    id, final = pad(arguments, 2)
    message = _check_id(call.js, "message", id)
    if isinstance(final, str):
        await services.output.change("append", message, final, CONTENT)
    elif final is not None:
        await services.output.change(
            "replace", message, _drop_ids(_parse_message(call.js, final)), ""
        )
    await services.output.change("end", message, None, "")
    return json.dumps(message)


async def _end_block(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    (id,) = pad(arguments, 1)
    await services.output.end_block(_check_id(call.js, "block", id))
    return ""


def _new_id(kind: Literal["message", "block", "thread"]) -> RunCall:
    async def run(_call: HostCall, services: HookServices, _arguments: Sequence[Any]) -> str:
        return json.dumps(services.output.new_id(kind))

    return run


# ---------------------------------------------------------------------------------------- arguments


def _parse_message(where: str, value: Any) -> dict[str, Any]:
    """Return a message in its full form; a text becomes a message of type `text`."""
    if isinstance(value, str):
        return {"type": "text", "props": {"content": value}}
    if not isinstance(value, Mapping):
        raise UsageError(f"{where}: a message must be text or an object, not {kind_of(value)}")
    if not isinstance(value.get("type"), str) or not value["type"]:
        raise UsageError(
            f"{where}: a message must have a type, such as {{type: 'text', props: {{content}}}}"
        )
    props = value.get("props")
    if not isinstance(props, Mapping | None):
        raise UsageError(f"{where}: the props of a message must be an object, not {kind_of(props)}")
    for key in ("message_id", "block_id", "thread_id"):
        if value.get(key) is not None:
            _check_id(where, key.removesuffix("_id"), value[key])
    _check_depth(where, value)
    return {**value, "props": props or {}}


def _find_meant_type(message: Mapping[str, Any]) -> str:
    """Return `text` or `markdown` for a misspelling of it; "" for any other type, since clients may
    have types of their own. Many words are one letter from `text`, so only its own letters count.
    """
    type = message["type"]
    if type in TEXTS or not isinstance(message["props"].get("content"), str):
        return ""
    word: str = type.lower()
    if word in TEXTS:
        return word
    if word in ("etxt", "txet", "tetx"):
        return "text"
    return "markdown" if _is_one_edit(word, "markdown") else ""


def _is_one_edit(word: str, meant: str) -> bool:
    """Return whether one letter is added, left out or another, or two neighbours are exchanged."""
    both = zip(word, meant, strict=False)
    start = next((at for at, (a, b) in enumerate(both) if a != b), min(len(word), len(meant)))
    added, left_out = word[start + 1 :], meant[start + 1 :]
    return (
        added == meant[start:]
        or word[start:] == left_out
        or added == left_out
        or (word[start : start + 2] == meant[start : start + 2][::-1] and added[1:] == left_out[1:])
    )


def _is_message(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and isinstance(value.get("type"), str)
        and isinstance(value.get("props"), Mapping)
    )


def _find_data(where: str, value: Any, path: str) -> Any:
    """Return the value for a path of a message: of a message object the value at that path, or else
    its props."""
    _check_depth(where, value)
    if not _is_message(value):
        return value
    here: Any = value
    for step in path.split("."):
        if not isinstance(here, Mapping) or step not in here:
            return value["props"]
        here = here[step]
    return here


# A message that replaces another one, or is merged into it, keeps the ids of that.
def _drop_ids(message: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value
        for key, value in message.items()
        if key not in ("message_id", "block_id", "thread_id")
    }


def _check_id(where: str, what: str, value: Any) -> str:
    if (
        not isinstance(value, str)
        or not value
        or len(value) > LONGEST_ID
        or not value.isprintable()
    ):
        raise UsageError(f"{where}: the id of a {what} must be text, not {quote(value)[:40]}")
    return value


def _parse_path(where: str, value: Any) -> str:
    """Return a path with dots: `props.rows[0].name` becomes `props.rows.0.name`."""
    path = _INDEX.sub(r".\1", value) if isinstance(value, str) else ""
    steps = path.split(".")
    if not all(steps) or len(steps) > DEEPEST:
        raise UsageError(
            f"{where}: the path must be keys with dots between, such as 'props.content', not"
            f" {quote(value)[:40]}"
        )
    return path


def _check_depth(where: str, value: Any) -> None:
    # Level by level and not by recursion, which a deep value would exhaust.
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for each in level for inner in _list_children(each)]
        if not level:
            return
    raise UsageError(f"{where}: a message may not be nested more than {DEEPEST} deep")


def _list_children(value: Any) -> Sequence[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else ()


# ----------------------------------------------------------------------------------------- the rows

_TYPES = """\
/** A message to the client, such as {type: "text", props: {content: "…"}}. */
interface OutputMessage {
  type: string;
  props?: Record<string, any>;
  message_id?: string;
  block_id?: string;
  thread_id?: string;
  [key: string]: any;
}
"""


def _make_row(name: str, doc: str, run: RunCall, ts: str, *, effect: bool = True) -> HostCall:
    return HostCall(
        js=f"ctx.{name}", doc=doc, run=run, ts=ts, types=_TYPES, result=str, effect=effect
    )


_CHANGES: tuple[tuple[MessageAction, str, RunCall, str], ...] = (
    (
        "append",
        "Append text to a message's text, or a value to the one at a path.",
        _append,
        "(id: string, content: any, path?: string): string",
    ),
    (
        "replace",
        "Replace a message with another one.",
        _replace,
        "(id: string, message: OutputMessage | string): string",
    ),
    (
        "merge",
        "Merge an object into a message's props, or into the object at a path.",
        _merge,
        "(id: string, data: any, path?: string): string",
    ),
    (
        "set",
        "Set the value at a path of a message.",
        _set,
        "(id: string, data: any, path: string): string",
    ),
    (
        "end",
        "End a message: a final text is appended to it, a final message replaces it.",
        _end,
        "(id: string, final?: OutputMessage | string): string",
    ),
)

ROWS: tuple[HostCall, ...] = (
    _make_row(
        "Send",
        "Send a whole message to the client; return its id.",
        _send(streaming=False),
        "(message: OutputMessage | string, blockId?: string): string",
    ),
    _make_row(
        "SendStream",
        "Send a message that may grow until End, or until the hook ends; return its id.",
        _send(streaming=True),
        "(message: OutputMessage | string, blockId?: string): string",
    ),
    *(_make_row(action.capitalize(), doc, run, ts) for action, doc, run, ts in _CHANGES),
    _make_row(
        "EndBlock",
        "End a block of messages, and the streams in it.",
        _end_block,
        "(id: string): void",
    ),
    _make_row(
        "MessageID",
        "Return an id for a message that is sent later: {message_id: id, type, props}.",
        _new_id("message"),
        "(): string",
        effect=False,
    ),
    _make_row(
        "BlockID",
        "Return an id for a block of messages, the second argument of Send.",
        _new_id("block"),
        "(): string",
        effect=False,
    ),
    _make_row(
        "ThreadID",
        "Return an id for a thread of messages: {thread_id: id, type, props}.",
        _new_id("thread"),
        "(): string",
        effect=False,
    ),
)
