"""One turn's state: what it runs under, what it has found, and what its hooks may ask of the
host."""

from __future__ import annotations

import itertools
import random
import secrets
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import anyio

from groundhook.host.citations.index import CitationIndex
from groundhook.host.config.packages import App, Package
from groundhook.host.core.channel import Channel
from groundhook.host.core.error_events import warning
from groundhook.host.core.errors import HostError, NotPermitted, UsageError
from groundhook.host.core.hook_engine import HookEngine
from groundhook.host.core.ports import (
    Clock,
    Connector,
    Documents,
    Records,
    Scope,
    ToolServers,
    Warn,
)
from groundhook.host.core.problems import Problem
from groundhook.host.core.settings import Settings
from groundhook.host.core.types.base import UnknownKey
from groundhook.host.core.types.events import Event, StreamEnd, StreamStart, Warned
from groundhook.host.core.types.query_language import OF_TABLE
from groundhook.host.core.types.search import (
    SearchResult,
    SearchType,
)
from groundhook.host.core.types.turn import (
    CreateReturn,
    Identity,
    Message,
    NextReturn,
    TurnOptions,
    connector_ids,
)
from groundhook.host.core.types.uses import JsonReply
from groundhook.host.memory.memory import Memory
from groundhook.host.search.searcher import Searcher, SearchPlugins
from groundhook.host.turn.answer import Answer
from groundhook.host.turn.content import question_of
from groundhook.host.turn.delegation import Asking, Delegates
from groundhook.host.turn.grants import Grants
from groundhook.host.turn.outbox import Outbox
from groundhook.host.turn.tools import Toolbox
from groundhook.host.web_client.clients import WebClients


@dataclass(frozen=True, kw_only=True)
class Fixed:
    """What is the same on every run: whether the clock stands still, and what stands in for chance
    (none: chance)."""

    clock: bool = False
    seed: int | None = None

    def token(self, size: int) -> str:
        """So many random bytes in hexadecimal; the same ones for the same seed."""
        return (
            secrets.token_hex(size)
            if self.seed is None
            else random.Random(self.seed).randbytes(size).hex()
        )


# warnings of steps done by assistants that one turn, or one search outside of turns, hands on
MOST_TOLD = 20
DEPTH = 5  # assistants in a row, each called by the one before or handed its turn

Heard = Callable[[Event], Awaitable[None]]
# The caller, what it asks, who hears the events, and where messages to the client go (none:
# nowhere) → how it ended, and why it failed. Raises HostError when the turn cannot begin.
Nested = Callable[["Caller", "Request", Heard, Outbox | None], Awaitable[tuple[StreamEnd, str]]]


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """What a host is made of, shared by all its turns. Only the composition root makes one."""

    app: App
    plugins: SearchPlugins
    documents: Documents
    records: Records
    markdown: Callable[[str], str]  # of HTML; blocks
    memory: Memory
    web_clients: WebClients
    connectors: Callable[[str], Connector]
    hooks: HookEngine
    toolbox: Toolbox
    servers: ToolServers
    now: Clock
    web_configured: Callable[[Settings], bool]
    fixed: Fixed = Fixed()


@dataclass(frozen=True, kw_only=True)
class Request:
    """One turn as it was asked for."""

    assistant_id: str
    messages: tuple[Message, ...]
    options: TurnOptions = TurnOptions()
    identity: Identity = Identity()
    reply: JsonReply | None = None  # what the answer must be, where it is a step for a program

    def of_another(self, assistant_id: str, messages: tuple[Message, ...], **said: Any) -> Request:
        """The same person, in the same place, asks another assistant; what this request said of its
        own model does not hold."""
        own = ("locale", "theme", "route", "referer", "accept", "chat_id", "client")
        options = TurnOptions(**{**{name: getattr(self.options, name) for name in own}, **said})
        return Request(
            assistant_id=assistant_id, messages=messages, options=options, identity=self.identity
        )


