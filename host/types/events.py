"""The one stream of events of a turn: the same in the terminal, as JSON lines, over HTTP and in Python.

Every event has `type`, `turn_id` and `at_ms`, whole milliseconds since the turn began.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from host.types.base import Value
from host.types.search import Item, SearchType, Source
from host.types.turn import Usage

NodeStatus = Literal["running", "completed", "failed"]
Verdict = Literal["ok", "unknown"]
MessageAction = Literal["send", "append", "replace", "merge", "set", "end"]


class _Event(Value):
    turn_id: str = ""
    at_ms: int = 0


class StreamStart(_Event):
    """The turn began."""

    type: Literal["stream_start"] = "stream_start"
    assistant_id: str
    chat_id: str = ""
    connector: str = ""


class SearchStart(_Event):
    """A search began."""

    type: Literal["search_start"] = "search_start"
    search_id: str
    source: Source
    search_type: SearchType
    query: str


class SearchFound(_Event):
    """A search found an item; sent once for each, in the order of relevance, before the search is complete."""

    type: Literal["search_result"] = "search_result"
    search_id: str
    item: Item


class SearchComplete(_Event):
    """A search ended. `error` says why it failed; the turn goes on."""

    type: Literal["search_complete"] = "search_complete"
    search_id: str
    total: int
    duration_ms: int
    error: str | None = None


class Text(_Event):
    """More of the answer."""

    type: Literal["text"] = "text"
    delta: str


class CitationSeen(_Event):
    """A marker in the answer, checked; sent before the text that contains it."""

    type: Literal["citation"] = "citation"
    marker: str
    verdict: Verdict
    item: Item | None = None


class HookMessage(_Event):
    """What a hook sends to the client."""

    type: Literal["message"] = "message"
    action: MessageAction
    message_id: str
    block_id: str = ""
    message: Any = None
    path: str = ""


class ToolStart(_Event):
    """The model asked for a tool."""

    type: Literal["tool_start"] = "tool_start"
    call_id: str
    name: str
    arguments: dict[str, Any] = {}


class ToolResult(_Event):
    """A tool answered, or failed."""

    type: Literal["tool_result"] = "tool_result"
    call_id: str
    name: str
    result: Any = None
    error: str | None = None
    duration_ms: int = 0


class TraceNode(Value):
    """A step of the turn. `parent` is the id of the step it belongs to, empty for the turn itself."""

    id: str
    parent: str = ""
    type: str
    label: str = ""
    status: NodeStatus = "running"
    duration_ms: float = 0.0
    data: dict[str, Any] = {}


class Trace(_Event):
    """A step began or ended; the later event of the same node id replaces the earlier."""

    type: Literal["trace"] = "trace"
    node: TraceNode


class Warned(_Event):
    """Something is not as its author probably meant it, and the turn goes on."""

    type: Literal["warning"] = "warning"
    code: str
    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    hint: str = ""


class Failed(_Event):
    """The turn failed. What was sent before stays valid; `stream_end` still follows."""

    type: Literal["error"] = "error"
    code: str
    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    hint: str = ""


class Cited(Value):
    """A marker of the answer as `stream_end` lists it: each once, in the order of first use."""

    marker: str
    verdict: Verdict
    title: str = ""
    url: str = ""
    type: SearchType | None = None
    collection: str = ""
    document_id: str = ""
    model: str = ""
    record_id: Any = None


class StreamEnd(_Event):
    """The turn is over. `timings` are milliseconds by step."""

    type: Literal["stream_end"] = "stream_end"
    content: str = ""
    citations: tuple[Cited, ...] = ()
    data: Any = None
    metadata: dict[str, Any] = {}
    finish_reason: str = ""
    usage: Usage = Usage()
    timings: dict[str, float] = {}


Event = Annotated[
    StreamStart
    | SearchStart
    | SearchFound
    | SearchComplete
    | Text
    | CitationSeen
    | HookMessage
    | ToolStart
    | ToolResult
    | Trace
    | Warned
    | Failed
    | StreamEnd,
    Field(discriminator="type"),
]
EVENT: TypeAdapter[Event] = TypeAdapter(Event)
