"""The one stream of events of a turn: the same in the terminal, as JSON lines, over HTTP and in
Python.

Every event has `type`, `turn_id` and `at_ms`, whole milliseconds since the turn began.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, TypeAdapter

from groundhook.host.core.types.base import Value
from groundhook.host.core.types.search import ComputedBy, Extent, Item, SearchType, Source
from groundhook.host.core.types.turn import Usage

NodeStatus = Literal["running", "completed", "failed"]
Verdict = Literal["ok", "unknown"]
MessageAction = Literal["send", "append", "replace", "merge", "set", "end"]


class _Event(Value):
    turn_id: str = Field(default="", description="The turn, the same for all its events")
    at_ms: int = Field(default=0, description="Whole milliseconds since the turn began")

    def stamped(self, turn_id: str, at_ms: int) -> Self:
        """The event as it is handed over. One without a turn is its maker's alone until then, and
        is not made twice."""
        if self.turn_id:
            return self.model_copy(update={"turn_id": turn_id, "at_ms": at_ms})
        said, fields = self.__pydantic_fields_set__, self.__dict__
        fields["turn_id"], fields["at_ms"] = turn_id, at_ms
        said.add("turn_id")
        said.add("at_ms")
        return self


class StreamStart(_Event):
    """The turn began."""

    type: Literal["stream_start"] = "stream_start"
    assistant_id: str = Field(description="Its folder's path, with dots")
    chat_id: str = ""
    connector: str = Field(default="", description="Id of the language model that will answer")


class SearchStart(_Event):
    """A search began."""

    type: Literal["search_start"] = "search_start"
    search_id: str = Field(description="The search, the same in its later events")
    source: Source = Field(
        description="Who asked: the user's data parts, a hook, or the assistant's configuration"
    )
    search_type: SearchType
    query: str = Field(description="As the source receives it")


class SearchFound(_Event):
    """A search found an item; sent once for each, in the order of relevance, before the search is
    complete."""

    type: Literal["search_result"] = "search_result"
    search_id: str
    item: Item


STOPPED = "stopped"


class SearchComplete(_Event):
    """A search ended. `error` says why it failed; the turn goes on."""

    type: Literal["search_complete"] = "search_complete"
    search_id: str
    total: int = Field(description="All matches where the source knows it, else the items found")
    duration_ms: int
    error: str | None = Field(
        default=None,
        description=(
            f"Why the search failed; `{STOPPED}`: nobody waits for it any more, another was first"
        ),
    )
    provider: str = Field(default="", description="web: who was asked")


class Text(_Event):
    """More of the answer."""

    type: Literal["text"] = "text"
    delta: str = Field(
        description="Text that follows what came before; never part of a marker only"
    )


class CitationSeen(_Event):
    """A marker in the answer, checked; sent before the text that contains it."""

    type: Literal["citation"] = "citation"
    marker: str = Field(description="As it will stand in the text")
    verdict: Verdict = Field(
        description="`ok`: one of this turn's sources; `unknown`: nothing that was offered"
    )
    item: Item | None = Field(default=None, description="The source, when there is one")


class HookMessage(_Event):
    """What a hook sends to the client: a message, or a change of one that was sent before.

    `send` and `replace` carry a whole message. `append` puts `message` behind what is at `path`:
    text behind text, entries behind those of a list. `merge` folds an object into the one at
    `path`, `set` puts `message` there. `end` says that nothing more is appended to the message, or,
    without a `message_id`, that the block is whole.
    """

    type: Literal["message"] = "message"
    action: MessageAction
    message_id: str = Field(
        description="The message; later actions name it again. Empty: the whole block"
    )
    block_id: str = Field(default="", description="The block of messages it belongs to")
    thread_id: str = Field(
        default="", description="The thread it belongs to, for what runs beside the answer"
    )
    streaming: bool = Field(default=False, description="With `send`: more is appended until `end`")
    message: Any = Field(
        default=None,
        description="With `send` and `replace` {type, props, …}; with the others, their data",
    )
    path: str = Field(
        default="",
        description="Where in the message it applies, dotted: `props.content`; empty: all of it",
    )


class ToolStart(_Event):
    """The model asked for a tool."""

    type: Literal["tool_start"] = "tool_start"
    call_id: str = Field(description="The call, the same in its result")
    name: str = Field(
        description="As it was offered to the model: `server__tool` for a tool of an MCP server"
    )
    server: str = Field(
        default="",
        description="The MCP server, as the assistant lists it; empty: a tool of the host",
    )
    arguments: dict[str, Any] = {}


class ToolResult(_Event):
    """A tool answered, or failed."""

    type: Literal["tool_result"] = "tool_result"
    call_id: str
    name: str
    server: str = Field(default="", description="As in `tool_start`")
    result: Any = None
    error: str | None = Field(default=None, description="Why the tool failed")
    duration_ms: int = 0


class TraceNode(Value):
    """A step of the turn. `parent` is the id of the step it belongs to, empty for the turn
    itself."""

    id: str
    parent: str = Field(default="", description="Empty for the turn itself")
    type: str = Field(description="Kind of step, such as `search` or `db_query`")
    label: str = Field(default="", description="For people")
    status: NodeStatus = "running"
    duration_ms: float = Field(default=0.0, description="0 while it runs")
    data: dict[str, Any] = Field(default={}, description="What the step says about itself")


class Trace(_Event):
    """A step began or ended; the later event of the same node id replaces the earlier."""

    type: Literal["trace"] = "trace"
    node: TraceNode


class Warned(_Event):
    """Something is not as its author probably meant it, and the turn goes on."""

    type: Literal["warning"] = "warning"
    code: str = Field(description="For programs")
    message: str = Field(description="For people, one sentence")
    file: str = Field(default="", description="Where the cause is, when it is in a file")
    line: int = Field(default=0, description="Counted from 1; 0: not known")
    column: int = Field(default=0, description="Counted from 1; 0: not known")
    hint: str = Field(default="", description="What to do about it")


class Failed(_Event):
    """The turn failed. What was sent before stays valid; `stream_end` still follows."""

    type: Literal["error"] = "error"
    code: str = Field(description="For programs: `code` of the class in host/core/errors.py")
    message: str = Field(description="For people, one sentence")
    file: str = Field(default="", description="Where the cause is, when it is in a file")
    line: int = Field(default=0, description="Counted from 1; 0: not known")
    column: int = Field(default=0, description="Counted from 1; 0: not known")
    hint: str = Field(default="", description="What to do about it")


class Cited(Value):
    """A marker of the answer as `stream_end` lists it: each once, in the order of first use."""

    marker: str = Field(description="As it stands in the text")
    verdict: Verdict
    title: str = ""
    url: str = ""
    type: SearchType | None = None
    collection: str = ""
    document_id: str = ""
    extent: Extent | None = Field(
        default=None, description="Of a passage: where it stands in the document"
    )
    model: str = ""
    record_id: Any = None
    query: ComputedBy | None = Field(
        default=None,
        description="Of a figure, such as a count or a sum: the query it was computed with",
    )


class StreamEnd(_Event):
    """The turn is over."""

    type: Literal["stream_end"] = "stream_end"
    content: str = Field(default="", description="The whole answer")
    citations: tuple[Cited, ...] = Field(
        default=(), description="Every marker of the answer once, in the order of first use"
    )
    data: Any = Field(default=None, description="What the Next hook returned as `data`")
    metadata: dict[str, Any] = Field(
        default={}, description="What the hooks returned as `metadata`"
    )
    finish_reason: str = Field(
        default="",
        description=(
            "The model's word for why it stopped; `length`: the answer is cut at its bound of"
            " tokens"
        ),
    )
    grounded: bool | None = Field(
        default=None,
        description=(
            "Whether the answer cites one of the sources that the model was given; null: it was"
            " given none, or the answer is empty or failed"
        ),
    )
    usage: Usage = Usage()
    timings: dict[str, float] = Field(default={}, description="Milliseconds by step")


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
EVENT: TypeAdapter[Event] = TypeAdapter(Event, config=ConfigDict(defer_build=True))
