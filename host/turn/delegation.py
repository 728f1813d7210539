"""Steps that an assistant or an MCP tool does in the place of the built-in: asking, checking the
answer, asking once more.

    answer = await scope.delegates.ask(KEYWORD, "workers.kw", KeywordAsk(query="…"),
    timeout_ms=3000)

An assistant is sent one user message that is JSON, so that its hook and its model can read it
alike; a tool the same as its arguments. A wrong answer goes back with what is wrong with it. Knows
nothing of turns and connections: `Asking` is how to ask.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic

import anyio
from pydantic import ValidationError

from groundhook.host.core.errors import (
    DelegateError,
    HostError,
    UnknownName,
)
from groundhook.host.core.exception_groups import unwrapped
from groundhook.host.core.json_text import extract_json
from groundhook.host.core.ports import ToolServers, accept_any
from groundhook.host.core.trace import Span, span
from groundhook.host.core.types.base import dotted, problems
from groundhook.host.core.types.delegation import (
    Answer,
    Asked,
)
from groundhook.host.core.types.events import StreamEnd
from groundhook.host.core.types.uses import (
    JsonReply,
    Use,
)
from groundhook.host.mcp.shapes import value_of

LONGEST_SHOWN = 400  # characters of a wrong answer in a message; the doer is sent ten times as many
ECHO = "it repeats the request instead of answering it"
BOUND = "options.max_tokens of the assistant that is asked, or of its connector, is the bound"
LONG = 20_000  # characters of a reply that is searched for JSON in a thread

LENGTH = "length"  # finish_reason of a reply that reached its bound


@dataclass(frozen=True)
class Given:
    """What came back. `spoken`: a model wrote it; `cut`: at its bound of tokens, so it may not be
    whole."""

    value: Any
    spoken: bool = False
    cut: bool = False


Doer = Callable[
    [dict[str, Any]], Awaitable[Given]
]  # what is asked, as JSON → what came back; raises HostError


@dataclass(frozen=True, kw_only=True)
class Asking:
    """How to reach those who may be asked. `assistant` runs a turn of that assistant over one user
    message, for an answer of that schema → how it ended, and why it failed. `server` is the full
    id of the MCP server of that name; it raises UnknownName, ConfigError. `permit` raises
    NotPermitted where a doer may not be given the tool of a server."""

    assistant: Callable[[str, str, JsonReply], Awaitable[tuple[StreamEnd, str]]]
    server: Callable[[str], str]
    permit: Callable[[str, str, str], None]
    servers: ToolServers


class Delegates:
    """`host.core.ports.Delegates` over an `Asking`."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    async def ask(
        self,
        use: Use[Asked, Answer],
        doer: str,
        asked: Asked,
        /,
        *,
        timeout_ms: int,
        hint: str = "",
        wrong: Callable[[Answer], str] = accept_any,
        tries: int = 2,
    ) -> Answer:
        """One answer of `doer`, an assistant's id or `mcp:<server>[.<tool>]`. Raises
        DelegateError."""
        with span("delegate", doer, use=use.name) as node:
            try:
                with unwrapped(), anyio.move_on_after(timeout_ms / 1000):
                    return await Delegate(use, self._doer(use, doer), wrong)(asked, tries=tries)
                problem = f"no answer within {timeout_ms} ms"
            except HostError as exc:
                node.fail(str(exc))
                raise DelegateError(f"{use.name} by {doer!r} failed: {exc}") from exc
            node.fail(problem)
            raise DelegateError(f"{use.name} by {doer!r} failed: {problem}", hint=hint)

    def _doer(self, use: Use[Any, Any], doer: str) -> Doer:
        if not doer.startswith("mcp:"):
            return partial(_by_assistant, self._asking, doer, use.json_reply)
        server, tool = self._server(doer.removeprefix("mcp:"))
        return partial(
            _by_tool,
            self._asking.servers,
            use,
            server,
            tool,
            partial(self._asking.permit, doer, server),
        )

    def _server(self, name: str) -> tuple[str, str]:
        """`<server>[.<tool>]` → the server's full id and the tool, which is empty where none is
        named. Both may have dots."""
        server, tool = name, ""
        while True:
            try:
                return self._asking.server(server), tool
            except UnknownName:
                if "." not in server:
                    break
            server, _, last = server.rpartition(".")
            tool = f"{last}.{tool}" if tool else last
        return self._asking.server(name), ""  # raises for the whole name