@dataclass(frozen=True, kw_only=True)
class Caller:
    """What a turn takes over from whatever it is begun by: another turn, or a search outside of
    any."""

    runtime: Runtime
    turn_id: str
    chain: tuple[str, ...] = ()  # the assistants that led here
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))  # of searches


def scope_of(
    caller: Caller, request: Request, settings: Settings, nested: Nested, warn: Warn
) -> Scope:
    """What the searches of a request may depend on. Steps that `uses.*` gives to an assistant are
    turns of it, under the same identity: over one message, without a search, with their steps in
    the trace of whoever asks."""

    told: set[str] = set()

    async def assistant(id: str, text: str, reply: JsonReply) -> tuple[StreamEnd, str]:
        async def heard(event: Event) -> None:
            """What is odd about a step is said once, however often it is taken."""
            said = (
                f"{id}: {event.message}" + (f" ({event.hint})" if event.hint else "")
                if isinstance(event, Warned)
                else ""
            )
            if isinstance(event, Warned) and said not in told and len(told) <= MOST_TOLD:
                told.add(said)
                more = len(told) > MOST_TOLD
                await warn(
                    event.code, f"{id} has more warnings, which are left out" if more else said
                )

        asked = request.of_another(id, (Message(role="user", content=text),), search=False)
        return await nested(caller, replace(asked, reply=reply), heard, None)

    grants = Grants(caller.runtime.app, request.assistant_id)
    asking = Asking(
        assistant=assistant,
        server=grants.server,
        permit=grants.permit,
        servers=caller.runtime.servers,
    )
    return Scope(
        identity=request.identity,
        assistant_id=request.assistant_id,
        settings=settings.search,
        uses=settings.uses,
        now=caller.runtime.now,
        warn=warn,
        delegates=Delegates(asking),
    )


@dataclass
class Run:
    """The state of one turn. Steps write into it in order; what they hand out does not change
    afterwards."""

    runtime: Runtime
    request: Request
    package: Package
    channel: Channel
    settings: Settings
    searcher: Searcher
    answer: Answer
    question: str
    unknown: tuple[UnknownKey, ...]
    outbox: Outbox
    nested: Nested
    here: Caller  # what a turn within this one takes over
    returned: NextReturn | None = None
    failure: str = ""  # of the model, once the client has it
    results: list[SearchResult] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    timings: dict[str, float] = field(default_factory=dict)
    tools: tuple[tuple[Any, ...], Toolbox] | None = (
        None  # for which list of servers, and what they offer
    )
    asking: anyio.Lock = field(default_factory=anyio.Lock)

    @staticmethod
    def begin(
        runtime: Runtime,
        request: Request,
        channel: Channel,
        nested: Nested,
        *,
        caller: Caller | None = None,
        outbox: Outbox | None = None,
    ) -> Run:
        """Resolve the layers that are known before the hook. `caller` is whoever calls this run or
        hands its turn to it. Raises UnknownName and ConfigError; UsageError for a circle of
        assistants."""
        chain = _lengthened(caller.chain if caller else (), request.assistant_id)
        ids = caller.ids if caller else itertools.count(1)
        package = runtime.app.package(request.assistant_id)
        resolved = runtime.app.settings_for(package, options=request.options)
        settings = resolved.settings
        citation_index = CitationIndex(settings.search.citation.format)

        async def warn(code: str, message: str) -> None:
            await channel.send(Warned(code=code, message=message))

        here = Caller(runtime=runtime, turn_id=channel.turn_id, chain=chain, ids=ids)
        searcher = Searcher(
            plugins=runtime.plugins,
            settings=settings,
            scope=scope_of(here, request, settings, nested, warn),
            names=Names(runtime.app, package.id, settings),
            citation_index=citation_index,
            channel=channel,
            ids=ids,
        )
        return Run(
            runtime=runtime,
            request=request,
            package=package,
            channel=channel,
            settings=settings,
            searcher=searcher,
            answer=Answer(channel, citation_index),
            question=question_of(request.messages),
            unknown=resolved.unknown,
            outbox=outbox or Outbox(channel),
            nested=nested,
            here=here,
        )

    def adopt(self, created: CreateReturn) -> None:
        """Fold what Create returned between the assistant's layer and the request's. Raises
        ConfigError, HookReturnInvalid."""
        app, options = self.runtime.app, self.request.options
        resolved = app.settings_for(self.package, returned=created, options=options)
        self.settings, self.unknown = resolved.settings, resolved.unknown
        scope = replace(self.searcher.scope, settings=self.settings.search, uses=self.settings.uses)
        self.searcher = replace(self.searcher, settings=self.settings, scope=scope)
        self.metadata.update(created.metadata or {})
        self.question = question_of(created.messages or ()) or self.question
        citation_index = self.searcher.citation_index
        if self.settings.search.citation.format != citation_index.format:
            citation_index.reformat(self.settings.search.citation.format)
            self.results = [
                result.model_copy(
                    update={"items": tuple(citation_index.cite(item) for item in result.items)}
                )
                for result in self.results
            ]

    def started(self) -> StreamStart:
        first = self.connectors[0]
        return StreamStart(
            assistant_id=self.package.id, chat_id=self.request.options.chat_id, connector=first
        )

    @property
    def connectors(self) -> tuple[str, ...]:
        """The language models that may answer, in the order in which they are asked."""
        return connector_ids(self.settings.connector)

    @property
    def usable(self) -> frozenset[SearchType]:
        """The search types that could be searched if that was forced."""
        usable: set[SearchType] = {"web"} if self.runtime.web_configured(self.settings) else set()
        usable |= (
            {"kb"} if self.settings.kb.collections or self.settings.search.kb.collections else set()
        )
        usable |= {"db"} if self.settings.db.models or self.settings.search.db.models else set()
        return frozenset(usable)

    async def warn(self, finding: HostError | Problem) -> None:
        """Tell the client of something that the turn goes on in spite of."""
        await self.channel.send(warning(finding))


