"""The events of a turn: the same in the terminal, as JSON lines, over HTTP and in Python.

Every event has `type`, `turn_id` and `at_ms`, whole milliseconds since the turn began.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, TypeAdapter

from groundhook.core.types.base import Value, defaults_of
from groundhook.core.types.search import (
    Certainty,
    ComputedBy,
    Extent,
    Item,
    LongTable,
    Origin,
    SearchAccount,
    SourceType,
    TotalIs,
)
from groundhook.core.types.turn import Usage

NodeStatus = Literal["running", "completed", "failed"]
Verdict = Literal["ok", "earlier", "unknown"]
# Host calls of a hook in order: (the request, the answer), as the hook engine writes them.
HookJournal = tuple[tuple[str, str], ...]
MessageAction = Literal["send", "append", "replace", "merge", "set", "end"]


class _Event(Value):
    turn_id: str = Field(default="", description="The turn, the same for all its events")
    at_ms: int = Field(default=0, description="Whole milliseconds since the turn began")

    def stamped(self, turn_id: str, at_ms: int) -> Self:
        """Return the event with its turn and time. An event without a turn has one owner, so it is
        changed in place instead of copied."""
        if self.turn_id:
            return self.model_copy(update={"turn_id": turn_id, "at_ms": at_ms})
        fields_set, fields = self.__pydantic_fields_set__, self.__dict__
        fields["turn_id"], fields["at_ms"] = turn_id, at_ms
        fields_set.add("turn_id")
        fields_set.add("at_ms")
        return self


class StreamStart(_Event):
    """The turn began."""

    type: Literal["stream_start"] = "stream_start"
    assistant_id: str = Field(description="The assistant: its folder's path, with dots")
    chat_id: str = ""
    message_id: str = Field(default="", description="In a kept chat: the answer of this turn")
    connector: str = Field(default="", description="Id of the connector of the language model")


class SearchStart(_Event):
    """A search began."""

    type: Literal["search_start"] = "search_start"
    search_id: str = Field(description="Id of the search in its later events")
    source: Origin = Field(
        description="Origin: the user's data parts, a hook, or the assistant's configuration"
    )
    search_type: SourceType
    query: str = Field(
        description=(
            "The question that the source is searched for; of a document or a resource that is read"
            " whole its name"
        )
    )


class SearchFound(_Event):
    """A search found an item; one event for each, best first, before `search_complete`."""

    type: Literal["search_result"] = "search_result"
    search_id: str
    item: Item


STOPPED = "stopped"


class SearchComplete(SearchAccount, _Event):
    """A search ended. `error` says why it failed; the turn goes on. `certainty`, `read_as`,
    `unread`, `readings`, `read_by` and `explanation` are those of a `SearchResult`: readers outside
    see them."""

    type: Literal["search_complete"] = "search_complete"
    search_id: str
    total: int = Field(description="Number of matches if the source knows it, else of items")
    total_is: TotalIs = Field(
        default="exact", description="`at_least`: there may be more than `total`"
    )
    duration_ms: int
    error: str | None = Field(
        default=None,
        description=(
            f"Reason of a failure; `{STOPPED}`: cancelled, since another search was faster"
        ),
    )
    provider: str = Field(default="", description="web: the provider that answered")
    tables: tuple[LongTable, ...] = Field(
        default=(), description="db: the tables of which answers show a part"
    )


class SourcesGiven(_Event):
    """The searches are over, and the prompt has the best of what they found; again where a model
    refused the prompt as too long. Not sent where nothing was searched."""

    type: Literal["sources_given"] = "sources_given"
    given: int = Field(description="Number of items that the model reads")

    @property
    def words(self) -> str:
        """The event in words, for statuses."""
        return f"{self.given} source{'' if self.given == 1 else 's'} given to the model"


class Text(_Event):
    """The next piece of the answer."""

    type: Literal["text"] = "text"
    delta: str = Field(description="Text to append; a marker is never split")


class Reasoning(_Event):
    """The next piece of what the model thinks before it answers, where its API returns it. It is
    not a part of the answer, and its markers are not checked."""

    type: Literal["reasoning"] = "reasoning"
    delta: str = Field(description="Text to append")


class VerifiedSentence(Value):
    """A sentence of an answer, and what `uses.verify` says of it."""

    sentence: str = Field(description="The sentence, without its markers; cut where it is long")
    supported: bool = Field(description="Whether its sources say all of it")
    quote: str = Field(default="", description="The words of a source that support it")


class CitationSeen(_Event):
    """A marker in the answer and its verdict; sent before the text that contains it."""

    type: Literal["citation"] = "citation"
    marker: str = Field(description="The marker as in the text")
    verdict: Verdict = Field(
        description=(
            "`ok`: a source of this turn; `earlier`: one that an earlier answer of the kept"
            " conversation cites, which was not found again; `unknown`: neither"
        )
    )
    item: Item | None = Field(
        default=None, description="The source; of an `earlier` marker as it was kept"
    )
    missing: tuple[str, ...] = Field(
        default=(),
        description="As in `stream_end`, where the answer is verified before it is shown",
    )
    verified: tuple[VerifiedSentence, ...] = Field(default=(), description="As `missing`")


class HookMessage(_Event):
    """A message from a hook to the client, or a change of an earlier one.

    `send` and `replace` carry a whole message. `append` adds `message` to the value at `path`: text
    to text, entries to a list. `merge` merges an object into the one at `path`, `set` replaces the
    value there. `end` completes the message or, without a `message_id`, the block.
    """

    type: Literal["message"] = "message"
    action: MessageAction
    message_id: str = Field(
        description="Id of the message, the same in later actions. Empty: the whole block"
    )
    block_id: str = Field(default="", description="Id of its block of messages")
    thread_id: str = Field(
        default="", description="Id of its thread, for messages beside the answer"
    )
    streaming: bool = Field(
        default=False, description="With `send`: the message continues until `end`"
    )
    message: Any = Field(
        default=None,
        description="With `send` and `replace` {type, props, …}; with the others, their data",
    )
    path: str = Field(
        default="",
        description="Dotted path in the message: `props.content`; empty: the whole message",
    )


class ToolStart(_Event):
    """The model calls a tool."""

    type: Literal["tool_start"] = "tool_start"
    call_id: str = Field(description="Id of the call, the same in its result")
    name: str = Field(description="Its name for the model: `server__tool` for one of an MCP server")
    server: str = Field(
        default="",
        description="The MCP server, as the assistant lists it; empty: no server's",
    )
    toolkit: str = Field(default="", description="The toolkit of the tool; empty: none")
    arguments: dict[str, Any] = {}


class ToolResult(_Event):
    """A tool returned a result, or failed."""

    type: Literal["tool_result"] = "tool_result"
    call_id: str
    name: str
    server: str = Field(default="", description="As in `tool_start`")
    toolkit: str = Field(default="", description="As in `tool_start`")
    result: Any = None
    error: str | None = Field(default=None, description="Reason of a failure")
    items: tuple[Item, ...] = Field(
        default=(), description="Citable items of the result, each with its marker"
    )
    duration_ms: int = 0


class ToolProgress(_Event):
    """The progress of a tool call, between its `tool_start` and its `tool_result`."""

    type: Literal["tool_progress"] = "tool_progress"
    call_id: str = ""
    name: str = Field(default="", description="As in `tool_start`")
    done: float = Field(default=0, description="Amount done so far")
    total: float | None = Field(default=None, description="Total amount; null: not known")
    message: str = ""


class ApprovalRequired(_Event):
    """The model calls a tool that runs only when the user approves, or a hook asks the user a
    question: one event for each, and the turn ends with the finish reason `approval_required`. The
    user's decision is the next message of the kept chat."""

    type: Literal["approval_required"] = "approval_required"
    call_id: str = Field(description="Id of the call, which the decision names")
    name: str = Field(description="As in `tool_start`")
    server: str = Field(default="", description="As in `tool_start`")
    toolkit: str = Field(default="", description="As in `tool_start`")
    arguments: dict[str, Any] = Field(default={}, description="With which it will run, unchanged")
    assistant_id: str = Field(default="", description="The assistant that continues")
    question: str = Field(
        default="", description="What `ctx.Ask` asks, which is the text of the answer too"
    )
    choices: tuple[str, ...] = Field(
        default=(), description="The answers to `question` that count; none: any words"
    )
    journal: HookJournal = Field(
        default=(), description="What hooks did before, for the turn that continues; not sent"
    )


