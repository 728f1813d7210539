"""Apps whose source asks somebody else for a step, through the public door."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from groundhook import open_host
from groundhook.core.errors import DelegateError
from groundhook.core.ports import Scope, SourceResult, accept_any
from groundhook.core.types.delegation import (
    KeywordAnswer,
    KeywordAsk,
)
from groundhook.core.types.events import Event, Trace, TraceNode, Warned
from groundhook.core.types.search import SearchRequest
from groundhook.core.types.uses import KEYWORD
from groundhook.host.config.environment import process_environment
from groundhook.host.llm.scripted import ScriptedConnector
from groundhook.host.testing.canned import CannedSource
from tests.conftest import MakeApp
from tests.mcp.conftest import HttpServer, serving
from tests.parts.turns import scripted

SERVER = str(Path(__file__).with_name("server.py"))
PROGRAM = {"command": sys.executable, "args": [SERVER]}
QUESTION = "cheap red pens"


@dataclass
class AskingSource:
    """A source that has its keywords made by somebody else, and finds nothing. Remembers what it
    was answered."""

    timeout_ms: int = 20_000
    tries: int = 2
    wrong: Callable[[KeywordAnswer], str] = accept_any
    answers: list[KeywordAnswer] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    async def search(self, request: SearchRequest, scope: Scope, /) -> SourceResult:
        requested = KeywordAsk(query=request.query, max_keywords=2)
        how: dict[str, Any] = {"timeout_ms": self.timeout_ms, "hint": "search.keyword.timeout_ms"}
        try:
            answer = await scope.delegates.ask(
                KEYWORD, scope.uses.keyword, requested, **how, wrong=self.wrong, tries=self.tries
            )
        except DelegateError as exc:
            self.errors.append(str(exc))
            await scope.warn(exc.code, str(exc))
        else:
            self.answers.append(answer)
        return SourceResult()

    @property
    def keywords(self) -> list[tuple[str, float]]:
        return [(each.k, each.w) for each in self.answers[0].keywords]


@dataclass
class Turned:
    """What a turn came to: its events, the source, and the models by the id of their connector."""

    events: list[Event]
    source: AskingSource
    models: Mapping[str, ScriptedConnector]

    @property
    def nodes(self) -> dict[str, TraceNode]:
        return {event.node.id: event.node for event in self.events if isinstance(event, Trace)}

    def node(self, type: str) -> TraceNode:
        (found,) = [node for node in self.nodes.values() if node.type == type]
        return found

    @property
    def warnings(self) -> list[str]:
        return [
            f"{event.message} ({event.hint})" if event.hint else event.message
            for event in self.events
            if isinstance(event, Warned)
        ]


Turn = Callable[..., Any]


@pytest.fixture(scope="package")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """One server for the turns of these modules, since starting one takes a second."""
    with serving(tmp_path_factory.mktemp("steps") / "diary", script=SERVER) as made:
        yield made


def requested(model: ScriptedConnector, call: int = 0) -> dict[str, Any]:
    """Return the request to a delegated assistant's model: its one user message, as JSON."""
    (message,) = model.calls[call].messages
    assert message.role == "user"
    wanted: dict[str, Any] = json.loads(message.text)
    return wanted


@pytest.fixture
def turn(make_app: MakeApp, steps: HttpServer) -> Turn:
    """A turn of the assistant `a`, whose source asks `doer` for keywords. `kw` is another
    assistant, with the model `kw`."""

    async def take(
        doer: str,
        *,
        model: Sequence[Any] = ("{}",),
        hook: str = "",
        source: AskingSource | None = None,
        files: Mapping[str, str] | None = None,
        package: Mapping[str, Any] | None = None,
        **asking: Any,
    ) -> Turned:
        made = source or AskingSource()
        own = {
            "name": "A",
            "connector": "a",
            "search": {"web": {"timeout_ms": 30_000}},
            "uses": {"keyword": doer},
            **(package or {}),
        }
        written = {
            "agent/agent.yml": "hooks:\n  workers: 0\n",
            "assistants/a/package.yao": json.dumps(own),
            "assistants/kw/package.yao": (
                '{"name": "Keywords", "connector": "kw", "search": {"kb": true}}'
            ),
            "mcps/steps.mcp.yao": json.dumps(steps.spec),
            **({"assistants/kw/index.ts": hook} if hook else {}),
            **(files or {}),
        }
        models = {"a": scripted("Fine."), "kw": scripted(*model)}
        sources: Any = {"web": made, "kb": CannedSource({})}
        environment = {"PATH": process_environment()["PATH"]}
        with anyio.fail_after(60):
            async with (
                open_host(
                    make_app(written), environment=environment, sources=sources, connectors=models
                ) as host,
                host.stream("a", QUESTION, **asking) as events,
            ):
                return Turned([event async for event in events], made, models)

    return take
