"""The services of the host for the hooks of one turn: a Protocol for each group of calls;
`HookServices` has them all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from groundhook.host.core.errors import Place
from groundhook.host.core.types.calls import Answered, Ask
from groundhook.host.core.types.events import MessageAction
from groundhook.host.core.types.search import RecordQuery, SearchRequest, SearchResult
from groundhook.host.core.types.servers import ServerCalling, ServerMethod, ToolAsk
from groundhook.host.core.types.turn import ToolOutcome

Together = Literal["all", "any", "race"]


class HookOutput(Protocol):
    """Messages to the client, which reach it while the hook runs, in the order in which they were
    made."""

    async def send(self, message: Mapping[str, Any], block_id: str, /, *, streaming: bool) -> str:
        """Send a message {type, props, …} → its id. `message_id`, `block_id` and `thread_id` in it
        are honoured. A stream that is left open is closed when the hook ends. Raises UsageError for
        an id that is taken."""
        ...

    async def change(
        self, action: MessageAction, message_id: str, value: Any, path: str, /
    ) -> None:
        """Append, replace, merge, set or end. Raises UsageError for an id that is not known, naming
        those that are."""
        ...

    async def end_block(self, block_id: str, /) -> None: ...

    def new_id(self, kind: Literal["message", "block", "thread"], /) -> str: ...


class HookTrace(Protocol):
    """Nodes of the trace that hooks make. "" is the hook's own; the others are closed, at the
    latest, when the hook ends."""

    async def add(self, parent: str, type: str, label: str, data: Mapping[str, Any], /) -> str:
        """A node under another → its id. Raises UsageError for a parent that is not known; so do
        the others."""
        ...

    async def log(self, node: str, level: str, message: str, /) -> None: ...

    async def note(self, node: str, data: Mapping[str, Any], /) -> None:
        """Put data into a node."""
        ...

    async def close(self, node: str, error: str | None, /) -> None: ...


class HookCalls(Protocol):
    """Models and other assistants, asked for a hook. Never raises for what failed there: `error` is
    set."""

    async def ask(self, asks: Sequence[Ask], mode: Together, /) -> list[Answered]:
        """`all`: every answer, in order. `any`: the first that did not fail. `race`: the first that
        ends."""
        ...

    async def open(self, asks: Sequence[Ask], mode: Together, /) -> int:
        """The same, to be heard while it arrives → a handle, which is closed, at the latest, when
        the hook ends."""
        ...

    async def next(self, handle: int, /) -> Sequence[tuple[int, str]]:
        """What has arrived since: [(position of the ask, text)]; waits for some; nothing when all
        has been said. Raises UsageError for a handle that is closed."""
        ...

    async def close(self, handle: int, problem: str, /) -> list[Answered]:
        """Stop what is under way → the answers as `ask` gives them, those that were stopped with
        what had arrived and, if not empty, `problem` as their error."""
        ...


class HookServers(Protocol):
    """The MCP servers that the assistant lists, by the names it lists them under; UsageError for
    others."""

    async def ask(
        self, server: str, method: ServerMethod, params: Mapping[str, Any], /
    ) -> dict[str, Any]:
        """As `ToolServers.ask`; an answer of a tool has `result` as well, its value. Raises what
        that raises."""
        ...

    async def call_many(
        self, asks: Sequence[ToolAsk], calling: ServerCalling, /
    ) -> list[dict[str, Any]]:
        """Tools of several servers: one after the other, or at the same time → the answers in
        order; of `any` the first that did not fail, of `race` the first. Never raises for what
        failed there: `error` is set."""
        ...


class HookTools(Protocol):
    """The tools of the turn, as the model is offered them."""

    async def offered(self) -> Sequence[Mapping[str, Any]]:
        """[{name, description, parameters}]"""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any], /) -> ToolOutcome:
        """Raises UnknownName; everything else that fails is `error`."""
        ...


MemoryOperation = Literal[
    "get", "set", "delete", "has", "keys", "length", "clear", "incr", "decr", "get_del"
]


class HookMemory(Protocol):
    """What is remembered for hooks, in namespaces that belong to the request's identity."""

    async def do(self, space: str, operation: MemoryOperation, /, *arguments: Any) -> Any:
        """One call of `host.memory.memory.Namespace`. Raises NotPermitted when the request does not
        say whose it is, UsageError for what cannot be kept, StorageError."""
        ...


class HookWeb(Protocol):
    """Hosts that the assistant's settings declare."""

    async def request(
        self,
        method: str,
        url: str,
        /,
        *,
        query: Mapping[str, Any],
        headers: Mapping[str, str],
        body: Any,
    ) -> Mapping[str, Any]:
        """A body that is not text goes as JSON → {status, code, message, url, headers, data},
        whatever the status. Raises NotPermitted for a host that is not declared, SourceError when
        there is no answer, UsageError."""
        ...


class HookRecords(Protocol):
    """Records of models by conditions alone, and HTML as text."""

    async def get(self, query: RecordQuery, /) -> list[dict[str, Any]]:
        """As `Records.records`, with the model by the name that the assistant uses."""
        ...

    def markdown(self, html: str, /) -> str:
        """Blocks for as long as it takes."""
        ...


class HookServices(Protocol):
    """What the host does for one turn's hooks; `hooks/api/table.py` maps the names that JavaScript
    sees to these."""

    @property
    def output(self) -> HookOutput: ...

    @property
    def memory(self) -> HookMemory: ...

    @property
    def web(self) -> HookWeb: ...

    @property
    def records(self) -> HookRecords: ...

    @property
    def trace(self) -> HookTrace: ...

    @property
    def calls(self) -> HookCalls: ...

    @property
    def servers(self) -> HookServers: ...

    @property
    def tools(self) -> HookTools: ...

    async def search(self, request: SearchRequest, /) -> SearchResult:
        """Never raises for a search that failed: `error` is set."""
        ...

    async def search_many(
        self, requests: Sequence[SearchRequest], mode: Together, /
    ) -> list[SearchResult]:
        """`all`: every result, in order. `any`: the first that has items. `race`: the first that
        ends."""
        ...

    async def log(self, level: str, message: str, /) -> None: ...

    async def warn(self, code: str, message: str, place: Place | None = None, /) -> None: ...
