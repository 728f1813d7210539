"""The parts that the handlers of a server share, and one request to an endpoint."""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeVar

import anyio
from starlette.requests import Request
from starlette.types import ASGIApp

from groundhook.core.errors import HostError, UnknownName, UsageError
from groundhook.core.exception_groups import unwrap_exception_groups
from groundhook.core.ports import ModelCall, TextDelta
from groundhook.core.readers.pool import ReaderPool
from groundhook.core.server_settings import ServerScope, ServerSettings
from groundhook.core.types.base import Value
from groundhook.core.types.turn import Message
from groundhook.host.app.host import Host
from groundhook.host.config.package import Package
from groundhook.host.llm.deltas import answering
from groundhook.host.output.dialects.audience import Audience
from groundhook.host.server import request_body
from groundhook.host.server.identity.caller import Caller, SignIn
from groundhook.host.server.identity.client_addresses import is_loopback, network
from groundhook.host.server.identity.keys import Keyring
from groundhook.host.server.identity.sessions import Sessions
from groundhook.host.server.limits import CallerLimits
from groundhook.host.server.mcp.http import McpEndpoint
from groundhook.host.server.metrics import Metrics
from groundhook.host.server.problems import Refused, Shape
from groundhook.host.server.request_body import AskOptions
from groundhook.host.server.turns.idempotency import Repeats
from groundhook.host.server.turns.kept_turns import kept_turn
from groundhook.host.server.turns.running import (
    LogReader,
    ServerTurn,
    StartTurn,
    TurnLog,
    TurnParameters,
)
from groundhook.host.server.turns.turns import ServerTurns
from groundhook.host.server.upkeep import StoreHealth
from groundhook.host.server.whole_tables import WholeTables

T = TypeVar("T")


@dataclass(kw_only=True, eq=False)
class Serving:
    """The parts of one server process."""

    host: Host
    settings: ServerSettings
    turns: ServerTurns
    sign_in: SignIn
    keys: Keyring
    sessions: Sessions
    limits: CallerLimits
    metrics: Metrics
    readers: ReaderPool  # of what browsers are shown
    tables: WholeTables
    endpoints: Sequence[Endpoint] = ()
    mcp: McpEndpoint | None = None
    shared: bool = False  # whether other processes serve the same app
    prints_key: bool = False  # whether `groundhook serve` prints a key that is accepted
    draining: bool = False
    warm: bool = False
    repeats: Repeats = field(default_factory=Repeats)
    store: StoreHealth = field(init=False)

    def __post_init__(self) -> None:
        self.store = StoreHealth(self.host, self.settings.limits.message_kb * 1024)

    def has(self, part: ServerPart) -> bool:
        """Return whether a part of the server is switched on."""
        return not part or bool(getattr(self.settings, part).enabled)

    def offered_endpoints(self) -> list[Endpoint]:
        """Return the endpoints without those of parts that are switched off."""
        return [endpoint for endpoint in self.endpoints if self.has(endpoint.part)]

    @property
    def stores_turns(self) -> bool:
        """Whether turns without a chat are stored too: any process can serve them then."""
        return self.shared and self.has("chats")

    def offered(self, caller: Caller) -> list[str]:
        """Return the ids of the assistants that the caller may use."""
        return [id for id in self.host.assistants() if self._may(caller, id)]

    def package(self, caller: Caller, id: str) -> Package:
        """Return an assistant that the caller may use. Raises UnknownName, ConfigError."""
        if id not in self.host.app.packages or not self._may(caller, id):
            raise UnknownName("assistant", id[:80], ())
        return self.host.app.package(id)

    def assistant_for(self, caller: Caller, id: str) -> str:
        """Return the assistant that a request of the caller names, or else the app's default.
        Raises UsageError if there is none for this caller."""
        found = id or self.host.app.default_assistant
        if not id and found not in self.offered(caller):
            raise UsageError("no assistant is named, and there is no default")
        return found

    def check_options(self, caller: Caller, assistant: str, wanted: AskOptions) -> None:
        """Raise UsageError for more sources than the assistant's settings allow: each adds to the
        price of the prompt. Raises UnknownName, ConfigError."""
        top_k = wanted.rerank.top_k if wanted.rerank else None
        if top_k is None:
            return
        self.package(caller, assistant)
        most = self.host.settings(assistant).search.rerank.top_k
        if top_k > most:
            raise UsageError(f"options.rerank.top_k: at most {most} are accepted here")

    def _may(self, caller: Caller, id: str) -> bool:
        offered = self.settings.assistants
        if offered is not None and id not in offered:
            return False
        if caller.assistants is not None and id not in caller.assistants:
            return False
        try:
            info = self.host.app.package(id).info
        except HostError:  # an invalid package is listed, so that a request to it reports the error
            return not caller.anonymous
        if caller.anonymous and not info.get("public"):
            return False
        return offered is not None or not info.get("automated")

    async def begin(self, caller: Caller, ask: TurnParameters, enter: StartTurn) -> ServerTurn:
        """Begin a turn of the caller within the limits. Raises Refused, and the errors of
        `Host.stream`."""
        self.package(caller, ask.assistant_id)
        async with self.admitted(caller) as reservation:
            return await self.turns.begin(ask, enter, reservation)

    @asynccontextmanager
    async def admitted(self, caller: Caller) -> AsyncIterator[ExitStack]:
        """Reserve a turn for the caller, within the limits. The reservation ends with the block,
        unless the turn takes it over (`ExitStack.pop_all`). Raises Refused."""
        if self.draining:
            raise Refused("draining", "the server is about to stop", headers={"retry-after": "5"})
        self.limits.admit_turn(self.turns.count_for(caller.owner), self.turns.under_way)
        with ExitStack() as reservation:
            # Before the first await, so that no other request takes the last turn.
            reservation.enter_context(self.turns.reserve(caller.owner))
            await self.limits.count("turns", caller.owner)
            yield reservation

    async def complete(self, caller: Caller, connector: str, messages: Sequence[Message]) -> str:
        """Return the answer of a language model, without an assistant, within the limits of turns.
        Raises HostError."""
        call = ModelCall(messages=messages, question=messages[-1].text)
        parts: list[str] = []
        async with (
            self.admitted(caller),
            answering(self.host.runtime.connectors(connector), call) as deltas,
        ):
            async for delta in deltas:
                if isinstance(delta, TextDelta):
                    parts.append(delta.text)
        return "".join(parts)


