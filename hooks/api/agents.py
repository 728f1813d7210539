"""`ctx.agent` and `ctx.llm`: other assistants and language models. A failure is `error` on the
answer.

With `onChunk`, the JavaScript side (`hooks/objects.js`) opens the answer, fetches the pieces that
have arrived, and closes it. The calls for that have no group, so authors do not see them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from groundhook.core.errors import UsageError
from groundhook.core.hook_services import HookServices, Together
from groundhook.core.types.base import (
    AnyModel,
    UnknownKey,
    dotted,
    names_of,
    validate_known,
    validation_problems,
)
from groundhook.core.types.calls import (
    AgentAsk,
    AgentOptions,
    AgentResult,
    Answered,
    Ask,
    ModelAsk,
    ModelOptions,
    ModelResult,
)
from groundhook.core.types.turn import Message
from groundhook.hooks.api.row import HostCall, LateAnswer, kind_of, pad, quote

_Kind = type[AgentAsk] | type[ModelAsk]
MODES: tuple[Together, ...] = ("all", "any", "race")
ONE: dict[str, _Kind] = {"ctx.agent.Call": AgentAsk, "ctx.llm.Stream": ModelAsk}
MANY: dict[str, tuple[_Kind, Together]] = {
    f"{js.rpartition('.')[0]}.{mode.capitalize()}": (kind, mode)
    for js, kind in ONE.items()
    for mode in MODES
}
TARGETS: dict[_Kind, str] = {AgentAsk: "agent", ModelAsk: "connector"}


async def _run(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    asks, mode = await _parse_and_warn(call.js, services, arguments)
    answers = await services.calls.ask(asks, mode)
    return answers[0].model_dump_json() if call.js in ONE else _to_json(answers)


async def _open(_call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    asks, mode = await _parse_and_warn(arguments[0], services, arguments[1:])
    return json.dumps(await services.calls.open(asks, mode))


async def _next(_call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    return json.dumps(await services.calls.next(arguments[0]))


async def _close(_call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    handle, problem = pad(arguments, 2)
    return _to_json(await services.calls.close(handle, problem or ""))


def _answer_late(js: str) -> LateAnswer:
    """Return the function that makes the answers of late calls: each as if the call had failed, so
    that a hook has one case to handle."""

    def late(arguments: Sequence[Any], message: str) -> str:
        answers = [_error_answer(ask, message) for ask in _parse_requests(js, arguments)[0]]
        return answers[0].model_dump_json() if js in ONE else _to_json(answers)

    return late


# `hooks/objects.js` closes the calls then, and the texts that had arrived are in the answers.
def _answer_late_next(_arguments: Sequence[Any], message: str) -> str:
    return json.dumps({"late": message})


# ---------------------------------------------------------------------------------------- arguments


async def _parse_and_warn(
    js: str, services: HookServices, arguments: Sequence[Any]
) -> tuple[list[Ask], Together]:
    asks, mode, unknown = _parse_requests(js, arguments)
    for where, key in unknown:
        await services.warn("unknown_option", f"{where}: {key}")
    return asks, mode


def _parse_requests(
    js: str, arguments: Sequence[Any]
) -> tuple[list[Ask], Together, list[tuple[str, UnknownKey]]]:
    """Return the requests, the mode, and the unknown options. Raises UsageError."""
    unknown: list[tuple[str, UnknownKey]] = []
    if js in ONE:
        target, messages, options = pad(arguments, 3)
        return [_parse_request(js, ONE[js], target, messages, options, unknown)], "all", unknown
    kind, mode = MANY[js]
    entries, *_ = pad(arguments, 1)
    name = TARGETS[kind]
    if not isinstance(entries, list):
        raise UsageError(
            f"{js}: requests must be a list of {{{name}, messages, options}}, not"
            f" {kind_of(entries)}"
        )
    asks: list[Ask] = []
    for index, entry in enumerate(entries):
        where = f"{js}: requests[{index}]"
        if not isinstance(entry, Mapping):
            raise UsageError(
                f"{where} must be an object {{{name}, messages, options}}, not {kind_of(entry)}"
            )
        # Packages name it `agent`, `agent_id`, `assistant` or `assistant_id`.
        target = next(
            (
                entry[key]
                for key in names_of(kind)
                if key in entry and key not in ("messages", "options")
            ),
            None,
        )
        asks.append(
            _parse_request(
                where, kind, target, entry.get("messages"), entry.get("options"), unknown
            )
        )
    return asks, mode, unknown


def _parse_request(
    where: str,
    kind: _Kind,
    target: Any,
    messages: Any,
    options: Any,
    unknown: list[tuple[str, UnknownKey]],
) -> Ask:
    what = "an assistant's id" if kind is AgentAsk else "a connector's id"
    if not isinstance(target, str) or not target.strip():
        raise UsageError(f"{where}: {what} must be text that is not empty, not {quote(target)}")
    parsed = _parse_messages(where, messages)
    if kind is AgentAsk:
        return AgentAsk(
            agent=target,
            messages=parsed,
            options=_parse_options(where, AgentOptions, options, unknown),
        )
    return ModelAsk(
        connector=target,
        messages=parsed,
        options=_parse_options(where, ModelOptions, options, unknown),
    )


def _parse_messages(where: str, value: Any) -> tuple[Message, ...]:
    """Return the messages; a text is a message of the user."""
    if isinstance(value, str):
        return (Message(role="user", content=value),)
    entries = [value] if isinstance(value, Mapping) else value
    if not isinstance(entries, list) or not entries:
        raise UsageError(
            f"{where}: messages must be text or a list of {{role, content}}, not"
            f" {_name_kind(value)}"
        )
    made = []
    for index, entry in enumerate(entries):
        try:
            made.append(Message.model_validate(entry))
        except ValidationError as exc:
            path, message = validation_problems(exc)[0]
            raise UsageError(f"{where}: {dotted(('messages', index, *path))}: {message}") from exc
    return tuple(made)


def _name_kind(value: Any) -> str:
    return "an empty list" if value == [] else kind_of(value)


def _parse_options(
    where: str, model: type[AnyModel], value: Any, unknown: list[tuple[str, UnknownKey]]
) -> AnyModel:
    if not isinstance(value, Mapping | None):
        raise UsageError(f"{where}: options must be an object, not {kind_of(value)}")
    try:
        made, strays = validate_known(model, value or {})
    except ValidationError as exc:
        path, message = validation_problems(exc)[0]
        raise UsageError(f"{where}: option {dotted(path)}: {message}") from exc
    unknown += [(where, stray) for stray in strays]
    return made


def _to_json(answers: Sequence[Answered]) -> str:
    return f"[{','.join(answer.model_dump_json() for answer in answers)}]"


def _error_answer(ask: Ask, message: str) -> Answered:
    if isinstance(ask, AgentAsk):
        return AgentResult(agent_id=ask.agent, error=message)
    return ModelResult(connector=ask.connector, error=message)


# ----------------------------------------------------------------------------------------- the rows

_CHUNK = """\
/** Text as it arrives. `index` is the position of the request it belongs to. */
export interface Chunk {
  type: "text";
  index: number;
  content: string;
  props: { content: string };
}
"""
_ON_CHUNK = """\
/** Called with every piece of text that arrives; a number other than 0, or true, stops the call. */
type OnChunk =
  | ((chunk: Chunk) => number | boolean | void)
  | ((id: string, index: number, chunk: Chunk) => number | boolean | void);
