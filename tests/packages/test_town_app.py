"""A second app in the style of published packages: the check finds no error in it, and each of its
turns does what its hooks say."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from groundhook import open_host
from groundhook.core.types.events import Event
from groundhook.host.llm.scripted import ScriptedConnector
from groundhook.host.testing.canned import CannedSource, canned_item
from tests.cli.conftest import run_in
from tests.conftest import MakeApp
from tests.packages.town_app import PACKAGES, files
from tests.parts.turns import end, of, scripted

KEYS = {"SERPER_API_KEY": "k"}


def test_the_check_of_such_an_app_shows_no_error(make_app: MakeApp) -> None:
    ran = run_in(make_app(files()), "check", environment=KEYS)
    assert len(PACKAGES) == 20
    assert (ran.problems, ran.code, ran.out) == ([], 0, "No mistakes found.\n")


async def turn(
    make_app: MakeApp, assistant: str, message: Any = "question", *replies: Any
) -> tuple[list[Event], ScriptedConnector]:
    model = scripted(*replies, {"text": "Fine.", "times": 0})
    with anyio.fail_after(60):
        async with opened(make_app, model) as host:
            await host.database.load()
            identity = {"user_id": "u1", "team_id": "t1", "tenant_id": "c1"}
            async with host.stream(assistant, message, identity=identity) as events:
                return [event async for event in events], model


def opened(make_app: MakeApp, model: ScriptedConnector) -> Any:
    items = [canned_item(key, title=key.upper(), score=0.5) for key in ("a", "b")]
    return open_host(
        make_app(files()),
        environment=KEYS,
        sources={"web": CannedSource({"*": items[:1]}), "kb": CannedSource({"*": items})},
        connectors={"small": model, "team.wise": model},
    )


@pytest.mark.parametrize(
    ("assistant", "metadata", "data"),
    [
        (
            "mcps.bridge",
            {"tools": ["fee", "permit"], "fee": 9000, "all": 2, "direct": 6000},
            None,
        ),
        ("connectors.chooser", {}, None),
        ("apis.departures", {}, None),
        ("toolkits.tools", {"sum": 3, "same": 3, "offered": 4}, None),
        ("src", {}, None),
        ("tests.plain", {}, 1),
        (
            "tests.aliases",
            {"known": [{"kind": "dog", "euros": 90}, {"kind": "cat", "euros": None}]},
            True,
        ),
        (
            "tests.classes",
            {
                "steps": [{"total": 2}, {"total": 3}],
                "made": 2,
                "word": "ja",
                "value": 2,
                "big": 1000,
            },
            None,
        ),
        (
            "tests.spaces",
            {"id": True, "keys": ["step", "of"], "before": False, "after": True},
            {"has": True, "none": None},
        ),
        (
            "tests.callers",
            {
                "one": {"id": "none", "found": {"id": 1, "fee": 90}},
                "text": True,
                "first": None,
                "models": 1,
                "any": None,
                "refused": "not_permitted",
            },
            None,
        ),
        (
            "tests.memory",
            {
                "words": ["a"],
                "page": [3, 4],
                "last": 4,
                "rest": [2, 3],
                "count": 2,
                "none": None,
                "keys": ["count", "list", "seen"],
                "gone": True,
                "all": [1, 2, 3],
            },
            None,
        ),
        ("tests.next-only", {}, {"id": "none", "found": {"id": 1, "fee": 90}}),
        ("prompts.voices", {}, None),
    ],
)
async def test_a_turn_does_what_its_hooks_say(
    make_app: MakeApp, assistant: str, metadata: Any, data: Any
) -> None:
    events, _ = await turn(make_app, assistant)
    assert [event.message for event in of(events, "error")] == []
    assert [event.message for event in of(events, "warning")] == []
    assert end(events).metadata == metadata
    assert end(events).data == data
    assert end(events).content.endswith("Fine.")


async def test_sources_are_searched_by_steps_that_hooks_do(make_app: MakeApp) -> None:
    """The query and the order of the pool come from assistants of `desk`, in their own dialects."""
    events, model = await turn(make_app, "desk.front", "How many permits are there?")
    assert [event.message for event in of(events, "error")] == []
    searched = {event.search_id: event.search_type for event in of(events, "search_start")}
    assert sorted(searched.values()) == ["db", "kb", "web"]
    assert [event.error for event in of(events, "search_complete")] == [None] * 3
    figures = [event.item for event in of(events, "search_result") if event.item.type == "db"]
    assert [item.data for item in figures] == [{"total": 1, "kind": "dog"}]
    # The order of the pool is that of `desk.order`, which turns it round.
    merged = [event.node for event in of(events, "trace") if event.node.type == "merge"][-1]
    assert [entry["title"] for entry in merged.data["entries"]][:2] == ["B", "A"]
    sent = of(events, "message")[0].message
    assert sent["props"]["content"] == "Hello, Front desk"
    assert end(events).data == {
        "route": "/front",
        "theme": "light",
        "locale": "de",
        "text": "Fine.",
    }
    assert "[1]" in model.calls[-1].messages[-1].text + model.calls[-1].messages[0].text


async def test_images_of_the_request_reach_a_model_that_sees(make_app: MakeApp) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    message = [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]}]
    events, model = await turn(make_app, "tests.images", message)
    assert not of(events, "error")
    last = model.calls[-1].messages[-1].content
    assert isinstance(last, list)
    assert [part["type"] for part in last] == ["text", "image_url", "text"]


async def test_prompts_are_those_of_the_preset_with_their_values(make_app: MakeApp) -> None:
    _, model = await turn(make_app, "prompts.voices")
    assert model.calls[-1].messages[0].text == "Calm. Few words. u1"


async def test_an_error_that_the_hook_catches_says_what_to_use_instead(make_app: MakeApp) -> None:
    events, _ = await turn(make_app, "tests.absent")
    told = end(events).metadata["told"]
    parts = ("vfs", "robot", "sandbox")
    assert len(told) == len(parts)
    for message, part in zip(told, parts, strict=True):
        assert f"; ctx.{part} is not offered by this host: " in message
    warned = [event.message.partition(" is not")[0] for event in of(events, "warning")]
    assert warned == [f"ctx.{part}" for part in (*parts, "computer", "workspace")]
    assert end(events).data == "undefined"


async def test_an_asynchronous_hook_goes_on_after_what_it_caught(make_app: MakeApp) -> None:
    events, _ = await turn(make_app, "tests.asynchronous")
    assert not of(events, "error")
    assert end(events).metadata == {"sum": 3}
    lines = [event.node.label for event in of(events, "trace") if event.node.type == "log"]
    assert any("ctx.workspace is not offered by this host" in line for line in lines)
