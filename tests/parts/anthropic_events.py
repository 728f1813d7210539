"""Events of a stream as Anthropic's service sends them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.loopback.server import Sse


def event(type: str, **fields: Any) -> bytes:
    data = json.dumps({"type": type, **fields})
    return f"event: {type}\ndata: {data}\n\n".encode()


def started() -> bytes:
    usage = {"input_tokens": 7, "output_tokens": 1, "cache_read_input_tokens": 3}
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x-1",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage, "cache_creation_input_tokens": None},
    }
    return event("message_start", message=message)


def block(index: int, start: Mapping[str, Any], *deltas: Mapping[str, Any]) -> list[bytes]:
    return [
        event("content_block_start", index=index, content_block=start),
        event("ping"),
        *(event("content_block_delta", index=index, delta=delta) for delta in deltas),
        event("content_block_stop", index=index),
    ]


def text(index: int, *parts: str) -> list[bytes]:
    deltas = [{"type": "text_delta", "text": part} for part in parts]
    return block(index, {"type": "text", "text": ""}, *deltas)


def thinking(index: int, *parts: str) -> list[bytes]:
    deltas = [{"type": "thinking_delta", "thinking": part} for part in parts]
    signature = {"type": "signature_delta", "signature": "sig=="}
    start = {"type": "thinking", "thinking": "", "signature": ""}
    return block(index, start, *deltas, signature)


def ended(reason: str = "end_turn") -> list[bytes]:
    delta = {"stop_reason": reason, "stop_sequence": None}
    usage = {"output_tokens": 5}
    return [event("message_delta", delta=delta, usage=usage), event("message_stop")]


def answered(*blocks: list[bytes], reason: str = "end_turn") -> Sse:
    return Sse([started(), *(each for block in blocks for each in block), *ended(reason)])
