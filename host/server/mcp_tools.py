"""What an MCP client may call: the tools of an assistant or of the app, `ask` (a whole turn), and,
for chat clients that connect sources, the pair `search` and `fetch`. Knows no SDK.

Every call is made with the identity of its caller. Ids of `search` are resolved anew with it: an id
is not a capability, and no address is ever requested.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast
from urllib.parse import quote

import anyio
from pydantic import BaseModel, ConfigDict, Field

from groundhook.host.app.host import Host
from groundhook.host.app.requests import validated
from groundhook.host.core.audience import NOT_PERMITTED, TOOL_FAILED
from groundhook.host.core.errors import HostError, NotPermitted, UnknownName, UsageError
from groundhook.host.core.exception_groups import unwrapped
from groundhook.host.core.tool_ports import Collections
from groundhook.host.core.types.collection_queries import CollectionMatch, CollectionQuery
from groundhook.host.core.types.events import (
    Cited,
    Event,
    SearchComplete,
    SearchStart,
    ToolProgress,
)
from groundhook.host.core.types.search import Item
from groundhook.host.core.types.tools import ABOUT_THE_REQUEST, ToolInfo, ToolOutcome
from groundhook.host.core.types.turn import Identity
from groundhook.host.dialects import fold, native
from groundhook.host.dialects.audience import Audience
from groundhook.host.dialects.openai_chat import OpenAIChat
from groundhook.host.dialects.places import address
from groundhook.host.server.problems import Refused
from groundhook.host.turn.toolkits import qualified

DOCUMENTS = "groundhook://"  # of resources: groundhook://kb/<collection>/<document>
MOST_RESULTS = 10
PAGE = 100  # resources of one listing
_UNREPORTED = 64  # events of progress that wait for a slow client

Report = Callable[[float, float | None, str], Awaitable[None]]  # done, total, message
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, kw_only=True)
class OfferedTool:
    """A tool as an MCP client sees it. The schemas are JSON Schemas of objects."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    output: Mapping[str, Any] | None
    reads_only: bool
    destructive: bool = False
    open_world: bool = False


@dataclass(frozen=True, kw_only=True)
class McpAnswer:
    """The answer to a call: text for a model, and the structured value of a success. `links` are
    the sources of an answer: (address, title)."""

    text: str
    structured: Mapping[str, Any] | None = None
    failed: bool = False
    links: Sequence[tuple[str, str]] = ()


class AskArguments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    question: str = Field(min_length=1, max_length=100_000)
    assistant: str = Field(default="", description="The assistant that answers")


class SearchArguments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    query: str = Field(min_length=1, max_length=10_000)


class FetchArguments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    id: str = Field(min_length=1, max_length=2000, description="An id that search returned")


class Result(BaseModel):
    id: str
    title: str
    url: str


class Results(BaseModel):
    results: list[Result]


class FetchedDocument(BaseModel):
    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class McpCaller:
    """Who calls. With an `assistant` it is that assistant's tools and collections; without, those
    of the app. With `assistants` a caller without a choice reaches only these, by `ask`, `search`
    and `fetch` (None: everything). `admit` is entered around a whole answer, `count` is called
    before a tool of the app; both raise HostError above the limits of the caller."""

    identity: Identity = Identity()
    assistant: str = ""
    assistants: Sequence[str] | None = None
    admit: Callable[[], AbstractAsyncContextManager[object]] = nullcontext
    count: Callable[[], Awaitable[None]] | None = None


