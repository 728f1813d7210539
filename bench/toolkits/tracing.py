"""What the export of traces costs a turn: to an endpoint that is not there, and to none.

The turn calls a tool, so that its trace has more than one node. The two hosts take turns.
"""

from __future__ import annotations

import json
import logging
import socket
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from bench.figures import figure
from groundhook import Host, open_host
from groundhook.plugins import Delta, Finished, ModelCall, TextDelta, ToolDelta

WARMING = 20
SUMMARIES = '{"id": 7, "title": "Offer for the lift", "content": "The drive of the lift."}'


async def measure(_: Path | None) -> None:
    """Print the figures of the export of traces."""
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # it reports the endpoint
    for about, model_s, rounds in (("at once", 0.0, 400), ("after 50 ms", 0.05, 60)):
        took: dict[str, list[float]] = {"export": [], "none": []}
        async with _opened(_Model(model_s)) as hosts:
            for number in range(WARMING + rounds):
                for name in sorted(hosts, reverse=number % 2 == 0):
                    began = time.perf_counter()
                    await _turn(hosts[name])
                    if number >= WARMING:
                        took[name].append((time.perf_counter() - began) * 1000)
        export, none = (statistics.median(each) for each in took.values())
        what = f"turn whose trace goes to a dead endpoint, model that answers {about}, p50"
        figure(what, export, "ms", none, "to none")


@asynccontextmanager
async def _opened(model: _Model) -> AsyncIterator[Mapping[str, Host]]:
    """Open an app that exports its traces, and the same without."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # nobody listens: connections are refused
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        agents = {"export": {"trace": {"export": {"type": "otlp", "url": url}}}, "none": {}}
        async with AsyncExitStack() as stack:
            yield {
                name: await stack.enter_async_context(
                    open_host(
                        _app(Path(folder) / name, agent),
                        environment={},
                        connectors={"model": model},
                    )
                )
                for name, agent in agents.items()
            }


async def _turn(host: Host) -> None:
    async with host.stream("a", "?", identity={"user_id": "m", "tenant_id": "p"}) as events:
        types = [event.type async for event in events]
    assert "tool_result" in types
    assert "error" not in types


@dataclass(frozen=True)
class _Model:
    """A model that calls a tool once and then answers, each after `wait_s` seconds."""

    wait_s: float

    @asynccontextmanager
    async def stream(self, call: ModelCall, /) -> AsyncIterator[AsyncIterator[Delta]]:
        yield self._deltas(done=any(message.role == "tool" for message in call.messages))

    async def _deltas(self, *, done: bool) -> AsyncIterator[Delta]:
        await anyio.sleep(self.wait_s)
        if done:
            yield TextDelta("Fine.")
            yield Finished("stop")
        else:
            query = json.dumps({"query": "lift"})
            yield ToolDelta(index=0, id="c", name="search_documents", arguments=query)
            yield Finished("tool_calls")


def _app(root: Path, agent: Mapping[str, Any]) -> Path:
    files = {
        "agent/agent.yml": json.dumps(agent),
        "assistants/a/package.yao": json.dumps({"connector": "model", "tools": ["documents"]}),
        "assistants/a/summaries.jsonl": SUMMARIES,
        "assistants/a/toolkits/documents.toolkit.yao": json.dumps(
            {"type": "documents", "source": {"file": "summaries.jsonl"}}
        ),
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root
