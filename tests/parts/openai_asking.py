"""Questions to a model behind an OpenAI-compatible service."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from groundhook.core.errors import (
    ModelError,
)
from groundhook.core.ports import Delta, ModelCall, TextDelta
from groundhook.core.types.connector_spec import ConnectorSpec
from groundhook.core.types.turn import Message
from groundhook.host.llm.openai import OpenAIConnector
from tests.loopback.server import Loopback

PATH = "/v1/chat/completions"


CALL = ModelCall(messages=[Message(role="user", content="Hello?")])


def spec(server: Loopback, **options: Any) -> ConnectorSpec:
    options = {
        "model": "test-model",
        "host": f"{server.url}/v1",
        "key": "sk-test",
        "timeout": 60,
        "retries": 0,
        **options,
    }
    return TypeAdapter(ConnectorSpec).validate_python(
        {"id": "gpt", "type": "openai", "options": options}
    )


async def ask(spec: ConnectorSpec, call: ModelCall = CALL) -> list[Delta]:
    async with OpenAIConnector(spec).stream(call) as deltas:
        return [delta async for delta in deltas]


async def ask_until_it_fails(spec: ConnectorSpec, kind: type[ModelError]) -> tuple[str, ModelError]:
    """What had arrived, and how it failed."""
    got: list[str] = []

    async def listen() -> None:
        async with OpenAIConnector(spec).stream(CALL) as deltas:
            async for delta in deltas:
                if isinstance(delta, TextDelta):
                    got.append(delta.text)

    with pytest.raises(kind) as caught:
        await listen()
    assert type(caught.value) is kind
    return "".join(got), caught.value