class DocumentsSearchStarted(_Event):
    """The tool `search_documents` began."""

    type: Literal["search_documents.started"] = "search_documents.started"
    call_id: str = ""
    query: str


class DocumentsSearchCompleted(_Event):
    """The tool `search_documents` ended, or failed, or was cancelled."""

    type: Literal["search_documents.completed"] = "search_documents.completed"
    call_id: str = ""
    query: str
    totalDocuments: int = Field(default=0, description="Documents in its result")  # noqa: N815
    error: str | None = Field(
        default=None, description="Reason of a failure, or of what is missing"
    )


class TraceNode(Value):
    """A step of the turn, under its parent."""

    id: str
    parent: str = Field(default="", description="Id of the parent; empty: the turn itself")
    type: str = Field(description="Kind of step, such as `search` or `db_query`")
    label: str = Field(default="", description="Title for people")
    status: NodeStatus = "running"
    duration_ms: float = Field(default=0.0, description="0 while it runs")
    data: dict[str, Any] = Field(default={}, description="Details of the step")


class Trace(_Event):
    """A step began, changed or ended; a later event replaces an earlier one with the same node
    id."""

    type: Literal["trace"] = "trace"
    node: TraceNode


class Warned(_Event):
    """A problem that does not end the turn."""

    type: Literal["warning"] = "warning"
    code: str = Field(description="Kind of problem, for programs")
    message: str = Field(description="One sentence for people")
    file: str = Field(default="", description="File of the cause, if there is one")
    line: int = Field(default=0, description="Counted from 1; 0: not known")
    column: int = Field(default=0, description="Counted from 1; 0: not known")
    hint: str = Field(default="", description="What to do")