@dataclass(frozen=True, kw_only=True)
class McpTools:
    """The tools of one server. `connector` adds `search` and `fetch`, and leaves out tools that are
    called so. `public_url` is the address of the HTTP server, for sources ("": none)."""

    host: Host
    connector: bool = False
    public_url: str = ""
    _own: Mapping[str, Callable[..., Awaitable[McpAnswer]]] = field(init=False)

    def __post_init__(self) -> None:
        own: dict[str, Callable[..., Awaitable[McpAnswer]]] = {"ask": self._ask}
        if self.connector:
            own |= {"search": self._search, "fetch": self._fetch}
        object.__setattr__(self, "_own", own)

    async def offered(self, caller: McpCaller) -> list[OfferedTool]:
        """Return the tools that the caller may use."""
        listed: list[ToolInfo] = []
        if caller.assistant or caller.assistants is None:
            listed = await self.host.tools(
                identity=caller.identity, assistant=caller.assistant or None
            )
        return [
            *self._own_tools(caller),
            *(
                _of_host(tool, name)
                for tool in listed
                if (name := self._name(tool)) not in self._own
            ),
        ]

    async def call(
        self, name: str, arguments: Mapping[str, Any], caller: McpCaller, report: Report
    ) -> McpAnswer:
        """Call a tool. Whatever fails is an answer in words."""
        try:
            if name in self._own:
                return await self._own[name](arguments, caller, report)
            return await self._call_host(name, arguments, caller, report)
        except NotPermitted:
            return McpAnswer(text=NOT_PERMITTED, failed=True)
        except (UsageError, Refused) as exc:
            return McpAnswer(
                text=f"{exc.message} ({exc.hint})" if exc.hint else exc.message, failed=True
            )
        except HostError as exc:
            return McpAnswer(text=f"the call failed ({exc.code})", failed=True)

    async def resources(self, caller: McpCaller, cursor: str) -> tuple[list[Result], str]:
        """Return a page of the documents that the identity may read, by collection and id, and the
        cursor of the next page ("": none). Raises UsageError for a wrong cursor."""
        collection, start = _place_of(cursor)
        collections = self._reached(caller)
        names = [name for name in self._collections(caller) if name >= collection]
        for name in names:
            query = CollectionQuery(
                collection=name, limit=PAGE, offset=start if name == collection else 0
            )
            try:
                [answer] = await collections.find([query])
            except NotPermitted:
                continue
            if answer.matches:
                end = query.offset + len(answer.matches)
                rest = [other for other in names if other > name]
                following = (
                    f"{name} {end}" if end < answer.total else f"{rest[0]} 0" if rest else ""
                )
                return [self._result(match) for match in answer.matches], following
        return [], ""

    async def read(self, id: str, caller: McpCaller) -> str:
        """Return the text of a document. Raises UnknownName, also for one that the identity may not
        see."""
        return (await self._document(id, caller)).text

    # ---- the tools of the app

    def _name(self, tool: ToolInfo) -> str:
        """Return the name under which a tool is listed: with that of its toolkit where a tool of
        the server has the same."""
        if tool.name in self._own and tool.toolkit:
            return qualified(tool.toolkit, tool.name)
        return tool.name

    async def _call_host(
        self, name: str, arguments: Mapping[str, Any], caller: McpCaller, report: Report
    ) -> McpAnswer:
        if not caller.assistant and caller.assistants is not None:
            raise UnknownName("tool", name, [tool.name for tool in self._own_tools(caller)])
        if caller.count is not None:
            await caller.count()
        outcome = await self._outcome(name, arguments, caller, report)
        if outcome.error is not None:
            shown = (
                outcome.error
                if caller.assistants is None or outcome.code in ABOUT_THE_REQUEST
                else TOOL_FAILED
            )
            return McpAnswer(text=shown, failed=True)
        value = outcome.result
        structured = value if isinstance(value, dict) else {"result": value}
        return McpAnswer(text=outcome.text or json.dumps(value), structured=structured)

    async def _outcome(
        self, name: str, arguments: Mapping[str, Any], caller: McpCaller, report: Report
    ) -> ToolOutcome:
        """Call a tool of the host; its progress is reported while it works."""
        send, receive = anyio.create_memory_object_stream[ToolProgress](_UNREPORTED)

        def note(event: Event) -> None:
            if isinstance(event, ToolProgress):
                with suppress(anyio.WouldBlock):  # a slow client misses some of it
                    send.send_nowait(event)

        async def forward() -> None:
            async with receive:
                async for event in receive:
                    await report(event.done or 0, event.total, event.message)

        outcome: ToolOutcome | None = None
        with unwrapped():
            async with anyio.create_task_group() as tasks, send:
                tasks.start_soon(forward)
                outcome = await self.host.tool(
                    name,
                    arguments,
                    identity=caller.identity,
                    assistant=caller.assistant or None,
                    events=note,
                )
        assert outcome is not None
        return outcome

    # ---- ask, search, fetch

    def _own_tools(self, caller: McpCaller) -> list[OfferedTool]:
        ask = AskArguments.model_json_schema()
        if caller.assistant:
            ask["properties"].pop("assistant")
        else:
            ask["properties"]["assistant"]["enum"] = self._assistants(caller)
            ask["required"] = ["question", "assistant"]
        tools = [
            OfferedTool(
                name="ask",
                description="Ask an assistant. The answer cites its sources by number.",
                parameters=ask,
                output=None,
                reads_only=False,
                open_world=True,
            )
        ]
        if self.connector:
            tools += [
                OfferedTool(
                    name="search",
                    description="Search documents. Returns ids, titles and addresses for fetch.",
                    parameters=SearchArguments.model_json_schema(),
                    output=Results.model_json_schema(),
                    reads_only=True,
                ),
                OfferedTool(
                    name="fetch",
                    description="Read a document whole, by an id that search returned.",
                    parameters=FetchArguments.model_json_schema(),
                    output=FetchedDocument.model_json_schema(),
                    reads_only=True,
                ),
            ]
        return tools

    async def _ask(
        self, arguments: Mapping[str, Any], caller: McpCaller, report: Report
    ) -> McpAnswer:
        wanted = _valid(AskArguments, arguments)
        assistant = caller.assistant or wanted.assistant
        known = self._assistants(caller)
        if not assistant:
            raise UsageError(f"assistant: name one of {', '.join(known)}")
        if assistant not in known:
            raise UnknownName("assistant", assistant, known)
        audience = Audience(public_url=self.public_url)
        whole = native.Whole()
        chat = OpenAIChat(id="", model="", created=0, public_url=self.public_url)
        gathered, sent, text, steps = whole.begin(), chat.begin(), "", 0
        async with (
            caller.admit(),
            self.host.stream(assistant, wanted.question, identity=caller.identity) as events,
        ):
            async for event in events:
                seen = audience.of(event)
                if seen is None:
                    continue
                gathered, _ = whole.step(gathered, seen)
                sent, pieces = chat.step(sent, seen)
                text += _content(pieces)
                if isinstance(seen, SearchStart | SearchComplete):
                    steps += 1
                    await report(steps, None, _step_of(seen))
        answer = native.answer(gathered)
        if answer.error is not None and not text:
            return McpAnswer(text=answer.error.message, failed=True)
        cited = [(_link(one), one.title) for one in answer.citations if _link(one)]
        return McpAnswer(
            text=text,
            structured=answer.model_dump(mode="json"),
            links=list(dict.fromkeys(cited)),
        )

    async def _search(
        self, arguments: Mapping[str, Any], caller: McpCaller, _: Report
    ) -> McpAnswer:
        wanted = _valid(SearchArguments, arguments)
        collections = self._reached(caller)
        found: list[CollectionMatch] = []
        for name in self._collections(caller):
            query = CollectionQuery(collection=name, text=wanted.query, limit=MOST_RESULTS)
            try:
                found += (await collections.find([query]))[0].matches
            except NotPermitted:
                continue  # others may have an answer for this caller
        best = sorted(found, key=lambda match: -match.score)[:MOST_RESULTS]
        answer = Results(results=[self._result(match) for match in best])
        return McpAnswer(text=answer.model_dump_json(), structured=answer.model_dump(mode="json"))

    async def _fetch(self, arguments: Mapping[str, Any], caller: McpCaller, _: Report) -> McpAnswer:
        found = await self._document(_valid(FetchArguments, arguments).id, caller)
        return McpAnswer(text=found.model_dump_json(), structured=found.model_dump(mode="json"))

    # ---- within

    def _assistants(self, caller: McpCaller) -> list[str]:
        if caller.assistant:
            return [caller.assistant]
        return self.host.assistants() if caller.assistants is None else list(caller.assistants)

    def _reached(self, caller: McpCaller) -> Collections:
        return self.host.collections(identity=caller.identity, assistant=caller.assistant or None)

    def _collections(self, caller: McpCaller) -> list[str]:
        """Return the full ids of the collections that are offered, in their order."""
        app = self.host.app
        if not caller.assistant and caller.assistants is None:
            return sorted(app.collections)
        found: set[str] = set()
        for assistant in [caller.assistant] if caller.assistant else caller.assistants or ():
            found |= {id for id in app.collections if app.owner_of(id) == assistant}
            for name in self.host.settings(assistant).kb.collections:
                found.add(app.resolve_collection(assistant, name).id)
        return sorted(found)

    def _result(self, match: CollectionMatch) -> Result:
        return Result(
            id=f"kb:{match.collection}/{match.id}",
            title=match.title or match.id,
            url=self._address(match.url, match.collection, match.id),
        )

    def _address(self, url: str, collection: str, document: str) -> str:
        item = Item(type="kb", url=url, collection=collection, document_id=document)
        found = address(item, self.public_url)
        return found if found == url or self.public_url else ""

    async def _document(self, id: str, caller: McpCaller) -> FetchedDocument:
        """Return a whole document. Raises UnknownName, in the same words for one that does not
        exist and one that the identity may not see."""
        kind, _, rest = id.partition(":")
        collection, _, document = rest.partition("/")
        missing = UnknownName("document", id, [], hint="use an id that search returned")
        if kind != "kb" or collection not in self._collections(caller) or not document:
            raise missing
        collections = self._reached(caller)
        try:
            found = (await collections.get(collection, [document])).get(document)
        except NotPermitted:
            found = None
        if found is None:
            raise missing
        return FetchedDocument(
            id=id,
            title=found.title or document,
            text=found.text,
            url=self._address(found.url, collection, document),
            metadata=dict(found.fields),
        )


