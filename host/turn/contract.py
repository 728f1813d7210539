"""Keeps what a client demands of an answer (`Contract`), whatever the model's service does with it:
JSON of a schema is checked and repaired once, and a text that ends the answer ends it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from anyio import to_thread

from groundhook.core.errors import ContractBroken
from groundhook.core.ports import (
    Connector,
    Delta,
    Finished,
    ModelCall,
    Notice,
    ReasoningDelta,
    TextDelta,
    ToolDelta,
)
from groundhook.core.readers.json_in_text import extract_json_aside
from groundhook.core.tokens import estimated_tokens
from groundhook.core.types.contract import Contract
from groundhook.core.types.turn import Message, Usage
from groundhook.core.types.uses import JsonReply
from groundhook.host.llm.deltas import answering
from groundhook.host.turn.prompt.budget import prompt_tokens

LONGEST_QUOTED = 4000  # characters of a wrong answer that the model reads again
_JSON = "Answer with one JSON object and nothing else: no words before or after it, no code fence."


def check_choice(contract: Contract, calls: Sequence[Mapping[str, Any]]) -> None:
    """Raise ContractBroken when the client demands a call of its tools and the model made none."""
    called = {call["function"]["name"] for call in calls}
    if contract.choice == "auto" or contract.choice in called:
        return
    if contract.choice == "required" and called:
        return
    raise ContractBroken(
        "tool_choice: the model called no tool", hint="try another model, or `auto`"
    )


def check_names(contract: Contract, own: Iterable[Mapping[str, Any]]) -> None:
    """Raise ContractBroken if a tool of the client has the name of one of the assistant's `own`: a
    call would not say which of them is meant."""
    if taken := sorted(contract.names & {tool["function"]["name"] for tool in own}):
        raise ContractBroken(
            f"tools: the assistant has a tool of its own with the name {taken[0]!r}",
            hint="give the client's tool another name",
        )


def keeping(connector: Connector, contract: Contract) -> Connector:
    """Return a connector whose answers keep a contract's `stop` and `reply`."""
    if contract.stop:
        connector = _Stopping(connector, contract.stop)
    return _AnsweringJson(connector, contract.reply) if contract.reply else connector


async def held_to(contract: Contract, text: str) -> str:
    """Return the answer of a hook as the contract has it: as JSON alone, cut before a text that
    ends it. Raises ContractBroken."""
    if contract.reply:
        value, problem = await _read(text, contract.reply)
        if problem:
            raise ContractBroken(f"Create's answer has another form: {problem}")
        text = json.dumps(value, ensure_ascii=False)
    found = [at for stop in contract.stop if (at := text.find(stop)) >= 0]
    return text[: min(found)] if found else text


async def _read(text: str, reply: JsonReply | Literal["json"]) -> tuple[Any, str]:
    """Return the JSON of an answer, and what is wrong with it ("": nothing)."""
    value = await extract_json_aside(text)
    if not isinstance(value, Mapping):
        return value, "it is not a JSON object"
    if reply == "json":
        return value, ""
    return value, await to_thread.run_sync(_problem, dict(value), reply.schema)


@dataclass(frozen=True)
class _Stopping:
    """Ends an answer before the first of some texts, also where the endpoint goes on behind it. Of
    an answer that it leaves, whose endpoint has not counted yet, the tokens are estimated."""

    connector: Connector
    stop: Sequence[str]

    @asynccontextmanager
    async def stream(self, call: ModelCall, /) -> AsyncIterator[AsyncIterator[Delta]]:
        async with (
            answering(self.connector, call) as deltas,
            aclosing(self._cut(call, deltas)) as cut,
        ):
            yield cut

    async def _cut(self, call: ModelCall, deltas: AsyncIterator[Delta]) -> AsyncGenerator[Delta]:
        held, longest, text = "", max(map(len, self.stop)), ""
        async for delta in deltas:
            if isinstance(delta, TextDelta | ReasoningDelta):
                text += delta.text
            if not isinstance(delta, TextDelta):
                if isinstance(delta, Finished) and held:
                    yield TextDelta(held)
                yield delta
                continue
            held += delta.text
            found = [at for text in self.stop if (at := held.find(text)) >= 0]
            if found:
                if held[: min(found)]:
                    yield TextDelta(held[: min(found)])
                yield Finished("stop", usage=_estimated(call, text))
                return
            ready = len(held) - (longest - 1)  # the rest may be the beginning of such a text
            if ready > 0:
                yield TextDelta(held[:ready])
                held = held[ready:]


@dataclass(frozen=True)
class _AnsweringJson:
    """Answers with JSON that fits, in one piece. A wrong answer is sent back to the model once.
    Raises ContractBroken for the second one."""

    connector: Connector
    reply: JsonReply | Literal["json"]

    @asynccontextmanager
    async def stream(self, call: ModelCall, /) -> AsyncIterator[AsyncIterator[Delta]]:
        async with aclosing(self._checked(call)) as checked:
            yield checked

    async def _checked(self, call: ModelCall) -> AsyncGenerator[Delta]:
        call = replace(call, messages=self._instructed(call.messages), reply=call.reply)
        usage, problem = Usage(), ""
        for _ in range(2):
            text, finished, called = "", Finished(""), False
            async with answering(self.connector, call) as deltas:
                async for delta in deltas:
                    match delta:
                        case TextDelta():
                            text += delta.text
                        case Finished():
                            finished = delta
                        case ReasoningDelta() | Notice():
                            yield delta
                        case ToolDelta():
                            called = True
                            yield delta
            usage = _sum(usage, finished.usage)
            finished = replace(finished, usage=usage)
            if called:  # the text beside a call is no answer
                yield finished
                return
            value, problem = await _read(text, self.reply)
            if not problem:
                yield TextDelta(json.dumps(value, ensure_ascii=False))
                yield finished
                return
            if finished.finish_reason == "length":
                problem = f"it is cut at its limit of tokens ({problem})"
                break
            again = f"That answer cannot be used: {problem}. {_JSON}"
            call = replace(
                call,
                messages=[
                    *call.messages,
                    Message(role="assistant", content=text[:LONGEST_QUOTED] or "…"),
                    Message(role="user", content=again),
                ],
            )
        raise ContractBroken(f"the answer does not have the demanded form: {problem}")

    def _instructed(self, messages: Sequence[Message]) -> list[Message]:
        schema = "" if self.reply == "json" else json.dumps(self.reply.schema, ensure_ascii=False)
        words = f"{_JSON} It must be valid for this JSON Schema: {schema}" if schema else _JSON
        if messages and messages[0].role == "system":
            first = messages[0]
            return [
                first.model_copy(update={"content": f"{first.text}\n\n{words}"}),
                *messages[1:],
            ]
        return [Message(role="system", content=words), *messages]


def _problem(value: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    # Imported here since the library takes a tenth of a second to import.
    from groundhook.host.tools.mcp.arguments import problems_of, validator_of

    return "; ".join(problems_of(value, validator_of(schema), whole=""))


def _estimated(call: ModelCall, text: str) -> Usage:
    tools = estimated_tokens(json.dumps([*call.tools], default=str)) if call.tools else 0
    prompt, answer = prompt_tokens(call.messages) + tools, estimated_tokens(text)
    return Usage(prompt_tokens=prompt, completion_tokens=answer, total_tokens=prompt + answer)


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(
        prompt_tokens=one.prompt_tokens + other.prompt_tokens,
        completion_tokens=one.completion_tokens + other.completion_tokens,
        total_tokens=one.total_tokens + other.total_tokens,
    )