@dataclass(kw_only=True)
class Call:
    """One request to an endpoint."""

    serving: Serving
    request: Request
    caller: Caller
    request_id: str
    address: str

    @property
    def _counted(self) -> tuple[str, str]:
        """The person and the address whose open streams are counted."""
        own = not self.caller.spoken_for and not is_loopback(self.address)
        return self.caller.owner, network(self.address) if own else ""

    def admit_stream(self) -> None:
        """Raise Refused when there are too many open streams for one more of this caller."""
        self.serving.limits.admit_stream(*self._counted)

    def stream(self) -> AbstractContextManager[None]:
        """Count an open stream of this caller while the block runs."""
        return self.serving.limits.stream(*self._counted)

    @property
    def public_url(self) -> str:
        """The address of the server, as this client reaches it."""
        return self.serving.settings.public_url or str(self.request.base_url).rstrip("/")

    @property
    def wants_page(self) -> bool:
        """Whether the client is a browser that opens the address."""
        return "text/html" in self.request.headers.get("accept", "")

    def audience(self, *, trace: bool = False) -> Audience:
        """Return which events this caller may see."""
        author = "author" in self.caller.scopes
        seal = partial(self.serving.tables.token, identity=self.caller.identity)
        return Audience(
            public_url=self.public_url, author=author, trace=trace and author, seal=seal
        )

    async def json(self) -> Any:
        """Return the JSON value of the body. Raises Refused, UsageError."""
        body = await request_body.read_body(self.request, self.serving.settings.limits)
        return request_body.parse_json(body)

    async def turn(self, turn_id: str) -> TurnLog:
        """Return a turn of this caller, which this process runs or the store has. Raises
        UnknownName, also for another caller's turn."""
        running = self.serving.turns.get(turn_id)
        token = self.request.headers.get("x-groundhook-resume", "")
        token = token or self.request.query_params.get("resume", "")
        if running is not None and self._owns(running, token):
            return running
        stored = self.serving.stores_turns or bool(self.caller.identity.user_id)
        # Also for a turn that runs here and is another caller's: an answer that comes sooner than
        # that about an unknown id would tell that it exists.
        if stored and self.serving.has("chats"):
            owner = self.caller.stored_owner(token)
            return await kept_turn(self.serving.host, owner, turn_id, token)
        raise UnknownName("turn", turn_id[:80], ())

    def _owns(self, running: ServerTurn, token: str) -> bool:
        if self.caller.anonymous:
            return hmac.compare_digest(running.token.encode(), token.encode())
        return running.ask.owner == self.caller.owner

    @contextmanager
    def reading(self, running: TurnLog, after: int) -> Iterator[LogReader]:
        """Open a reader of a turn that begins after the event `after`, and count it as an open
        stream."""
        with (
            running.reader(after, self.serving.turns.on_last_reader_gone) as reader,
            self.stream(),
        ):
            yield reader

    async def until_over(self, running: TurnLog) -> bool:
        """Wait for the end of a turn; return False if the client leaves before. Raises StorageError
        for a stored turn that can no longer be read, Refused for too many open streams."""
        self.admit_stream()
        with self.reading(running, 0) as reader:

            async def wait() -> bool:
                while await reader.next() is not None:
                    pass
                return True

            return bool(await self.unless_left(wait))

    async def unless_left(self, work: Callable[[], Awaitable[T]]) -> T | None:
        """Return what `work` returns; None if the client leaves before, which cancels it. Raises
        what `work` raises."""
        done: list[T] = []
        with unwrap_exception_groups():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._until_left, tasks.cancel_scope)
                done.append(await work())
                tasks.cancel_scope.cancel()
        return done[0] if done else None

    async def _until_left(self, scope: anyio.CancelScope) -> None:
        while (await self.request.receive())["type"] != "http.disconnect":
            pass
        scope.cancel()


ServerPart = Literal["", "openai", "mcp", "chats", "page"]
EndpointHandler = Callable[[Call], Awaitable[ASGIApp]]


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """A row of the table of endpoints. `scope` is the scope that a key needs; endpoints with `open`
    need no key. `part` is the part of the server to which it belongs, which a setting can switch
    off. `shape` is the form of its errors. `about`, `body`, `answer`, `status` (of what
    was done) and `query` (its parameters, each with its meaning) are for the documents."""

    method: str
    path: str
    handler: EndpointHandler
    about: str
    scope: ServerScope | None = None
    open: bool = False
    part: ServerPart = ""
    shape: Shape = "problem"
    body: type[Value] | None = None
    answer: type[Value] | None = None
    status: int = 200
    query: tuple[tuple[str, str], ...] = ()
