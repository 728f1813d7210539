"""Turns whose hook asks other assistants and models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import anyio

from groundhook import open_host
from groundhook.core.types.events import Event
from groundhook.host.llm.scripted import ScriptedConnector
from tests.conftest import MakeApp
from tests.parts.turns import end, kb, of, scripted, web

PLAIN = '{"name": "A", "connector": "%s"}'


LONG = "From the other, in many small pieces."


async def turn(
    make_app: MakeApp,
    hooks: Mapping[str, str],
    models: Mapping[str, Sequence[Any]] | None = None,
    packages: Mapping[str, str] | None = None,
    assistant: str = "a",
    **requested: Any,
) -> tuple[list[Event], dict[str, ScriptedConnector]]:
    """Assistants by their hooks (`b` has none unless given), each with a model of its own name."""
    files = {"assistants/b/package.yao": PLAIN % "b", "kb/docs.kb.yao": '{"name": "Docs"}'}
    for id, hook in hooks.items():
        files[f"assistants/{id}/package.yao"] = PLAIN % id
        files[f"assistants/{id}/index.ts"] = hook
    files.update({f"assistants/{id}/package.yao": text for id, text in (packages or {}).items()})
    scripts: dict[str, Sequence[Any]] = {
        "a": ["Fine."],
        "b": [{"text": LONG, "times": 0}],
        **(models or {}),
    }
    connectors = {id: scripted(*script) for id, script in scripts.items()}
    with anyio.fail_after(60):
        async with (
            open_host(
                make_app(files),
                environment={},
                sources={"kb": kb(), "web": web()},
                connectors=connectors,
            ) as host,
            host.stream(assistant, requested.pop("messages", "question"), **requested) as events,
        ):
            return [event async for event in events], connectors


async def value(make_app: MakeApp, expression: str, *args: Any, **more: Any) -> Any:
    """What an expression is worth in Create of the assistant `a`."""
    hook = f"function Create(ctx) {{ return {{ metadata: {{ value: {expression} }} }}; }}"
    events, _ = await turn(make_app, {"a": hook}, *args, **more)
    assert not of(events, "error")
    return end(events).metadata["value"]