"""
_AGENT = """\
export interface AgentRequest {
  agent: AssistantName;
  messages: string | Message | Message[];
  options?: AgentOptions & { onChunk?: OnChunk };
}
"""
_MODEL = """\
export interface ModelRequest {
  connector: ConnectorName;
  messages: string | Message | Message[];
  options?: ModelOptions & { onChunk?: OnChunk };
}
"""
_WORDS = {
    "all": "Call several {several} at once; return every answer, in the order of the requests.",
    "any": (
        "Call several {several} at once; return the first answer without an error, in a list, and"
        " cancel the others."
    ),
    "race": (
        "Call several {several} at once; return the first answer, in a list, and cancel the others."
    ),
}


def _make_row(
    js: str,
    doc: str,
    target: str,
    options: type[AgentOptions] | type[ModelOptions],
    result: Any,
    types: str,
) -> HostCall:
    given = (
        f"messages: string | Message | Message[], options?: {options.__name__} & {{ onChunk?:"
        " OnChunk }"
    )
    ts = f"({target}, {given}): {result.__name__}"
    return HostCall(
        js=js,
        doc=doc,
        run=_run,
        ts=ts,
        types=types,
        options=options,
        result=result,
        answer_late=_answer_late(js),
        # A called assistant may send messages and write; what a model has answered is in the log.
        effect=result is AgentResult,
        maker="answer",
    )


def _make_together_row(js: str, kind: _Kind, mode: Together) -> HostCall:
    several, request, result = (
        ("assistants", "AgentRequest", AgentResult)
        if kind is AgentAsk
        else ("language models", "ModelRequest", ModelResult)
    )
    return HostCall(
        js=js,
        doc=_WORDS[mode].format(several=several),
        run=_run,
        ts=f"(requests: {request}[], options?: {{ onChunk?: OnChunk }}): {result.__name__}[]",
        types=_AGENT if kind is AgentAsk else _MODEL,
        result=list[AgentResult] if kind is AgentAsk else list[ModelResult],
        answer_late=_answer_late(js),
        effect=kind is AgentAsk,
        maker="answer",
    )


ROWS: tuple[HostCall, ...] = (
    _make_row(
        "ctx.agent.Call",
        "Call another assistant, which runs a turn of its own; return its answer.",
        "id: AssistantName",
        AgentOptions,
        AgentResult,
        _CHUNK,
    ),
    _make_row(
        "ctx.llm.Stream",
        "Call a language model; return its answer.",
        "connector: ConnectorName",
        ModelOptions,
        ModelResult,
        _ON_CHUNK,
    ),
    *(_make_together_row(js, kind, mode) for js, (kind, mode) in MANY.items()),
    HostCall(
        js="answer:open",
        doc="Begin calls whose answers are read while they arrive; return their handle.",
        run=_open,
        effect=True,
    ),
    HostCall(
        js="answer:next",
        doc="Return the pieces of text that have arrived since the last call.",
        run=_next,
        answer_late=_answer_late_next,
    ),
    HostCall(
        js="answer:close", doc="Stop calls that are under way; return the answers.", run=_close
    ),
)
