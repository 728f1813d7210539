"""Builds the body of a request to an OpenAI-compatible endpoint. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from groundhook.core.ports import ModelCall
from groundhook.core.types.connector_spec import ConnectorOptions, ConnectorSpec
from groundhook.core.types.turn import Message
from groundhook.host.llm.layout import arranged
from groundhook.host.llm.parts import TEXTS, can_read, read_parts

OPENAI = "https://api.openai.com/v1"
# Types of parts in requests for chat completions; the last two are those of other endpoints.
PARTS = frozenset({*TEXTS, "image_url", "file", "input_audio", "audio_url", "video_url"})


def request(call: ModelCall, spec: ConnectorSpec) -> dict[str, Any]:
    """Return the body of a call, with only the options that are set; the call outranks the
    connector's file."""
    options = spec.options
    messages = arranged(
        call.messages, sources=call.sources, place=options.sources, system=options.system
    )
    body: dict[str, Any] = {
        "model": options.model,
        "messages": [_wire(message, spec) for message in messages],
        "stream": True,
    }
    if call.tools and not spec.lacks("tool_calls"):
        body["tools"] = [dict(tool) for tool in call.tools]
        if call.tool_choice is not None:
            body["tool_choice"] = call.tool_choice
    if call.user:
        body["user"] = call.user
    values = {
        "temperature": call.temperature if call.temperature is not None else options.temperature,
        **call.sampling.over(options),
        **_limits(call, options),
    }
    given = {name: value for name, value in values.items() if value is not None}
    return body | given | dict(options.body)


def _limits(call: ModelCall, options: ConnectorOptions) -> dict[str, int | None]:
    """Return the limits of the answer in tokens: those of the call if it has any. A limit of 0
    means the model's own limit and is not sent: endpoints refuse it, or return an empty answer."""
    of_call = call.max_tokens is not None or call.max_completion_tokens is not None
    limits = call if of_call else options
    if limits.max_completion_tokens and call.max_tokens is None:
        # Endpoints refuse a request with both.
        return {"max_completion_tokens": limits.max_completion_tokens}
    return {
        "max_tokens": limits.max_tokens or None,
        "max_completion_tokens": limits.max_completion_tokens or None,
    }


def extras(call: ModelCall) -> dict[str, Any]:
    """Return the options that are sent until the endpoint refuses them: the token count, and the
    form of an answer that must be JSON."""
    wanted: dict[str, Any] = {"stream_options": {"include_usage": True}}
    if call.reply == "json":
        wanted["response_format"] = {"type": "json_object"}
    elif call.reply is not None:
        schema: dict[str, Any] = {"name": call.reply.name, "schema": dict(call.reply.schema)}
        said = {"description": call.reply.description, "strict": call.reply.strict}
        schema |= {key: value for key, value in said.items() if value is not None}
        wanted["response_format"] = {"type": "json_schema", "json_schema": schema}
    return wanted


def needs_key(host: str) -> bool:
    """Return whether an endpoint usually requires a key: those on this machine or in a private
    network do not."""
    name = (urlsplit(host).hostname or "") if host else "api.openai.com"
    try:
        return not ipaddress.ip_address(name).is_private
    except ValueError:
        return "." in name and not name.endswith((".local", ".localhost", ".internal", ".lan"))


def reads(part: Mapping[str, Any], spec: ConnectorSpec) -> bool:
    """Return whether the model of an endpoint reads a part of a message. Where the connector's file
    does not say it: images anywhere, files at OpenAI alone."""
    of_openai = urlsplit(spec.options.host or OPENAI).hostname == "api.openai.com"
    defaults = {"vision": True, "files": of_openai}
    return str(part.get("type")) in PARTS and can_read(part, spec, defaults)


def _wire(message: Message, spec: ConnectorSpec) -> dict[str, Any]:
    """Return a message for the endpoint, without data parts, which only the host understands. Parts
    that are all text are sent as one text, since templates of small models accept nothing else."""
    wire = message.wire()
    content = wire.get("content")
    if isinstance(content, list):
        message = message.model_copy(
            update={"content": read_parts(content, partial(reads, spec=spec))}
        )
        parts = [part for part in message.content or () if isinstance(part, dict)]
        plain = all(part.get("type") == "text" for part in parts)
        wire["content"] = message.text if plain else parts
    return wire