def _link(cited: Cited) -> str:
    """Return where a client reads a source: its address, or the resource of a document."""
    if cited.url.startswith(("http://", "https://")):
        return cited.url
    if cited.type != "kb" or not cited.collection or not cited.document_id:
        return ""
    return f"{DOCUMENTS}kb/{cited.collection}/{quote(cited.document_id)}"


def _of_host(tool: ToolInfo, name: str) -> OfferedTool:
    output = tool.output
    if output is not None and output.get("type") != "object":
        output = {"type": "object", "properties": {"result": dict(output)}, "required": ["result"]}
        definitions = output["properties"]["result"].pop("$defs", None)
        if definitions:
            output["$defs"] = definitions
    return OfferedTool(
        name=name,
        description=tool.description,
        parameters=tool.parameters or {"type": "object"},
        output=output,
        reads_only=tool.reads_only,
        destructive=not tool.reads_only,
    )


def _valid(model: type[Model], arguments: Mapping[str, Any]) -> Model:
    return cast(Model, validated(model, arguments))


def _content(pieces: Sequence[fold.Piece]) -> str:
    return "".join(
        choice["delta"].get("content", "")
        for piece in pieces
        if isinstance(piece.data, dict)
        for choice in piece.data.get("choices", ())
    )


def _step_of(event: SearchStart | SearchComplete) -> str:
    if isinstance(event, SearchStart):
        return f"searching: {event.query}"
    return f"found {event.total}"


def _place_of(cursor: str) -> tuple[str, int]:
    """Return the collection and the number of its first document."""
    collection, _, start = cursor.rpartition(" ")
    if cursor and not (start.isascii() and start.isdigit() and len(start) < 5):
        raise UsageError(f"wrong cursor {cursor!r}", hint="use the one of the last page")
    return collection, int(start or 0)
