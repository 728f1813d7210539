"""The services of the host for the hooks of one turn: a Protocol for each group of calls;
`HookServices` has them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NoReturn, Protocol, TypeVar

from groundhook.core.errors import Place
from groundhook.core.types.calls import Answered, Ask
from groundhook.core.types.chats import EarlierMessage
from groundhook.core.types.events import MessageAction
from groundhook.core.types.search import RecordQuery, SearchRequest, SearchResult
from groundhook.core.types.servers import ServerCalling, ServerMethod, ToolAsk
from groundhook.core.types.tools import ToolOutcome

T = TypeVar("T")
Together = Literal["all", "any", "race"]


class HookOutput(Protocol):
    """Messages to the client, which receives them in order, while the hook runs."""

    async def send(self, message: Mapping[str, Any], block_id: str, /, *, streaming: bool) -> str:
        """Send a message {type, props, …} and return its id. `message_id`, `block_id` and
        `thread_id` in it are kept. A stream that is left open is closed when the hook ends. Raises
        UsageError for an id that is in use."""
        ...

    async def change(
        self, action: MessageAction, message_id: str, value: Any, path: str, /
    ) -> None:
        """Append to, replace, merge into, set or end a message. Raises UsageError for an unknown
        id, with the known ones."""
        ...

    async def end_block(self, block_id: str, /) -> None:
        """Mark a block of messages as complete."""
        ...

    def new_id(self, kind: Literal["message", "block", "thread"], /) -> str:
        """Return an id of that kind which is not in use."""
        ...


class HookTrace(Protocol):
    """Nodes that a hook adds to the trace. "" is the hook's own node; the others are closed when
    the hook ends, at the latest. An unknown node raises UsageError."""

    async def add(self, parent: str, type: str, label: str, data: Mapping[str, Any], /) -> str:
        """Add a node under `parent` and return its id."""
        ...

    async def log(self, node: str, level: str, message: str, /) -> None:
        """Add a log line under a node; `level` is debug, info, warn or error."""
        ...

    async def note(self, node: str, data: Mapping[str, Any], /) -> None:
        """Merge data into a node."""
        ...

    async def close(self, node: str, error: str | None, /) -> None:
        """End a node: completed, or failed with `error`."""
        ...

    def is_complete(self, node: str, /) -> bool:
        """Return whether a node has ended."""
        ...


class HookCalls(Protocol):
    """Calls of models and other assistants for a hook. A call that fails does not raise: `error` of
    its answer is set."""

    async def ask(self, asks: Sequence[Ask], mode: Together, /) -> list[Answered]:
        """Run the calls at the same time and return their answers: with `all` every answer, in
        order; with `any` the first that did not fail; with `race` the first that ends."""
        ...

    async def open(self, asks: Sequence[Ask], mode: Together, /) -> int:
        """Start calls as `ask` does and return a handle to read the answers as they arrive. It is
        closed when the hook ends, at the latest."""
        ...

    async def next(self, handle: int, /) -> Sequence[tuple[int, str]]:
        """Wait for text and return what has arrived: [(position of the call, text)]; empty at the
        end. Raises UsageError for a closed handle."""
        ...

    async def close(self, handle: int, problem: str, /) -> list[Answered]:
        """Stop the calls that still run and return the answers as `ask` does. A call that was
        stopped has the text that had arrived and, if not empty, `problem` as its error."""
        ...


class HookServers(Protocol):
    """The MCP servers that the assistant lists, by their names in that list. Another name raises
    UsageError."""

    def start_ms(self, server: str, /) -> int:
        """Return the milliseconds that a server has to start with the next request; 0 for one that
        runs, and for another name."""
        ...

    async def ask(
        self, server: str, method: ServerMethod, params: Mapping[str, Any], /
    ) -> dict[str, Any]:
        """Send a request and return the server's answer as `ToolServers.ask` does; the answer of a
        tool also has its value as `result`. Raises the errors of `ToolServers.ask`."""
        ...

    async def call_many(
        self, asks: Sequence[ToolAsk], calling: ServerCalling, /
    ) -> list[dict[str, Any]]:
        """Call tools of several servers, one after the other or at the same time, and return the
        answers in order: with `any` the first that did not fail, with `race` the first that ends. A
        call that fails does not raise: `error` of its answer is set."""
        ...


class HookTools(Protocol):
    """The tools of the turn, the same as those of the model."""

    async def offered(self) -> Sequence[Mapping[str, Any]]:
        """Return [{name, description, parameters}]; `parameters` is a JSON Schema."""
        ...

    async def call(
        self, name: str, arguments: Mapping[str, Any], /, *, pool: bool = False
    ) -> ToolOutcome:
        """Call a tool and return the outcome. Its items have their markers; with `pool` they join
        the sources of the turn. Raises UnknownName; any other failure is `error` of the outcome."""
        ...


MemoryOperation = Literal[
    "get",
    "set",
    "delete",
    "has",
    "keys",
    "length",
    "clear",
    "incr",
    "decr",
    "get_del",
    "push",
    "pop",
    "pull",
    "pull_all",
    "add_to_set",
    "array_length",
    "array_get",
    "array_set",
    "array_slice",
    "array_page",
    "array_all",
]


class HookMemory(Protocol):
    """Values that hooks keep between turns, in namespaces of the request's identity."""

    async def do(self, space: str, operation: MemoryOperation, /, *arguments: Any) -> Any:
        """Run one operation of `host.chats.memory.memory.Namespace` and return its result. Raises
        NotPermitted for a request without the identity of that space, UsageError for a value that
        cannot be kept, StorageError."""
        ...


