"""Delegated steps: a language model, an assistant or an MCP tool does a step in place of the
built-in code. Sends the request, validates the answer, and sends a wrong one back once.

    answer = await scope.delegates.ask(
        KEYWORD, "workers.kw", KeywordAsk(query="…"), timeout_ms=3000
    )

An assistant gets one user message that is JSON, so that its hook and its model can both read it; a
tool gets the same as its arguments, and a model (`connector:<id>`) a prompt made of the step. A
wrong answer is returned with the problem, for a second try.
This module knows nothing of turns and connections: `DelegateTargets` reaches them.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic

import anyio
from pydantic import ValidationError

from groundhook.core.errors import (
    DelegateError,
    HostError,
    UnknownName,
)
from groundhook.core.exception_groups import unwrap_exception_groups
from groundhook.core.ports import FindProblem, ToolServers, accept_any
from groundhook.core.readers.json_in_text import extract_json_aside
from groundhook.core.settings import BY_CONNECTOR
from groundhook.core.tool_ports import ModelReply
from groundhook.core.trace import Span, span
from groundhook.core.types.base import dotted, validation_problems
from groundhook.core.types.delegation import (
    DelegateAnswer,
    DelegateRequest,
)
from groundhook.core.types.events import StreamEnd
from groundhook.core.types.turn import Message
from groundhook.core.types.uses import (
    JsonReply,
    ModelPrompt,
    Use,
)
from groundhook.host.tools.mcp.shapes import text_of, value_of
from groundhook.host.turn.endings import LENGTH

LONGEST_SHOWN = 400  # characters of a wrong answer in an error; the retry has ten times as many
ECHO = "it repeats the request instead of answering it"
LIMIT_HINT = "options.max_tokens of that assistant, or of its connector, sets the limit"


@dataclass(frozen=True)
class RawReply:
    """A reply before validation. `by_model`: a model wrote it; `cut`: it ended at the token limit,
    so it may not be complete, and `limit_hint` says what sets that."""

    value: Any
    by_model: bool = False
    cut: bool = False
    limit_hint: str = LIMIT_HINT


# The content of a message: text, or text and a picture in parts.
StepContent = str | list[dict[str, Any]]

# Sends a request, which is JSON, to a model, an assistant or a tool. Raises HostError.
Send = Callable[[dict[str, Any]], Awaitable[RawReply]]


@dataclass(frozen=True, kw_only=True)
class DelegateTargets:
    """Reaches the models, assistants and MCP servers that steps are delegated to.

    `model` returns the whole answer of a connector to messages, for an answer of a schema, with at
    most so many tokens (None: its own limit). `assistant` runs a turn of an assistant with one user
    message (text, or text and a picture in parts), for an answer of a schema, and returns its last
    event and its errors (empty: none).
    `server` returns the full id of an MCP server; it raises UnknownName and ConfigError. `permit`
    raises NotPermitted when the target (`mcp:…`) must not use that tool of that server.
    """

    model: Callable[[str, Sequence[Message], JsonReply, int | None], Awaitable[ModelReply]]
    assistant: Callable[[str, StepContent, JsonReply], Awaitable[tuple[StreamEnd, str]]]
    server: Callable[[str], str]
    permit: Callable[[str, str, str], None]
    servers: ToolServers


class TurnDelegates:
    """`core.ports.Delegates` over `DelegateTargets`."""

    def __init__(self, targets: DelegateTargets) -> None:
        self._targets = targets

    async def ask(
        self,
        use: Use[DelegateRequest, DelegateAnswer],
        target: str,
        request: DelegateRequest,
        /,
        *,
        timeout_ms: int,
        hint: str = "",
        wrong: FindProblem[DelegateAnswer] = accept_any,
        tries: int = 2,
        prompt: ModelPrompt | None = None,
    ) -> DelegateAnswer:
        """Return a valid answer of `target`: `connector:<id>`, an assistant's id or
        `mcp:<server>[.<tool>]`. Raises DelegateError."""
        with span("delegate", target, use=use.name) as node:
            try:
                with unwrap_exception_groups(), anyio.move_on_after(timeout_ms / 1000):
                    send = self._send_to(use, target, prompt)
                    return await Delegate(use, send, wrong)(request, tries=tries)
                problem = f"no answer within {timeout_ms} ms"
            except HostError as exc:
                node.fail(str(exc))
                raise DelegateError(f"{use.name} by {target!r} failed: {exc}") from exc
            node.fail(problem)
            raise DelegateError(f"{use.name} by {target!r} failed: {problem}", hint=hint)

    def _send_to(self, use: Use[Any, Any], target: str, prompt: ModelPrompt | None) -> Send:
        if target.startswith(BY_CONNECTOR):
            if not use.task:
                raise DelegateError(
                    "a language model alone cannot do this step",
                    hint="name an assistant or an MCP tool",
                )
            connector = target.removeprefix(BY_CONNECTOR)
            return partial(_ask_model, self._targets, connector, use, prompt)
        if not target.startswith("mcp:"):
            return partial(_ask_assistant, self._targets, target, use)
        server, tool = self._split_server(target.removeprefix("mcp:"))
        return partial(
            _call_tool,
            self._targets.servers,
            use,
            server,
            tool,
            partial(self._targets.permit, target, server),
        )

    def _split_server(self, name: str) -> tuple[str, str]:
        """Split `<server>[.<tool>]` into the server's full id and the tool, which is empty when
        none is named. Both may contain dots: the longest known server wins."""
        server, tool = name, ""
        while True:
            try:
                return self._targets.server(server), tool
            except UnknownName:
                if "." not in server:
                    break
            server, _, last = server.rpartition(".")
            tool = f"{last}.{tool}" if tool else last
        return self._targets.server(name), ""  # raises UnknownName for the whole name


@dataclass(frozen=True)
class Delegate(Generic[DelegateRequest, DelegateAnswer]):
    """One step done by one target. `wrong` returns the problem with an answer that has the right
    shape, or ""."""

    use: Use[DelegateRequest, DelegateAnswer]
    send: Send
    wrong: FindProblem[DelegateAnswer]

    async def __call__(self, request: DelegateRequest, *, tries: int) -> DelegateAnswer:
        """Return a valid answer after at most `tries` requests. Raises DelegateError, HostError."""
        wanted = {"task": self.use.name, **request.model_dump(mode="json"), "reply": self.use.reply}
        problem, retry = "", dict[str, Any]()
        for _ in range(tries):
            sent = {**wanted, **retry}
            reply = await self.send(sent)
            raw = _drop_echo(reply.value, sent, self.use) if reply.by_model else reply.value
            try:
                answer = self.use.answers.model_validate(raw)
                found = self.wrong(answer)
                problem = found if isinstance(found, str) else await found
            except ValidationError as exc:
                problem = _describe(raw, exc) if raw is reply.value else ECHO
            else:
                if not problem:
                    return answer
            # The same limit would cut a second try.
            if reply.cut:
                raise DelegateError(
                    f"the reply is cut at its token limit: {_abbreviate(reply.value)}",
                    hint=reply.limit_hint,
                )
            raw = reply.value
            retry = {"retry": {"answer": _abbreviate(raw, 10 * LONGEST_SHOWN), "problem": problem}}
        raise DelegateError(f"no usable answer: {problem}; it was {_abbreviate(raw)}")


def _drop_echo(raw: Any, sent: Mapping[str, Any], use: Use[Any, Any]) -> Any:
    """Return the reply without the keys that it repeats from the request; the same value when it
    repeats none, and for an answer that has a value of the request, such as a question that needs
    no rewriting."""
    if isinstance(raw, list) and raw and raw in sent.values():
        return {}
    if not isinstance(raw, dict) or raw.keys() <= use.schema["properties"].keys():
        return raw
    own = {key: value for key, value in raw.items() if key not in sent or sent[key] != value}
    return raw if len(own) == len(raw) else own


async def _ask_model(
    targets: DelegateTargets,
    connector: str,
    use: Use[Any, Any],
    prompt: ModelPrompt | None,
    wanted: dict[str, Any],
) -> RawReply:
    """Return the JSON in the answer of a model; its text where it has none. A wrong answer and its
    problem continue the conversation."""
    retry = wanted.get("retry")
    if prompt is None:
        kept = {key: wanted[key] for key in wanted if key in use.asks.model_fields}
        prompt = ModelPrompt(
            system=f"{use.task} {use.reply}",
            user=_without_picture(use, kept),
            reply=use.json_reply,
        )
    messages = [
        Message(role="system", content=prompt.system),
        Message(role="user", content=_with_picture(use, wanted, prompt.user)),
    ]
    if retry:
        problem = f"That cannot be used: {retry['problem']}. Answer again, with JSON alone."
        messages += [
            Message(role="assistant", content=retry["answer"]),
            Message(role="user", content=problem),
        ]
    reply = await targets.model(connector, messages, prompt.reply, use.max_tokens)
    return RawReply(
        reply.text if reply.data is None else reply.data,
        by_model=True,
        cut=reply.finish_reason == LENGTH,
        limit_hint=f"the step has {use.max_tokens} tokens"
        if use.max_tokens
        else "options.max_tokens of the connector sets the limit",
    )


async def _ask_assistant(
    targets: DelegateTargets, id: str, use: Use[Any, Any], wanted: dict[str, Any]
) -> RawReply:
    """Return the reply of an assistant: `data` of its Next hook when there is some, else the JSON
    in its text."""
    with span("agent", id) as node:
        asked = _with_picture(use, wanted, _without_picture(use, wanted))
        end, error = await targets.assistant(id, asked, use.json_reply)
        node.note(input=asked, output=end.content)
        node.data.update(characters=len(end.content), usage=end.usage.model_dump())
        if error:
            node.fail(error)
            raise DelegateError(error)
    by_model = end.data is None
    value = end.content if by_model else end.data
    if not isinstance(value, str):
        return RawReply(value)
    cut = by_model and end.finish_reason == LENGTH
    return RawReply(await _read_text(use, value), by_model, cut)


def _without_picture(use: Use[Any, Any], wanted: Mapping[str, Any]) -> str:
    """Return the request as JSON, without its picture."""
    kept = {key: value for key, value in wanted.items() if key != use.picture}
    return json.dumps(kept, ensure_ascii=False)


def _with_picture(use: Use[Any, Any], wanted: Mapping[str, Any], text: str) -> StepContent:
    """Return the content of a message with this text, and the picture of the request."""
    if not use.picture:
        return text
    picture = {"type": "image_url", "image_url": {"url": wanted[use.picture]}}
    return [{"type": "text", "text": text}, picture]


async def _call_tool(
    servers: ToolServers,
    use: Use[Any, Any],
    server: str,
    tool: str,
    permit: Callable[[str], None],
    wanted: dict[str, Any],
) -> RawReply:
    """Return the reply of a tool as one value. A tool that declares its arguments gets only
    those."""
    with span("mcp", f"{server}.{tool}" if tool else server, server=server) as node:
        offered = {
            each["name"]: each for each in (await servers.ask(server, "tools/list", {}))["tools"]
        }
        name = _choose_tool(use, server, tool, offered)
        permit(name)
        node.label = f"{server}.{name}"
        arguments = _select_declared(
            use, f"{server}.{name}", offered[name].get("inputSchema") or {}, wanted
        )
        answer = await servers.ask(server, "tools/call", {"name": name, "arguments": arguments})
        node.note(tool=node.label, input=arguments, output=answer)
        return RawReply(await _read_value(use, node, server, name, answer))


async def _read_text(use: Use[Any, Any], text: str) -> Any:
    """Return the JSON in a text; the text where it has none, or only quotes some."""
    if use.prose and not text.lstrip().startswith(("{", "```")):
        return text
    found = await extract_json_aside(text)
    if use.prose and not (isinstance(found, dict) and _has_text(use, found)):
        return text
    return text if found is None else found


def _has_text(use: Use[Any, Any], value: Mapping[str, Any]) -> bool:
    """Return whether JSON can be an answer of a step, and not a document that was asked for."""
    try:
        use.answers.model_validate(value)
    except ValidationError:
        return False
    return True


async def _read_value(
    use: Use[Any, Any], node: Span, server: str, tool: str, answer: Mapping[str, Any]
) -> Any:
    if "error" in answer:
        node.fail(str(answer["error"]))
    value = value_of(server, tool, answer)
    if use.prose and not (isinstance(value, dict) and _has_text(use, value)):
        value = text_of(answer)  # also where the text of a page is JSON
    if isinstance(value, str):
        return await _read_text(use, value)
    # SDKs wrap a result that is not an object: {"result": …}.
    return value["result"] if isinstance(value, dict) and value.keys() == {"result"} else value


def _choose_tool(use: Use[Any, Any], server: str, tool: str, offered: Mapping[str, Any]) -> str:
    """Return the tool to call: the named one, one with a usual name for the step, or the only
    one."""
    if tool:
        if tool not in offered:
            raise UnknownName(
                "MCP tool", f"{server}.{tool}", [f"{server}.{name}" for name in offered]
            )
        return tool
    usual = [name for name in use.tools if name in offered]
    if usual or len(offered) == 1:
        return (usual or list(offered))[0]
    names = ", ".join(sorted(offered)) or "none"
    raise DelegateError(
        f"MCP server {server!r} has no tool {' or '.join(map(repr, use.tools))} (it has: {names})",
        hint=f'name the tool: "mcp:{server}.<tool>"',
    )


def _select_declared(
    use: Use[Any, Any], tool: str, schema: Mapping[str, Any], wanted: dict[str, Any]
) -> dict[str, Any]:
    declared = schema.get("properties") or {}
    if missing := [
        name for name in schema.get("required") or () if name not in wanted and name != "retry"
    ]:
        sent = ", ".join(use.asks.model_fields)
        raise DelegateError(
            f"tool {tool!r} requires {missing[0]!r}, which requests of {use.name} do not have",
            hint=f"they have: {sent}",
        )
    if not declared or schema.get("additionalProperties") is True:
        return wanted
    return {name: value for name, value in wanted.items() if name in declared}


def _describe(raw: Any, error: ValidationError) -> str:
    if isinstance(raw, str):
        return "there is no JSON in it"
    found = validation_problems(error)
    # A problem with a list follows from those with its entries, so only theirs are shown.
    own = [
        (path, message)
        for path, message in found
        if not any(path == other[: len(path)] != other for other, _ in found)
    ]
    return "; ".join(f"{dotted(path)}: {message}" if path else message for path, message in own[:3])


def _abbreviate(raw: Any, longest: int = LONGEST_SHOWN) -> str:
    text = raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False, default=str)
    text = " ".join(text.split()) or "empty"
    return text if len(text) <= longest else f"{text[:longest]}…"
