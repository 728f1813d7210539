"""Builds the body of a request to Anthropic's Messages API. Pure.

Format: https://docs.anthropic.com/en/api/messages
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from groundhook.core.json_text import NotJson, read_json
from groundhook.core.ports import ModelCall
from groundhook.core.types.connector_spec import ConnectorSpec
from groundhook.core.types.turn import Message
from groundhook.host.llm.layout import SYSTEM, arranged
from groundhook.host.llm.parts import TEXTS, can_read, read_parts

MAX_TOKENS = 4096  # of an answer without a configured limit: the API requires one
# Tokens of thinking for `reasoning_effort`; the API's minimum is 1024.
THINKING = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384}
PDF = "application/pdf"
LONGEST_TITLE = 200  # characters of the name of a document
# Models that decide about their thinking themselves: those from version 4.6 on.
_ADAPTIVE = re.compile(
    r"claude-(?:opus|sonnet|haiku)-(?:4-(?:[6-9]|\d\d)(?!\d)|[5-9])|claude-mythos"
)
EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high"}
_DATA = re.compile(r"data:(?P<type>[\w./+-]+);base64,(?P<data>.*)", re.DOTALL)

Blocks = list[dict[str, Any]]
# From the `call_key` of a tool call to the thinking before it, which the API requires with the
# result.
ThoughtBefore = Callable[[str], Blocks]


def request(call: ModelCall, spec: ConnectorSpec, thought_before: ThoughtBefore) -> dict[str, Any]:
    """Return the body of a call, without `stream`. The call outranks the connector's file. Options
    that the API does not have (seed, penalties) and `response_format` are omitted."""
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
    if thinking := _thinking(sampling.get("reasoning_effort", ""), options.model, body):
        body |= thinking
    else:  # the API refuses these together with thinking
        temperature = call.temperature if call.temperature is not None else options.temperature
        values = {"temperature": temperature, "top_p": sampling.get("top_p")}
        # This API accepts a temperature of 0 to 1, OpenAI's one of 0 to 2.
        body |= {name: min(value, 1.0) for name, value in values.items() if value is not None}
    return body | dict(options.body)


def _thinking(effort: str, model: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys for thinking; none for an answer without. The API refuses thinking together
    with a required tool call, and after a tool call without its thinking."""
    forced = body.get("tool_choice", {}).get("type") in ("any", "tool")
    budget = THINKING.get(effort, 0)
    if not budget or forced or _needs_thought(body["messages"]):
        return {}
    limit = {"max_tokens": body["max_tokens"] + budget}  # thinking counts towards it
    if not _ADAPTIVE.search(model):
        return {**limit, "thinking": {"type": "enabled", "budget_tokens": budget}}
    thinking = {"type": "adaptive", "display": "summarized"}
    return {**limit, "thinking": thinking, "output_config": {"effort": EFFORTS[effort]}}


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
    if made and made[-1]["role"] == "assistant":
        _strip_end(made[-1]["content"])
    # The API requires a message of the user.
    return made or [{"role": "user", "content": [{"type": "text", "text": "…"}]}]


def _strip_end(content: Blocks) -> None:
    """Remove white space at the end of a message that the model continues: the API refuses it."""
    if content[-1]["type"] == "text":
        content[-1]["text"] = content[-1]["text"].rstrip()


def _content(message: Message, spec: ConnectorSpec, thought_before: ThoughtBefore) -> Blocks:
    if message.role == "tool":
        text = message.text or "(empty)"
        return [{"type": "tool_result", "tool_use_id": message.tool_call_id or "", "content": text}]
    if isinstance(message.content, list):
        content = [
            block
            for part in read_parts(message.content, partial(reads, spec=spec))
            if not _is_blank(block := _block(part))
        ]
    else:
        content = [{"type": "text", "text": message.content}] if message.text.strip() else []
    calls = message.tool_calls or ()
    thought = thought_before(call_key(calls[0])) if calls else []
    return [*thought, *content, *(_tool_use(call) for call in calls)]


def reads(part: Mapping[str, Any], spec: ConnectorSpec) -> bool:
    """Return whether the model reads a part of a message. The API has blocks for images and PDF
    files."""
    return can_read(part, spec, {"vision": True, "files": True}) and bool(_block(part))


def _block(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part as a block of the API; empty for one that the API does not have."""
    kind = str(part.get("type"))
    if kind in TEXTS:
        return {"type": "text", "text": str(part.get("text") or "")}
    if kind in ("image", "document") and isinstance(part.get("source"), Mapping):
        return {"type": kind, "source": dict(part["source"])}
    given = part.get(kind)
    if kind == "image_url" and given:
        url = given.get("url") if isinstance(given, Mapping) else given
        return {"type": "image", "source": _source(str(url or ""))}
    return _document(given) if kind == "file" and isinstance(given, Mapping) else {}


def _document(file: Mapping[str, Any]) -> dict[str, Any]:
    """Return the block of a PDF file; empty for another type."""
    data = _DATA.fullmatch(str(file.get("file_data") or ""))
    if not data or data["type"] != PDF:
        return {}
    name = file.get("filename")
    title = {"title": name[:LONGEST_TITLE]} if isinstance(name, str) and name else {}
    return {"type": "document", "source": _source(data[0]), **title}


def _source(url: str) -> dict[str, str]:
    data = _DATA.fullmatch(url)
    if not data:
        return {"type": "url", "url": url}
    return {"type": "base64", "media_type": data["type"], "data": data["data"]}


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
        arguments = read_json(function.get("arguments") or "{}")
    except NotJson:
        arguments = {}
    return {
        "type": "tool_use",
        "id": str(call.get("id", "")),
        "name": str(function.get("name", "")),
        "input": arguments if isinstance(arguments, dict) else {},
    }


def _needs_thought(turns: Blocks) -> bool:
    """Return whether a tool call lacks the thinking that the API requires before it."""
    return any(
        any(block["type"] == "tool_use" for block in turn["content"])
        and turn["content"][0]["type"] not in ("thinking", "redacted_thinking")
        for turn in turns
        if turn["role"] == "assistant"
    )
