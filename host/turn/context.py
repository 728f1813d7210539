"""The context of a turn: the parts of its host, the request, and the turn that contains it."""

from __future__ import annotations

import itertools
import random
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

from groundhook.core.channel import Channel
from groundhook.core.errors import ConfigError, HostError, UnknownName
from groundhook.core.hook_engine import HookEngine
from groundhook.core.ports import (
    Clock,
    Connector,
    Documents,
    Records,
    Scope,
    ToolServers,
    Warn,
)
from groundhook.core.readers.pool import TextReaders
from groundhook.core.settings import BY_CONNECTOR, Settings
from groundhook.core.tool_ports import Collections, ModelReply
from groundhook.core.trace import Export, ExportStep, Traced
from groundhook.core.types.attached import AttachedReader
from groundhook.core.types.connector_spec import EXTRACTIVE, SCRIPTED
from groundhook.core.types.contract import NO_CONTRACT, Contract
from groundhook.core.types.events import Event, HookJournal, StreamEnd, Trace, TraceNode, Warned
from groundhook.core.types.search import Item
from groundhook.core.types.turn import Identity, Message, TurnOptions, connector_ids
from groundhook.core.types.uses import JsonReply
from groundhook.host.chats.memory.memory import Memory
from groundhook.host.config.packages import App
from groundhook.host.config.trial import Trial
from groundhook.host.search.other_words import WrittenWords
from groundhook.host.search.searcher import SearchPlugins
from groundhook.host.tools.toolbox import Toolbox
from groundhook.host.tools.toolkits import ToolkitOf
from groundhook.host.turn.completions import AppModels
from groundhook.host.turn.delegation import DelegateTargets, StepContent, TurnDelegates
from groundhook.host.turn.grants import Grants
from groundhook.host.turn.outbox import Outbox
from groundhook.host.web_client.clients import WebClients

if TYPE_CHECKING:
    from groundhook.core.types.chats import ChatMessage, Decision

# The most warnings that are forwarded from the delegated steps of one turn, or of one search
# outside a turn.
MOST_WARNINGS = 20

# Receives every event of a turn that runs inside another.
EventSink = Callable[[Event], Awaitable[None]]

# Runs a turn inside another: the context, the request, the sink for its events, and the outbox for
# its messages to the client (None: they are dropped). Returns its last event, and its errors as
# text (empty: none). Raises HostError when the turn cannot begin.
CallAssistant = Callable[
    ["RunContext", "Request", EventSink, Outbox | None], Awaitable[tuple[StreamEnd, str]]
]


@dataclass(frozen=True, kw_only=True)
class Randomness:
    """Random values of turns. With a `seed` they repeat, for tests and replays."""

    seed: int | None = None

    def token(self, size: int) -> str:
        """Return `size` random bytes in hexadecimal; the same ones for the same seed."""
        if self.seed is None:
            return secrets.token_hex(size)
        return random.Random(self.seed).randbytes(size).hex()


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """The parts of a host, shared by all its turns. Only the composition root makes one."""

    app: App
    plugins: SearchPlugins
    documents: Documents
    records: Records
    texts: TextReaders
    attachments: Callable[[], AttachedReader]
    memory: Memory
    web_clients: WebClients
    connectors: Callable[[str], Connector]
    hooks: HookEngine
    toolbox: Toolbox  # with the host's own tools
    toolkits: ToolkitOf
    collections: Callable[[Scope, str], Collections]  # with the names of one assistant
    servers: ToolServers
    servers_for: Callable[[RunContext, Request, Warn], ToolServers]  # as a request reaches them
    now: Clock
    web_configured: Callable[[Settings], bool]
    clock_is_fixed: bool = False  # `now` always returns the same time, for tests and replays
    randomness: Randomness = Randomness()
    search_words: WrittenWords = field(default_factory=WrittenWords)
    picture_texts: WrittenWords = field(default_factory=WrittenWords)  # outside of kept chats
    export: Export | None = None  # of traces

    def recorders(
        self, channel: Channel, request: Request
    ) -> tuple[Callable[[TraceNode], None], ExportStep | None]:
        """Return what receives the steps of a trace (`core.trace.recording`): a function that sends
        them as events, and the export, if there is one."""

        def changed(node: TraceNode) -> None:
            channel.send_nowait(Trace(node=node))

        if self.export is None:
            return changed, None
        chat, user = request.options.chat_id or "", request.identity.user_id
        tenant = f"{request.identity.tenant_id}/" if request.identity.tenant_id else ""
        traced = Traced(
            turn_id=channel.turn_id,
            session=chat and f"{tenant}{chat}",
            user=user and f"{tenant}{user}",
        )
        return changed, self.export(traced)


class PictureTexts(Protocol):
    """The descriptions of pictures of one chat, by a digest of what was described and by whom."""

    async def get(self, digest: str, /) -> str:
        """Return a description; empty if there is none. Raises StorageError."""
        ...

    async def put(self, digest: str, text: str, /) -> None:
        """Keep a description with the chat. Raises StorageError."""
        ...