@dataclass(frozen=True)
class Names:
    """`host.search.searcher.Names` for one assistant: its own, those of the app, and those of other
    assistants that its settings list. Nobody reaches another assistant's data by knowing its name:
    neither a hook nor whoever sends a message. An empty id stands for the app's owner, who may name
    all."""

    app: App
    assistant_id: str
    settings: Settings

    def collection(self, name: str, /) -> str:
        id = self.app.resolve_collection(self.assistant_id, name).id
        listed = (*self.settings.kb.collections, *self.settings.search.kb.collections)
        return self._permitted("collection", id, listed, "kb.collections")

    def model(self, name: str, /) -> str:
        if name.startswith(OF_TABLE):
            id = self.app.resolve_table(self.assistant_id, name.removeprefix(OF_TABLE)).id
        else:
            id = self.app.resolve_model(self.assistant_id, name).id
        return self._permitted(
            "model", id, (*self.settings.db.models, *self.settings.search.db.models), "db.models"
        )

    def _permitted(self, noun: str, id: str, listed: tuple[str, ...], key: str) -> str:
        own = not id.startswith("agents.") or id.startswith(f"agents.{self.assistant_id}.")
        if own or not self.assistant_id or id in listed:
            return id
        raise NotPermitted(
            f"the {noun} {id!r} belongs to another assistant",
            hint=f"list it in {key} of package.yao to use it",
        )


def _lengthened(chain: tuple[str, ...], id: str) -> tuple[str, ...]:
    """The chain of assistants with one more. Raises UsageError for one that is in it, and for one
    too many."""
    longer = (*chain, id)
    shown = " → ".join(longer)
    if id in chain:
        raise UsageError(f"assistants call each other, or hand the turn on, in a circle: {shown}")
    if len(longer) > DEPTH:
        raise UsageError(
            f"assistants call each other, or hand the turn on, more than {DEPTH} deep: {shown}"
        )
    return longer