class Failed(_Event):
    """The turn failed. Earlier events stay valid; `stream_end` follows."""

    type: Literal["error"] = "error"
    code: str = Field(description="`code` of the error class in core/errors.py")
    message: str = Field(description="One sentence for people")
    file: str = Field(default="", description="File of the cause, if there is one")
    line: int = Field(default=0, description="Counted from 1; 0: not known")
    column: int = Field(default=0, description="Counted from 1; 0: not known")
    hint: str = Field(default="", description="What to do")


class Cited(Value):
    """A marker of the answer in `stream_end`, which lists each once, in the order of first use."""

    marker: str = Field(description="The marker as in the text")
    verdict: Verdict
    title: str = ""
    url: str = ""
    type: SourceType | None = None
    collection: str = ""
    document_id: str = ""
    extent: Extent | None = Field(
        default=None, description="Of a passage: its place in the document"
    )
    model: str = ""
    record_id: Any = None
    query: ComputedBy | None = Field(
        default=None,
        description="Of a figure, such as a count or a sum: its query",
    )
    missing: tuple[str, ...] = Field(
        default=(), description="Facts of the sentences that cite it which are not in it"
    )
    verified: tuple[VerifiedSentence, ...] = Field(
        default=(), description="The sentences that cite it and that `uses.verify` has judged"
    )


class Claims(Value):
    """How many sentences of an answer have which support. `cited` = `supported` + `doubtful`."""

    cited: int = Field(default=0, description="Sentences that cite")
    supported: int = Field(
        default=0,
        description=(
            "Of these, those whose numbers, dates, units, quoted words and names are all in the"
            " sources that they cite"
        ),
    )
    doubtful: int = Field(
        default=0,
        description=(
            "Of these, those with a fact that is in none, without a source, or `unsupported`"
        ),
    )
    uncited: int = Field(default=0, description="Sentences with such facts that cite nothing")
    verified: int = Field(
        default=0, description="Of `cited`, those that `uses.verify` found to be supported"
    )
    unsupported: int = Field(
        default=0, description="Of `cited`, those that `uses.verify` found not to be"
    )


class StreamEnd(_Event):
    """The turn is over."""

    type: Literal["stream_end"] = "stream_end"
    content: str = Field(default="", description="The whole answer")
    message: dict[str, Any] = Field(
        default={},
        description=(
            "The answer as a message for the next turn: {role: `assistant`, content: [{type:"
            " `text`, text}, {type: `tool-result`, toolCallId, toolName, output}]} in the order"
            " streamed"
        ),
    )
    citations: tuple[Cited, ...] = Field(
        default=(), description="Every marker of the answer once, in the order of first use"
    )
    data: Any = Field(default=None, description="`data` that the Next hook returned")
    metadata: dict[str, Any] = Field(default={}, description="`metadata` that the hooks returned")
    finish_reason: str = Field(
        default="",
        description=(
            "Why the model stopped, as it reports it; `length`: the answer reached its limit of"
            " tokens; `approval_required`: a call waits for the user"
        ),
    )
    tool_calls: tuple[dict[str, Any], ...] = Field(
        default=(),
        description=(
            "Calls of the client's own tools, with which the turn ended: {id, type: `function`,"
            " function: {name, arguments}}"
        ),
    )
    grounded: bool | None = Field(
        default=None,
        description=(
            "Whether the answer cites a source that the model was given, in this turn or in an"
            " earlier one; null: this turn gave it none, or the answer is empty or failed"
        ),
    )
    claims: Claims = defaults_of(Claims)
    certainty: Certainty | None = Field(
        default=None,
        description=(
            "That of the best search whose items the answer cites; `none`: it cites nothing"
            " although sources were asked; null: no source was asked, or none that it cites judges"
        ),
    )
    usage: Usage = defaults_of(Usage)
    timings: dict[str, float] = Field(default={}, description="Milliseconds of each step")


Event = Annotated[
    StreamStart
    | SearchStart
    | SearchFound
    | SearchComplete
    | SourcesGiven
    | Text
    | Reasoning
    | CitationSeen
    | HookMessage
    | ToolStart
    | ToolProgress
    | ToolResult
    | ApprovalRequired
    | DocumentsSearchStarted
    | DocumentsSearchCompleted
    | Trace
    | Warned
    | Failed
    | StreamEnd,
    Field(discriminator="type"),
]
EVENT: TypeAdapter[Event] = TypeAdapter(Event, config=ConfigDict(defer_build=True))
