"""Questions to a database in whole turns: when the assistant's language model reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from groundhook import open_host
from groundhook.core.types.events import Event, SearchComplete, Trace, TraceNode
from groundhook.core.types.turn import Identity
from tests.conftest import MakeApp
from tests.parts.turns import end, of, scripted

HARD = "anything red among the pens, pal"
ANSWER = {"query": {"model": "article", "wheres": [{"field": "title", "op": "=", "value": "Red"}]}}
MODEL = {
    "name": "Article",
    "table": {"name": "article"},
    "columns": [{"name": "id", "type": "ID"}, {"name": "title", "type": "string"}],
    "values": [{"id": 1, "title": "Red"}, {"id": 2, "title": "Blue"}],
}
PACKAGE: dict[str, Any] = {
    "name": "A",
    "connector": "gpt",
    "search": {"db": {"timeout_ms": 60_000}, "query": {"timeout_ms": 50_000}},
    "db": {"models": ["article"]},
}


def app(make_app: MakeApp, hook: str = "", **package: Any) -> Path:
    files = {
        "assistants/a/package.yao": json.dumps({**PACKAGE, **package}),
        "models/article.mod.yao": json.dumps(MODEL),
        "connectors/gpt.conn.yao": '{"type": "openai", "options": {"model": "m"}}',
        "connectors/fixed.conn.yao": '{"type": "scripted", "options": {"script": ["Fine."]}}',
        **({"assistants/a/index.ts": hook} if hook else {}),
    }
    return make_app(files)


async def turn(app: Path, *script: Any, **connectors: Any) -> tuple[list[Event], Any]:
    model = scripted(*script)
    given = {"gpt": model, **connectors}
    with anyio.fail_after(60):
        async with open_host(app, environment={}, connectors=given) as host:
            await host.database.load()
            async with host.stream("a", HARD, identity=Identity(user_id="u")) as events:
                return [event async for event in events], model


def searched(events: list[Event]) -> SearchComplete:
    (found,) = of(events, "search_complete")
    assert isinstance(found, SearchComplete)
    return found


def nodes(events: list[Event]) -> list[TraceNode]:
    last = {event.node.id: event.node for event in events if isinstance(event, Trace)}
    return list(last.values())


async def test_by_default_the_assistants_own_model_reads_what_the_reader_does_not(
    make_app: MakeApp,
) -> None:
    events, model = await turn(app(make_app), json.dumps(ANSWER), "It is {ref:0}.")
    assert searched(events).read_by == "connector:gpt"
    assert searched(events).read_as == "Article where Title = Red"
    assert searched(events).total == 1
    assert end(events).certainty == "sure"
    assert len(model.calls) == 2
    assert "read as" in model.calls[1].messages[-1].text.casefold()


async def test_the_call_is_in_the_trace_with_its_tokens(make_app: MakeApp) -> None:
    events, _ = await turn(app(make_app), json.dumps(ANSWER), "It is {ref:0}.")
    (delegate,) = [node for node in nodes(events) if node.type == "delegate"]
    (model,) = [
        node for node in nodes(events) if node.type == "model" and node.parent == delegate.id
    ]
    assert "total_tokens" in model.data
    (built,) = [
        node for node in nodes(events) if node.type == "dsl_build" and node.id == delegate.parent
    ]
    assert built.data["dsl"][0]["model"] == "article"


@pytest.mark.parametrize("connector", ["extractive", "fixed"])
async def test_a_connector_that_is_no_language_model_reads_nothing(
    make_app: MakeApp, connector: str
) -> None:
    events, model = await turn(app(make_app, connector=connector), "never")
    assert searched(events).read_by == "builtin"
    assert searched(events).certainty == "none"
    assert model.calls == []


async def test_the_first_language_model_of_several_connectors_reads(make_app: MakeApp) -> None:
    both = app(make_app, connector=["fixed", "gpt"])
    events, _ = await turn(both, json.dumps(ANSWER))
    assert searched(events).read_by == "connector:gpt"


async def test_builtin_leaves_the_model_out(make_app: MakeApp) -> None:
    events, model = await turn(app(make_app, uses={"query": "builtin"}), "I do not know.")
    assert searched(events).read_by == "builtin"
    assert len(model.calls) == 1


async def test_the_model_that_create_chooses_reads(make_app: MakeApp) -> None:
    hook = 'function Create() { return { connector: "gpt" } }'
    events, _ = await turn(
        app(make_app, hook, connector="extractive"), json.dumps(ANSWER), "It is {ref:0}."
    )
    assert searched(events).read_by == "connector:gpt"


async def test_a_model_that_fails_costs_a_warning_and_the_turn_goes_on(make_app: MakeApp) -> None:
    down = {"error": {"code": "unreachable", "message": "nobody there"}}
    events, _ = await turn(app(make_app), down, "I do not know.")
    assert searched(events).certainty == "none"
    assert searched(events).explanation
    assert end(events).content == "I do not know."
    (warning,) = of(events, "warning")
    assert "query by 'connector:gpt' failed: nobody there" in warning.message
    assert "the built-in reading of the question stays" in warning.message
