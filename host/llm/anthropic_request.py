"""Builds the body of a request to Anthropic's Messages API. Pure.

Format: https://docs.anthropic.com/en/api/messages
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from groundhook.core.json_text import is_deeper
from groundhook.core.ports import ModelCall
from groundhook.core.types.connector_spec import ConnectorSpec
from groundhook.core.types.turn import Message
from groundhook.host.llm.layout import SYSTEM, arranged
from groundhook.host.llm.request import visible

MAX_TOKENS = 4096  # of an answer without a configured limit: the API requires one
# Tokens of thinking for `reasoning_effort`; the API's minimum is 1024.
THINKING = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384}
_DATA = re.compile(r"data:(?P<type>[\w./+-]+);base64,(?P<data>.*)", re.DOTALL)

Blocks = list[dict[str, Any]]
# From the `call_key` of a tool call to the thinking before it, which the API requires with the
# result.
ThoughtBefore = Callable[[str], Blocks]


def request(call: ModelCall, spec: ConnectorSpec, thought_before: ThoughtBefore) -> dict[str, Any]:
    """Return the body of a call, without `stream`. The call outranks the connector's file. Options
    that the API does not have (seed, penalties, response_format) are omitted."""
    options = spec.options
    messages = arranged(
        call.messages, sources=call.sources, place=options.sources, system=options.system
    )
    system = messages[0].text if messages and messages[0].role in SYSTEM else ""
    turns = _turns(messages[1:] if system else messages, spec, thought_before)
    sampling = call.sampling.over(options)
    body: dict[str, Any] = {
        "model": options.model,
        "messages": turns,
        "max_tokens": _limit(call, spec),
    }
    if system:
        body["system"] = system
    if call.tools and not spec.lacks("tool_calls"):
        body["tools"] = [_tool(tool) for tool in call.tools]
        if call.tool_choice is not None:
            body["tool_choice"] = _tool_choice(call.tool_choice)
    if call.user:
        body["metadata"] = {"user_id": call.user}
    if "stop" in sampling:
        body["stop_sequences"] = sampling["stop"]
    if budget := _thinking_tokens(sampling.get("reasoning_effort", ""), body):
        body["thinking"] = {"type": "enabled", "budget_tokens": budget}
        body["max_tokens"] += budget  # thinking counts towards it
    else:  # the API refuses these together with thinking
        temperature = call.temperature if call.temperature is not None else options.temperature
        values = {"temperature": temperature, "top_p": sampling.get("top_p")}
        # This API accepts a temperature of 0 to 1, OpenAI's one of 0 to 2.
        body |= {name: min(value, 1.0) for name, value in values.items() if value is not None}
    return body | dict(options.body)


def _thinking_tokens(effort: str, body: Mapping[str, Any]) -> int:
    """Return the limit of the tokens of thinking; 0: no thinking. The API refuses thinking together
    with a required tool call, and after a tool call without its thinking."""
    forced = body.get("tool_choice", {}).get("type") in ("any", "tool")
    return 0 if forced or _needs_thought(body["messages"]) else THINKING.get(effort, 0)


def _limit(call: ModelCall, spec: ConnectorSpec) -> int:
    limits = (call.max_completion_tokens, call.max_tokens)
    if limits == (None, None):
        limits = (spec.options.max_completion_tokens, spec.options.max_tokens)
    return next((limit for limit in limits if limit), MAX_TOKENS)


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = tool["function"]
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    made = {"name": function["name"], "input_schema": schema}
    return {**made, "description": function["description"]} if function.get("description") else made


def _tool_choice(choice: str | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(choice, str):
        return {"type": "any" if choice == "required" else choice}
    return {"type": "tool", "name": (choice.get("function") or choice).get("name", "")}


def _turns(
    messages: Sequence[Message], spec: ConnectorSpec, thought_before: ThoughtBefore
) -> Blocks:
    """Return the conversation with alternating roles; results of tools are messages of the user."""
    made: Blocks = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        content = _content(message, spec, thought_before)
        if not content:
            continue
        if made and made[-1]["role"] == role:
            made[-1]["content"] += content
        else:
            made.append({"role": role, "content": content})
    # The API requires a message of the user.
    return made or [{"role": "user", "content": [{"type": "text", "text": "…"}]}]


def _content(message: Message, spec: ConnectorSpec, thought_before: ThoughtBefore) -> Blocks:
    if message.role == "tool":
        text = message.text or "(empty)"
        return [{"type": "tool_result", "tool_use_id": message.tool_call_id or "", "content": text}]
    if isinstance(message.content, list):
        content = [
            part for each in visible(message.content, spec) if not _is_blank(part := _part(each))
        ]
    else:
        content = [{"type": "text", "text": message.content}] if message.text.strip() else []
    calls = message.tool_calls or ()
    thought = thought_before(call_key(calls[0])) if calls else []
    return [*thought, *content, *(_tool_use(call) for call in calls)]


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part of a message as a block; a part of another kind becomes text, its JSON."""
    if part.get("type") == "text":
        return {"type": "text", "text": str(part.get("text") or "")}
    if part.get("type") == "image_url" and isinstance(part.get("image_url"), Mapping):
        url = str(part["image_url"].get("url") or "")
        data = _DATA.fullmatch(url)
        source = (
            {"type": "base64", "media_type": data["type"], "data": data["data"]}
            if data
            else {"type": "url", "url": url}
        )
        return {"type": "image", "source": source}
    if part.get("type") == "image" and isinstance(part.get("source"), Mapping):
        return {"type": "image", "source": dict(part["source"])}
    return {"type": "text", "text": json.dumps(dict(part), ensure_ascii=False)}


def _is_blank(block: Mapping[str, Any]) -> bool:
    """Return whether the API would refuse a block, and the request with it."""
    return block["type"] == "text" and not block["text"].strip()


def call_key(call: Mapping[str, Any]) -> str:
    """Return a text that identifies a tool call. Its id alone does not: some endpoints number the
    calls of each answer, so that those of two users have the same ids."""
    block = _tool_use(call)
    return json.dumps([block["id"], block["name"], block["input"]], sort_keys=True)


def _tool_use(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function") or {}
    try:
        arguments = json.loads(function.get("arguments") or "{}")
    except (ValueError, RecursionError):
        arguments = {}
    return {
        "type": "tool_use",
        "id": str(call.get("id", "")),
        "name": str(function.get("name", "")),
        "input": arguments if isinstance(arguments, dict) and not is_deeper(arguments) else {},
    }


def _needs_thought(turns: Blocks) -> bool:
    """Return whether a tool call lacks the thinking that the API requires before it."""
    return any(
        any(block["type"] == "tool_use" for block in turn["content"])
        and turn["content"][0]["type"] not in ("thinking", "redacted_thinking")
        for turn in turns
        if turn["role"] == "assistant"
    )
