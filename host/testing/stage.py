"""Runs the turns of a file of tests through the public interface, on recorded or scripted answers.

Owns the options of `turn(message, options)` and the value that it returns. Each turn runs on a host
of its own: the same runtime, with recordings in place of sources and models.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from pydantic import Field, ValidationError

from groundhook.core.errors import ConfigError, Place, SourceError, UsageError
from groundhook.core.hook_tests import UNCAUGHT
from groundhook.core.ports import (
    Connector,
    Delta,
    Finished,
    Handler,
    ModelCall,
    Reranker,
    Scope,
    SourceResult,
)
from groundhook.core.registry import Registry
from groundhook.core.types.base import dotted, validate_known, validation_problems
from groundhook.core.types.connector_spec import (
    ConnectorOptions,
    ConnectorSpec,
)
from groundhook.core.types.events import Event, Failed, Warned
from groundhook.core.types.search import SEARCH_TYPES, Item, SearchRequest, SearchType
from groundhook.core.types.turn import Identity, TurnOptions, Usage
from groundhook.host.app.host import Host
from groundhook.host.chats.memory.memory import Memory
from groundhook.host.config.trial import Trial
from groundhook.host.llm.scripted import ScriptedConnector
from groundhook.host.output.single_lines import problem_line
from groundhook.host.search.searcher import SearchPlugins
from groundhook.host.testing.answer import TurnRequests, answer_of
from groundhook.host.testing.canned import ANY, CannedSource
from groundhook.host.testing.cassette import Cassette, NotRecorded
from groundhook.host.testing.outside import TapedRecords, TapedServers, TapedWeb, declared_tools
from groundhook.host.testing.tape import Tape
from groundhook.host.testing.taped_models import TapedModel
from groundhook.host.testing.taped_rerankers import OwnReranker, TapedReranker
from groundhook.host.testing.taped_sources import TapedDocuments, TapedSource
from groundhook.host.turn.context import Randomness, Runtime

_OUTCOMES = {"warning": "the turn warned", "error": "the turn failed"}
COMPUTED = frozenset({"score"})  # rerankers that use no service, so that nothing is recorded
OWN = "agent"  # the reranker that is an assistant of the app


class TurnArguments(TurnOptions):
    """Options of `turn` in a test: those of a request, the identity, and the answers of sources and
    models."""

    assistant: str = Field(default="", description="Another assistant than that of the tests")
    identity: Identity = Identity()
    now: datetime | None = Field(
        default=None, description="The current time, instead of the cassette's"
    )
    trial: dict[str, Any] | None = Field(
        default=None, description="Settings and prompts of this turn, as in package.yao"
    )
    model: tuple[Any, ...] | None = Field(
        default=None,
        description="Answers of the model, in order, as in options.script of a scripted connector",
    )
    searches: dict[SearchType, Any] = Field(
        default={},
        description=(
            "What a source finds: items, {query: items} with `*` for any other, or the text of an"
            " error"
        ),
    )


@dataclass
class Stage:
    """`core.hook_tests.SuiteServices` for one test; its `memory` is empty when it begins."""

    host: Host
    assistant: str
    cassette: Cassette
    memory: Memory
    console: list[str] = field(default_factory=list)
    uncaught: list[tuple[str, Place | None]] = field(default_factory=list)

    async def turn(self, message: Any, options: Any, /) -> Mapping[str, Any]:
        """Run a turn and return its answer. Raises UsageError for wrong options, ConfigError, and
        NotRecorded if an answer is not recorded."""
        wanted = _parse_options(options)
        if not isinstance(message, (str, list)):
            raise UsageError("turn: the message must be text or a list of messages {role, content}")
        requests = TurnRequests()
        return answer_of(await self.run(message, wanted, requests), requests)

    async def run(
        self,
        message: str | Sequence[Any],
        wanted: TurnArguments,
        requests: TurnRequests,
        *,
        trial: Trial | None = None,
    ) -> list[Event]:
        """Run a turn and return its events; `requests` receives what it asks of sources and
        models, `console` its warnings and errors. `trial` outranks that of the options. Raises
        UsageError, ConfigError, and NotRecorded if an answer is not recorded."""
        known = len(self.cassette.problems)
        host = replace(self.host, runtime=self._make_runtime(wanted, requests))
        request = wanted.model_dump(exclude_unset=True, include=set(TurnOptions.model_fields))
        entered = host.stream(
            wanted.assistant or self.assistant,
            message,
            identity=wanted.identity,
            options=request,
            trial=trial or wanted.trial,
        )
        async with entered as stream:
            events = [event async for event in stream]
        self.console += [
            problem_line(_OUTCOMES[event.type], event, "").plain
            for event in events
            if isinstance(event, (Warned, Failed))
        ]
        missing = [problem.message for problem in self.cassette.problems[known:]]
        if missing:
            raise NotRecorded("\n".join(missing))
        return events

    async def log(self, level: str, message: str, /) -> None:
        self.console.append(message if level == "info" else f"{level}: {message}")

    async def warn(self, code: str, message: str, place: Place | None = None, /) -> None:
        """Record an uncaught error, which fails the test; write other warnings to the console."""
        if code == UNCAUGHT:
            self.uncaught.append((message, place))
        else:
            self.console.append(f"warning: {f'{place}: ' if place else ''}{message}")

    def _make_runtime(self, wanted: TurnArguments, requests: TurnRequests) -> Runtime:
        """Return the host's runtime with recordings in place of sources and models, and with the
        answers that the options of this turn give."""
        real, cassette = self.host.runtime, self.cassette
        now = wanted.now.astimezone() if wanted.now is not None else cassette.now
        tape = Tape(cassette, now.isoformat() if wanted.now is not None else "")
        handlers = Registry[Handler]("search type")
        for type in SEARCH_TYPES:
            taped = TapedSource(tape, type, real.plugins.handlers.get(type))
            handlers.add(
                type,
                WatchedSource(
                    _make_source(type, wanted.searches[type]) if type in wanted.searches else taped,
                    requests,
                ),
            )
        rerankers = Registry[Reranker]("reranker")
        for name in real.plugins.rerankers:
            reranker = real.plugins.rerankers.get(name)
            taped_reranker = TapedReranker(tape, name, reranker)
            if name == OWN:
                rerankers.add(name, OwnReranker(taped_reranker))
            else:
                rerankers.add(name, reranker if name in COMPUTED else taped_reranker)
        scripted = None if wanted.model is None else _make_connector(wanted.model)

        def connector(id: str) -> Connector:
            if id not in real.app.connectors or tape.is_inside:
                return real.connectors(id)  # raises UnknownName with the known ids
            taped = TapedModel(tape, id, lambda: real.connectors(id))
            if scripted is not None:
                return WatchedModel(id, ScriptedTurn(scripted, taped), requests)
            # The built-in connector uses no service, so that nothing is recorded.
            computed = id not in real.app.connectors.files
            return WatchedModel(id, real.connectors(id) if computed else taped, requests)

        def web_configured(settings: Any) -> bool:
            if "web" in wanted.searches or not cassette.recording:
                return "web" in wanted.searches or cassette.web
            cassette.web = real.web_configured(settings)
            return cassette.web

        return replace(
            real,
            plugins=SearchPlugins(handlers=handlers, rerankers=rerankers),
            documents=TapedDocuments(tape, real.documents),
            records=TapedRecords(tape, real.records),
            web_clients=TapedWeb(tape, real.web_clients),
            servers=TapedServers(tape, real.servers, self._declared_tools),
            memory=replace(self.memory, now=lambda: now),
            connectors=connector,
            now=lambda: now,
            web_configured=web_configured,
            clock_is_fixed=True,
            randomness=Randomness(seed=cassette.seed),
        )

    def _declared_tools(self, server: str) -> list[dict[str, Any]] | None:
        tools = declared_tools(self.host.runtime.app, server)
        if tools is not None:
            names = ", ".join(tool["name"] for tool in tools) or "none"
            note = f"nothing of MCP server {server!r} is recorded: its tools are {names}"
            if note not in self.console:
                self.console.append(note)
        return tools


@dataclass(frozen=True)
class WatchedSource:
    """A `Handler` whose requests are kept for the answer of the test."""

    of: Handler
    requests: TurnRequests

    async def search(self, request: SearchRequest, scope: Scope, /) -> SourceResult:
        self.requests.searches.append(request)
        return await self.of.search(request, scope)


@dataclass(frozen=True)
class ScriptedTurn:
    """A `Connector` with the answers that a test gives for its turn. An assistant that does a step
    of the turn gets its recorded answer. Without a recording its model answers with an empty text:
    a hook that needs no model works, and any other step fails with a warning."""

    script: ScriptedConnector
    taped: TapedModel

    def stream(self, call: ModelCall, /) -> AbstractAsyncContextManager[AsyncIterator[Delta]]:
        if not call.is_step:
            return self.script.stream(call)
        return self.taped.stream(call) if self.taped.is_recorded(call) else _empty_answer()


@asynccontextmanager
async def _empty_answer() -> AsyncGenerator[AsyncIterator[Delta]]:
    async def deltas() -> AsyncGenerator[Delta]:
        yield Finished("stop", "", Usage())

    async with aclosing(deltas()) as empty:
        yield empty


@dataclass(frozen=True)
class WatchedModel:
    """A `Connector` whose calls are kept for the answer of the test."""

    id: str
    of: Connector
    requests: TurnRequests

    def stream(self, call: ModelCall, /) -> AbstractAsyncContextManager[AsyncIterator[Delta]]:
        self.requests.models.append((self.id, call))
        return self.of.stream(call)


def _parse_options(options: Any) -> TurnArguments:
    if options is not None and not isinstance(options, Mapping):
        raise UsageError("turn: options must be an object")
    try:
        wanted, unknown = validate_known(TurnArguments, options or {})
    except ValidationError as exc:
        path, message = validation_problems(exc)[0]
        raise UsageError(f"turn: option {dotted(path)}: {message}") from exc
    for key in unknown:
        raise UsageError(f"turn: {key}")
    return wanted


def _make_connector(script: Sequence[Any]) -> ScriptedConnector:
    try:
        return ScriptedConnector(
            ConnectorSpec(
                id="model", type="scripted", options=ConnectorOptions(script=tuple(script))
            )
        )
    except ConfigError as exc:
        raise UsageError(f"turn: {exc.message}", hint=exc.hint) from exc


def _make_source(type: SearchType, results: Any) -> CannedSource:
    """Return a source with the results of a test."""
    by_query = results if isinstance(results, Mapping) else {ANY: results}
    return CannedSource({query: _page(type, query, page) for query, page in by_query.items()})


def _page(type: SearchType, query: str, page: Any) -> list[Item] | SourceError:
    if isinstance(page, str):
        return SourceError(page)
    if not isinstance(page, list):
        raise UsageError(
            f"turn: searches.{type}[{query!r}] must be a list of items or the text of an error"
        )
    return [_make_item(type, index, entry) for index, entry in enumerate(page)]


def _make_item(type: SearchType, index: int, entry: Any) -> Item:
    """Return an item of a test: from a title, or from the fields of an item. Its key is derived
    from its address, or from its other identifying fields."""
    raw = {"title": entry} if isinstance(entry, str) else entry
    where = f"turn: searches.{type}: item {index}"
    if not isinstance(raw, Mapping):
        raise UsageError(f"{where} must be a title or an object")
    try:
        item, unknown = validate_known(
            Item, {"score": 0.5, "content": raw.get("title", ""), **raw, "type": type}
        )
    except ValidationError as exc:
        path, message = validation_problems(exc)[0]
        raise UsageError(f"{where}: {dotted(path)}: {message}") from exc
    for key in unknown:
        raise UsageError(f"{where}: {key}")
    named = (
        [item.url]
        if item.url
        else [item.collection, item.document_id, item.model, str(item.record_id or ""), item.title]
    )
    return item.model_copy(update={"key": item.key or "/".join(["test", *filter(None, named)])})
