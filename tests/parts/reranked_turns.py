"""Turns whose sources are reranked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import anyio

from groundhook import open_host
from groundhook.core.types.events import Event
from groundhook.host.testing.canned import CannedSource, canned_item
from tests.conftest import MakeApp
from tests.parts.turns import of, scripted

FOUND = [
    canned_item(name, score=score)
    for name, score in (("a", 0.9), ("b", 0.8), ("c", 0.7), ("d", 0.6))
]


BACKWARDS = """function Next(ctx, payload) {
    const request = JSON.parse(payload.messages[0].content);
    return { data: { order: request.items.map((item) => item.citation_id).reverse() } };
}"""


async def turn(
    make_app: MakeApp,
    *,
    uses: str = "builtin",
    rerank: Mapping[str, Any] | None = None,
    files: Mapping[str, str] | None = None,
    hook: str = "",
    judge: str = BACKWARDS,
    plugins: Sequence[Any] = (),
    environment: Mapping[str, str] | None = None,
    **requested: Any,
) -> list[Event]:
    search = {"kb": True, "rerank": dict(rerank or {})}
    package = {
        "name": "A",
        "connector": "a",
        "kb": ["docs"],
        "search": search,
        "uses": {"rerank": uses},
    }
    written = {
        "agent/agent.yml": "hooks:\n  workers: 0\n",
        "kb/docs.kb.yao": "{}",
        "assistants/a/package.yao": json.dumps(package),
        "assistants/judge/package.yao": '{"name": "Judge", "connector": "judge"}',
        "assistants/judge/index.ts": judge,
        **({"assistants/a/index.ts": hook} if hook else {}),
        **(files or {}),
    }
    models = {"a": scripted("Fine."), "judge": scripted({"text": "no data", "times": 0})}
    found: Any = {"kb": CannedSource({"*": FOUND})}
    with anyio.fail_after(60):
        async with (
            open_host(
                make_app(written),
                environment=environment or {},
                sources=found,
                connectors=models,
                plugins=plugins,
            ) as host,
            host.stream("a", "question", **requested) as events,
        ):
            return [event async for event in events]


def order(events: Sequence[Event]) -> str:
    """The titles of the pool, best first."""
    (merge,) = [
        event.node
        for event in of(events, "trace")
        if event.node.type == "merge" and event.node.status == "completed"
    ]
    return "".join(entry["title"] for entry in merge.data["entries"])


def warnings(events: Sequence[Event]) -> list[str]:
    return [event.message for event in of(events, "warning")]