@dataclass(frozen=True, kw_only=True)
class KeptConversation:
    """The kept conversation that a turn belongs to. `sources`: the cited sources of its answers, by
    marker in lower case. `newest(most)` returns at most `most` messages before the question.
    `omitted`: the messages before those of the request, which may be summarised. `answer_id`: the
    message that the turn writes. `can_ask`: whether its client can show calls that need the user's
    approval. `decided` are those of the answer before, and `question` the one that it answers.
    `asked` are the messages that Create had when a hook asked the user, and `journal` the calls of
    the hooks: they go on behind them. `pictures` has the descriptions of the chat's pictures."""

    answer_id: str
    sources: Mapping[str, Item]
    newest: Callable[[int], Awaitable[Sequence[ChatMessage]]]
    omitted: tuple[Message, ...] = ()
    can_ask: bool = True
    decided: tuple[Decision, ...] = ()
    question: str = ""
    asked: tuple[Message, ...] = ()
    journal: HookJournal = ()
    pictures: PictureTexts | None = None


@dataclass(frozen=True, kw_only=True)
class Request:
    """The request for one turn. `reply` is the schema of the answer of a delegated step, which a
    program reads; `contract` is what a client demands of the answer. A `trial` is of this assistant
    alone, not of those that it calls. An empty `turn_id` is replaced by a new one."""

    assistant_id: str
    messages: tuple[Message, ...]
    options: TurnOptions = TurnOptions()
    identity: Identity = Identity()
    reply: JsonReply | None = None
    contract: Contract = NO_CONTRACT
    conversation: KeptConversation | None = None
    trial: Trial | None = None
    turn_id: str = ""

    @property
    def demanded_reply(self) -> JsonReply | Literal["json"] | None:
        """The JSON that the answer has to be ("json": any object); None if it is text."""
        return self.reply or self.contract.reply

    def for_assistant(
        self, assistant_id: str, messages: tuple[Message, ...], **options: Any
    ) -> Request:
        """Return a request of the same user and client to another assistant, without the options
        for the model."""
        carried = ("locale", "theme", "route", "referer", "accept", "chat_id", "client")
        kept = {name: getattr(self.options, name) for name in carried}
        return Request(
            assistant_id=assistant_id,
            messages=messages,
            options=TurnOptions(**{**kept, **options}),
            identity=self.identity,
        )


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """The values that a turn inherits from the turn, or from the search outside turns, that begins
    it. `chain` lists the calling assistants, outermost first; `ids` numbers searches."""

    runtime: Runtime
    turn_id: str
    chain: tuple[str, ...] = ()
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))


def own_model(runtime: Runtime, assistant_id: str, settings: Settings) -> str:
    """Return the first of the assistant's connectors that is a language model, as steps name it:
    `connector:<id>`; "" without one."""
    for name in connector_ids(settings.connector):
        id = runtime.app.connector_id(assistant_id, name)
        try:
            type = runtime.app.connector(id).type
        except UnknownName:  # one that the program gives
            type = SCRIPTED if _is_scripted(runtime, id) else ""
        except ConfigError:
            continue  # it is reported when it is to answer
        if type not in (EXTRACTIVE, SCRIPTED):
            return f"{BY_CONNECTOR}{name}"
    return ""


def _is_scripted(runtime: Runtime, id: str) -> bool:
    # Imported here, since few programs give connectors.
    from groundhook.host.llm.scripted import ScriptedConnector

    try:
        return isinstance(runtime.connectors(id), ScriptedConnector)
    except HostError:
        return True  # an unknown name, which is reported when it is to answer


def search_scope(
    context: RunContext,
    request: Request,
    settings: Settings,
    call_assistant: CallAssistant,
    warn: Warn,
) -> Scope:
    """Return the scope of the searches of a request.

    A step that `uses.*` gives to a language model is one call of it, by its name for the assistant
    of the request. One that it delegates to an assistant is a turn of that assistant under the same
    identity, with one message and without a search. Each of its warnings reaches `warn` once,
    however often the step runs.
    """
    warnings: set[str] = set()

    async def run_step(id: str, asked: StepContent, reply: JsonReply) -> tuple[StreamEnd, str]:
        async def forward_warnings(event: Event) -> None:
            if not isinstance(event, Warned):
                return
            hint = f" ({event.hint})" if event.hint else ""
            message = f"{id}: {event.message}{hint}"
            if message in warnings or len(warnings) > MOST_WARNINGS:
                return
            warnings.add(message)
            if len(warnings) > MOST_WARNINGS:
                message = f"{id} has more warnings, which are omitted"
            await warn(event.code, message)

        step = request.for_assistant(id, (Message(role="user", content=asked),), search=False)
        return await call_assistant(context, replace(step, reply=reply), forward_warnings, None)

    models = AppModels(context.runtime.app, request.assistant_id, context.runtime.connectors)

    async def ask_model(
        connector: str, messages: Sequence[Message], reply: JsonReply, max_tokens: int | None
    ) -> ModelReply:
        return await models.complete(
            connector,
            messages,
            answer=reply,
            temperature=0,
            max_tokens=max_tokens,
            is_step=True,
        )

    grants = Grants(context.runtime.app, request.assistant_id)
    targets = DelegateTargets(
        model=ask_model,
        assistant=run_step,
        server=grants.server,
        permit=grants.permit,
        servers=context.runtime.servers_for(context, request, warn),
    )
    return Scope(
        identity=request.identity,
        assistant_id=request.assistant_id,
        settings=settings.search,
        uses=settings.uses,
        now=context.runtime.now,
        warn=warn,
        delegates=TurnDelegates(targets),
        connector=own_model(context.runtime, request.assistant_id, settings),
    )
