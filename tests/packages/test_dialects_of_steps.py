"""What hooks of published packages do beside configuration: values that Create hands to Next,
callbacks of two shapes, steps that a hook does alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio

from groundhook import open_host
from groundhook.core.types.events import Event
from groundhook.host.llm.scripted import ScriptedConnector
from tests.conftest import MakeApp
from tests.parts.agents import value
from tests.parts.turns import end, kb, of, run, scripted


async def test_the_fields_that_create_returns_reach_next(make_app: MakeApp) -> None:
    app = make_app(
        {
            "assistants/a/package.yao": '{"connector": "script"}',
            "assistants/a/index.ts": """
                function Create(ctx) {
                  return { theme: "dark", route: "/shop", locale: "de", metadata: { step: ctx.metadata.step + 1 } };
                }
                function Next(ctx) {
                  const { theme, route, locale, metadata } = ctx;
                  return { data: { theme, route, locale, metadata } };
                }
            """,
        }
    )
    options = {"theme": "light", "locale": "en", "metadata": {"step": 1, "kept": True}}
    events = await run(app, connector=scripted("Fine."), options=options)
    assert not of(events, "error")
    assert end(events).data == {
        "theme": "dark",
        "route": "/shop",
        "locale": "de",
        "metadata": {"step": 2, "kept": True},
    }


async def test_a_callback_gets_the_chunk_or_the_id_the_index_and_the_chunk(
    make_app: MakeApp,
) -> None:
    one = "(() => { const got = []; %s; return got.join('|').slice(0, 12); })()"
    plain = one % "ctx.llm.Stream('b', 'x', { onChunk: (chunk) => { got.push(chunk.content) } })"
    assert (await value(make_app, plain)).startswith("From t|")
    three = "(id, index, chunk) => { if (got.length < 1) got.push([id, index, chunk.type].join()) }"
    for call in (
        f"ctx.llm.Stream('b', 'x', {{ onChunk: {three} }})",
        f"ctx.llm.All([{{ connector: 'b', messages: 'x' }}], {{ onChunk: {three} }})",
        f"ctx.agent.Call('b', 'x', {{ onChunk: {three} }})",
        f"ctx.agent.All([{{ agent: 'b', messages: 'x' }}], {{ onChunk: {three} }})",
        f"ctx.llm.Stream('b', 'x', {{ on_chunk: {three} }})",
    ):
        assert await value(make_app, one % call) == "b,0,text"


JUDGE = """
function Next(ctx, payload) {
  const request = JSON.parse(payload.messages[payload.messages.length - 1].content);
  return { data: { order: request.items.map((item) => item.citation_id).reverse() } };
}
"""


async def judged(make_app: MakeApp, package: dict[str, Any]) -> tuple[list[Event], Any, Any]:
    """A turn whose results are reranked by an assistant; the models of both."""
    app: Path = make_app(
        {
            "agent/agent.yml": "connector: default\n",
            "assistants/a/package.yao": json.dumps(
                {
                    "connector": "script",
                    "kb": ["docs"],
                    "search": {"kb": True, "rerank": {"type": "agent", "agent": "judge"}},
                }
            ),
            "assistants/judge/package.yao": json.dumps(package),
            "assistants/judge/index.ts": JUDGE,
            "kb/docs.kb.yao": "{}",
        }
    )
    own, default = scripted("See {ref:0}."), scripted({"text": "Nothing.", "times": 0})
    connectors: dict[str, ScriptedConnector] = {"script": own, "default": default}
    with anyio.fail_after(60):
        async with (
            open_host(app, environment={}, sources={"kb": kb()}, connectors=connectors) as host,
            host.stream("a", "question") as events,
        ):
            return [event async for event in events], own, default


async def test_a_step_that_a_hook_does_alone_calls_no_model(make_app: MakeApp) -> None:
    events, own, default = await judged(make_app, {"name": "Judge"})
    assert (len(own.calls), len(default.calls)) == (1, 0)
    assert not of(events, "warning")
    assert [cited.title for cited in end(events).citations] == ["k2"]


async def test_a_step_of_an_assistant_with_a_model_of_its_own_calls_it(make_app: MakeApp) -> None:
    _, _, default = await judged(make_app, {"name": "Judge", "connector": "default"})
    assert len(default.calls) == 1