@dataclass(frozen=True)
class Delegate(Generic[Asked, Answer]):
    """One step in the hands of one doer. `wrong` says what is wrong with an answer that has the
    right shape; "" where nothing is."""

    use: Use[Asked, Answer]
    doer: Doer
    wrong: Callable[[Answer], str]

    async def __call__(self, asked: Asked, *, tries: int) -> Answer:
        """An answer that holds, after at most so many tries. Raises DelegateError, HostError."""
        wanted = {"task": self.use.name, **asked.model_dump(mode="json"), "reply": self.use.reply}
        problem, retry = "", dict[str, Any]()
        for _ in range(tries):
            sent = {**wanted, **retry}
            given = await self.doer(sent)
            raw = _without_echo(given.value, sent) if given.spoken else given.value
            try:
                answer = self.use.answers.model_validate(raw)
                problem = self.wrong(answer)
            except ValidationError as exc:
                problem = _worded(raw, exc) if raw is given.value else ECHO
            else:
                if not problem:
                    return answer
            if given.cut:
                raise DelegateError(
                    f"the reply is cut at its bound of tokens: {_shown(given.value)}", hint=BOUND
                )
            raw = given.value
            retry = {"retry": {"answer": _shown(raw, 10 * LONGEST_SHOWN), "problem": problem}}
        raise DelegateError(f"no usable answer: {problem}; it was {_shown(raw)}")


def _without_echo(raw: Any, sent: Mapping[str, Any]) -> Any:
    """What came back, without what it repeats of the request: the same value if it repeats
    nothing."""
    if isinstance(raw, list) and raw and raw in sent.values():
        return {}
    if not isinstance(raw, dict):
        return raw
    own = {key: value for key, value in raw.items() if key not in sent or sent[key] != value}
    return raw if len(own) == len(raw) else own


async def _by_assistant(asking: Asking, id: str, reply: JsonReply, wanted: dict[str, Any]) -> Given:
    """What an assistant answers: `data` of its Next hook where there is some, else the JSON in its
    text."""
    with span("agent", id) as node:
        end, error = await asking.assistant(id, json.dumps(wanted, ensure_ascii=False), reply)
        node.data.update(characters=len(end.content), usage=end.usage.model_dump())
        if error:
            node.fail(error)
            raise DelegateError(error)
    said = end.content if end.data is None else end.data
    spoken = end.data is None
    if not isinstance(said, str):
        return Given(said)
    found = (
        await anyio.to_thread.run_sync(extract_json, said)
        if len(said) > LONG
        else extract_json(said)
    )
    cut = spoken and end.finish_reason == LENGTH
    return Given(said if found is None else found, spoken, cut)


async def _by_tool(
    servers: ToolServers,
    use: Use[Any, Any],
    server: str,
    tool: str,
    permit: Callable[[str], None],
    wanted: dict[str, Any],
) -> Given:
    """What a tool answers, as one value. A tool with declared arguments is sent those that it
    declares."""
    with span("mcp", f"{server}.{tool}" if tool else server, server=server) as node:
        offered = {
            each["name"]: each for each in (await servers.ask(server, "tools/list", {}))["tools"]
        }
        name = _chosen(use, server, tool, offered)
        permit(name)
        node.label = f"{server}.{name}"
        arguments = _declared(
            use, f"{server}.{name}", offered[name].get("inputSchema") or {}, wanted
        )
        answer = await servers.ask(server, "tools/call", {"name": name, "arguments": arguments})
        return Given(_value(node, server, name, answer))


def _value(node: Span, server: str, tool: str, answer: Mapping[str, Any]) -> Any:
    if "error" in answer:
        node.fail(str(answer["error"]))
    value = value_of(server, tool, answer)
    if isinstance(value, str):
        found = extract_json(value[:LONG])
        return value if found is None else found
    # Tools whose result is no object come wrapped by the SDKs: {"result": …}.
    return value["result"] if isinstance(value, dict) and value.keys() == {"result"} else value


def _chosen(use: Use[Any, Any], server: str, tool: str, offered: Mapping[str, Any]) -> str:
    """The tool to call: the one that is named, one with a usual name, or the only one."""
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


def _declared(
    use: Use[Any, Any], tool: str, schema: Mapping[str, Any], wanted: dict[str, Any]
) -> dict[str, Any]:
    declared = schema.get("properties") or {}
    if missing := [
        name for name in schema.get("required") or () if name not in wanted and name != "retry"
    ]:
        sent = ", ".join(use.asks.model_fields)
        raise DelegateError(
            f"tool {tool!r} wants {missing[0]!r}, which is not sent for {use.name}",
            hint=f"sent are: {sent}",
        )
    if not declared or schema.get("additionalProperties") is True:
        return wanted
    return {name: value for name, value in wanted.items() if name in declared}


def _worded(raw: Any, error: ValidationError) -> str:
    if isinstance(raw, str):
        return "there is no JSON in it"
    found = problems(error)
    # What is said of a list whose entries are wrong follows from them.
    told = [
        (path, message)
        for path, message in found
        if not any(path == other[: len(path)] != other for other, _ in found)
    ]
    return "; ".join(
        f"{dotted(path)}: {message}" if path else message for path, message in told[:3]
    )


def _shown(raw: Any, longest: int = LONGEST_SHOWN) -> str:
    text = raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False, default=str)
    text = " ".join(text.split()) or "empty"
    return text if len(text) <= longest else f"{text[:longest]}…"
