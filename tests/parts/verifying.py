"""Turns whose answers a model verifies, with a verifier that tests can make."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio

from groundhook import open_host
from groundhook.core.ports import Delta, Finished, ModelCall, TextDelta
from groundhook.core.types.events import Event, Trace, VerifiedSentence
from groundhook.core.types.search import Item
from groundhook.core.types.turn import Usage
from groundhook.host.testing.canned import CannedSource, canned_item
from tests.conftest import MakeApp
from tests.parts.turns import app_with, end, scripted

POLICY = "Passwords are changed after a leak. Ask the desk for a new one."
TEA = "Assam steeps for four minutes."
ANSWER = (
    "Passwords change after a leak {ref:0}. They have twelve signs {ref:0}. Tea is calm {ref:1}."
)
SUPPORTED = "Passwords are changed after a leak."

Judge = Callable[[dict[str, Any]], Any]


def verdicts(request: Mapping[str, Any], *judged: tuple[bool, str]) -> dict[str, Any]:
    """Return verdicts on the sentences of a request, in their order."""
    pairs = zip(request["sentences"], judged, strict=False)
    return {
        "verdicts": [
            {"id": each["id"], "supported": yes, "quote": quote} for each, (yes, quote) in pairs
        ]
    }


def reads(request: dict[str, Any]) -> dict[str, Any]:
    """Judge as a careful reader of these sources would."""
    said = [
        (True, SUPPORTED) if "leak" in each["text"] else (False, "")
        for each in request["sentences"]
    ]
    return verdicts(request, *said)


@dataclass
class Verifier:
    """A language model that answers each request with what `judge` makes of it: JSON, a text, or
    an exception."""

    judge: Judge = reads
    requests: list[dict[str, Any]] = field(default_factory=list)
    systems: list[str] = field(default_factory=list)
    done: anyio.Event = field(default_factory=anyio.Event)

    @asynccontextmanager
    async def stream(self, call: ModelCall, /) -> AsyncIterator[AsyncIterator[Delta]]:
        system, user = call.messages
        self.systems.append(system.text)
        self.requests.append(json.loads(user.text))
        answer = self.judge(self.requests[-1])
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            await anyio.sleep_forever()

        async def deltas() -> AsyncIterator[Delta]:
            yield TextDelta(answer if isinstance(answer, str) else json.dumps(answer))
            yield Finished("stop", model="judge", usage=Usage())

        yield deltas()


def sources() -> tuple[Item, ...]:
    return (
        canned_item("policy", score=0.9, content=POLICY, title="Passwords"),
        canned_item("tea", score=0.8, content=TEA, title="Tea"),
    )


def package(by: str, **settings: Any) -> str:
    return json.dumps(
        {
            "name": "A",
            "connector": "script",
            "search": {"kb": True, "verify": {"timeout_ms": 60_000, **settings}},
            "kb": {"collections": ["docs"]},
            "uses": {"verify": by},
        }
    )


async def verified(
    make_app: MakeApp,
    verifier: Verifier,
    answer: Any = ANSWER,
    by: str = "connector:judge",
    items: tuple[Item, ...] | None = None,
    files: Mapping[str, str] | None = None,
    **settings: Any,
) -> list[Event]:
    app = app_with(make_app, package(by, **settings), **(files or {}))
    kb = CannedSource({"*": items or sources()})
    models: Any = {"script": scripted(answer), "judge": verifier}
    with anyio.fail_after(60):
        async with (
            open_host(app, environment={}, sources={"kb": kb}, connectors=models) as host,
            host.stream("a", "How do I change it?") as events,
        ):
            return [event async for event in events]


def step(events: list[Event]) -> dict[str, Any]:
    nodes = [event.node for event in events if isinstance(event, Trace)]
    [done] = [node for node in nodes if node.type == "verify" and node.status != "running"]
    return done.data


def judged(events: list[Event]) -> dict[str, list[VerifiedSentence]]:
    return {each.title: list(each.verified) for each in end(events).citations}