class HookChat(Protocol):
    """The conversation that the turn belongs to."""

    async def history(self, limit: int, /) -> Sequence[EarlierMessage]:
        """Return the newest messages before the question, oldest first. Raises StorageError."""
        ...

    def ask(self, question: str, choices: Sequence[str], /) -> NoReturn:
        """Raise HookAsked, or UsageError where nobody can be asked."""
        ...


class HookWeb(Protocol):
    """Requests to the hosts that the assistant's settings declare."""

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
        """Send a request and return {status, code, message, url, headers, data}, for every status.
        A body that is not text is sent as JSON. Raises NotPermitted for a host that is not
        declared, SourceError without an answer, UsageError for wrong arguments."""
        ...


class HookRecords(Protocol):
    """Records of models by conditions alone, HTML as Markdown, and texts of the locales."""

    async def get(self, query: RecordQuery, /) -> list[dict[str, Any]]:
        """Return records as `Records.records` does; `model` is the name that the assistant uses."""
        ...

    async def markdown(self, html: str, /) -> str:
        """Return HTML as Markdown. Raises IngestError."""
        ...

    async def parse(self, parser: Callable[[str], T], text: str, /) -> T:
        """Return `parser(text)` of a process that ends if the call is cancelled. Raises
        IngestError."""
        ...

    def text(self, key: str, /) -> str | None:
        """Return a text of the assistant's locales in the language of the turn. Raises
        ConfigError."""
        ...


class HookScripts(Protocol):
    """Functions of the package's own scripts."""

    async def call(self, name: str, arguments: Sequence[Any], /) -> Any:
        """Call a function by its name, `scripts.<file>.<function>` or
        `agents.<assistant>.<file>.<function>`, and return its JSON value. Raises UnknownName,
        UsageError, HookError."""
        ...


class HookServices(Protocol):
    """The services of the host for one turn's hooks; `hooks/api/table.py` maps the functions of
    JavaScript to them."""

    @property
    def output(self) -> HookOutput:
        """`ctx.Send` and its like."""
        ...

    @property
    def memory(self) -> HookMemory:
        """`ctx.memory`."""
        ...

    @property
    def chat(self) -> HookChat:
        """`ctx.chat`."""
        ...

    @property
    def web(self) -> HookWeb:
        """`http`."""
        ...

    @property
    def records(self) -> HookRecords:
        """`Process` on models and texts."""
        ...

    @property
    def trace(self) -> HookTrace:
        """`ctx.trace`."""
        ...

    @property
    def calls(self) -> HookCalls:
        """`ctx.agent` and `ctx.llm`."""
        ...

    @property
    def servers(self) -> HookServers:
        """`ctx.mcp`."""
        ...

    @property
    def tools(self) -> HookTools:
        """`ctx.tools`."""
        ...

    @property
    def scripts(self) -> HookScripts:
        """`Process` on functions of the package."""
        ...

    async def search(self, request: SearchRequest, /) -> SearchResult:
        """Search and return the result. A search that fails does not raise: `error` is set."""
        ...

    async def search_many(
        self, requests: Sequence[SearchRequest], mode: Together, /
    ) -> list[SearchResult]:
        """Run the searches at the same time and return their results: with `all` every result, in
        order; with `any` the first that has items; with `race` the first that ends."""
        ...

    async def log(self, level: str, message: str, /) -> None:
        """Add a log line to the hook's node of the trace."""
        ...

    async def warn(self, code: str, message: str, place: Place | None = None, /) -> None:
        """Send a `warning` event; `place` is its cause in a file."""
        ...
