"""What an OpenAI-compatible endpoint streams, as `Sse` events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def chunk(
    delta: Mapping[str, Any] | None = None, finish: str | None = None, **extra: Any
) -> dict[str, Any]:
    """One chunk of a completion."""
    choice = {"index": 0, "delta": dict(delta or {}), "finish_reason": finish}
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "test-model",
        "choices": [choice],
        **extra,
    }


def answer(*texts: str, finish: str = "stop") -> list[Mapping[str, Any] | str | bytes]:
    """A whole answer: a role, the texts, the reason, the usage and the end."""
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    return [
        chunk({"role": "assistant", "content": ""}),
        *(chunk({"content": text}) for text in texts),
        chunk(finish=finish),
        {**chunk(), "choices": [], "usage": usage},
        "[DONE]",
    ]
