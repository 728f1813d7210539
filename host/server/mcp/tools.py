"""The tools that an MCP client may call: those of an assistant or of the app, `ask` (a whole turn),
and, for chat clients that connect sources, `search` and `fetch`. Knows no SDK. Every call has the
identity of its caller.

Runs a whole turn for an MCP client. The answer has numbered citations and a link to each source.
Knows no SDK.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast
from urllib.parse import quote

import anyio
from pydantic import BaseModel

from groundhook.core.audience import NOT_PERMITTED, TOOL_FAILED, for_readers
from groundhook.core.errors import HostError, NotPermitted, UnknownName, UsageError
from groundhook.core.exception_groups import unwrap_exception_groups
from groundhook.core.types.events import (
    CitationSeen,
    Cited,
    Event,
    SearchComplete,
    SearchFound,
    SearchStart,
    ToolProgress,
)
from groundhook.core.types.tools import ABOUT_THE_REQUEST, ToolInfo, ToolOutcome
from groundhook.host.app.host import Host
from groundhook.host.app.requests import validated
from groundhook.host.output.dialects import fold, native
from groundhook.host.output.dialects.audience import Audience
from groundhook.host.output.dialects.openai_chat import OpenAIChat
from groundhook.host.search.citations import index
from groundhook.host.server.mcp.caller import McpCaller
from groundhook.host.server.mcp.sources import McpSources, Unavailable
from groundhook.host.server.mcp.values import (
    RESOURCES,
    AskArguments,
    BatchArguments,
    FetchArguments,
    Fetched,
    FetchedDocument,
    McpAnswer,
    OfferedTool,
    PassageArguments,
    Passages,
    ReportProgress,
    Results,
    SearchArguments,
)
from groundhook.host.server.problems import Refused
from groundhook.host.tools.toolkits import qualified


async def ask(
    host: Host,
    assistant: str,
    question: str,
    caller: McpCaller,
    report: ReportProgress,
    public_url: str,
) -> McpAnswer:
    """Run a turn and return its answer; report its searches while they run. Raises HostError for a
    turn that cannot begin."""
    # Without an address of the server, a path below it would lead a client nowhere.
    reduced = Audience(public_url=public_url).of if public_url else for_readers
    whole = native.Whole()
    chat = OpenAIChat(id="", model="", created=0, public_url=public_url)
    gathered, sent, text, steps = whole.begin(), chat.begin(), "", 0
    found = 0
    cited: dict[int, tuple[str, str]] = {}
    async with (
        caller.admit(),
        host.stream(assistant, question, identity=caller.identity) as events,
    ):
        async for event in events:
            seen = reduced(event)
            if seen is None:
                continue
            gathered, _ = whole.step(gathered, seen)
            sent, pieces = chat.step(sent, seen)
            text += _content(pieces)
            if isinstance(seen, CitationSeen) and seen.item is not None:
                _, number = sent.numbers.with_item(seen.item)
                link = _link(index.cited(seen.marker, seen.verdict, seen.item))
                cited.setdefault(number, (link, f"[{number}] {seen.item.title or link}"))
            found += isinstance(seen, SearchFound)
            if isinstance(seen, SearchStart | SearchComplete):
                steps += 1
                await report(steps, None, _step_of(seen, found))
    answer = native.answer(gathered)
    if answer.error is not None and not text:
        return McpAnswer(text=answer.error.message, failed=True)
    return McpAnswer(
        text=text,
        structured=answer.model_dump(mode="json"),
        links=[(link, name) for link, name in cited.values() if link],
    )


def _content(pieces: Sequence[fold.ClientMessage]) -> str:
    return "".join(
        choice["delta"].get("content", "")
        for piece in pieces
        if isinstance(piece.data, dict)
        for choice in piece.data.get("choices", ())
    )


def _step_of(event: SearchStart | SearchComplete, found: int) -> str:
    """Return the words for a step; `found` items have been found so far."""
    if isinstance(event, SearchStart):
        return f"searching: {event.query}"
    return "the search failed" if event.error else f"{found} sources found so far"


def _link(cited: Cited) -> str:
    """Return where a client can read a source: its address, or the resource of a document or
    record."""
    if cited.url.startswith(("http://", "https://")):
        return cited.url
    if cited.type == "db" and cited.model and cited.record_id is not None:
        return f"{RESOURCES}db/{cited.model}/{quote(str(cited.record_id))}"
    if cited.type != "kb" or not cited.collection or not cited.document_id:
        return ""
    return f"{RESOURCES}kb/{cited.collection}/{quote(cited.document_id)}"


LONGEST_ABOUT = 200  # characters of the description of an assistant
LONGEST_LIST = 8000
_UNREPORTED = 64  # events of progress that wait for a slow client
_OPTIONAL = ("batch_fetch", "search_documents")  # the app's own tools of these names replace them

DESCRIPTIONS = {
    "search": "Search documents, records and the web, as the assistants here do. Returns ids,"
    " titles and addresses for fetch.",
    "fetch": "Read a document, record or page whole, by an id that search returned.",
    "batch_fetch": "Read several documents, records or pages whole, by ids that search returned.",
    "search_documents": "Search the collections of documents. Returns the best passage of each"
    " document with its score.",
}

_Model = TypeVar("_Model", bound=BaseModel)


@dataclass(frozen=True, kw_only=True)
class McpTools:
    """The tools of one server. `connector` adds the tools for its sources that chat clients expect
    of a connector: `search` and `fetch` always, the others unless the app has tools of their
    names."""

    host: Host
    sources: McpSources
    connector: bool = False
    _own: Mapping[str, Callable[..., Awaitable[McpAnswer]]] = field(init=False)

    def __post_init__(self) -> None:
        own: dict[str, Callable[..., Awaitable[McpAnswer]]] = {"ask": self._ask}
        if self.connector:
            own |= {"search": self._search, "fetch": self._fetch}
            own |= {"batch_fetch": self._batch_fetch, "search_documents": self._passages}
        object.__setattr__(self, "_own", own)

    async def offered(self, caller: McpCaller) -> list[OfferedTool]:
        """Return the tools that the caller may use."""
        listed = [(tool, self._name(tool)) for tool in await self._listed(caller)]
        taken = {name for _, name in listed}
        return [
            *(tool for tool in self._own_tools(caller) if tool.name not in taken),
            *(_of_host(tool, name) for tool, name in listed),
        ]

    async def call(
        self, name: str, arguments: Mapping[str, Any], caller: McpCaller, report: ReportProgress
    ) -> McpAnswer:
        """Call a tool. Every failure is an answer that describes it."""
        try:
            if name in self._own and not await self._is_replaced(name, caller):
                return await self._own[name](arguments, caller, report)
            return await self._call_host(name, arguments, caller, report)
        except NotPermitted:
            return McpAnswer(text=NOT_PERMITTED, failed=True)
        except (UsageError, Refused, Unavailable) as exc:
            return McpAnswer(
                text=f"{exc.message} ({exc.hint})" if exc.hint else exc.message, failed=True
            )
        except HostError as exc:
            return McpAnswer(text=f"the call failed ({exc.code})", failed=True)

    async def read(self, id: str, caller: McpCaller) -> str:
        """Return the text of a source. Raises the errors of `McpSources.fetch`."""
        return (await self.sources.fetch(id, caller)).text

    # ---- the tools of the app

    async def _listed(self, caller: McpCaller) -> list[ToolInfo]:
        if not caller.assistant and not caller.reaches_all:
            return []
        found = await self.host.tools(identity=caller.identity, assistant=caller.assistant or None)
        return [tool for tool in found if self._name(tool) not in self._reserved]

    @property
    def _reserved(self) -> set[str]:
        """Return the names that no tool of the app can have."""
        return set(self._own) - set(_OPTIONAL)

    async def _is_replaced(self, name: str, caller: McpCaller) -> bool:
        """Return whether a tool of the app replaces the server's tool of this name."""
        if name not in _OPTIONAL:
            return False
        return any(tool.name == name for tool in await self._listed(caller))

    def _name(self, tool: ToolInfo) -> str:
        """Return the name under which a tool is listed: its own, or with that of its toolkit if a
        tool of the server has the same name."""
        if tool.name in self._reserved and tool.toolkit:
            return qualified(tool.toolkit, tool.name)
        return tool.name

    async def _call_host(
        self, name: str, arguments: Mapping[str, Any], caller: McpCaller, report: ReportProgress
    ) -> McpAnswer:
        if not caller.assistant and not caller.reaches_all:
            raise UnknownName("tool", name, [tool.name for tool in self._own_tools(caller)])
        await caller.count_call()
        outcome = await self._outcome(name, arguments, caller, report)
        if outcome.error is not None:
            if outcome.code == "unknown_tool":
                await self._require_offered(name, caller)
            shown = (
                outcome.error
                if caller.assistants is None or outcome.code in ABOUT_THE_REQUEST
                else TOOL_FAILED
            )
            return McpAnswer(text=shown, failed=True)
        value = outcome.result
        structured = value if isinstance(value, dict) else {"result": value}
        return McpAnswer(text=outcome.text or json.dumps(value), structured=structured)

    async def _require_offered(self, name: str, caller: McpCaller) -> None:
        """Raise UnknownName for a tool that is not offered, with the names of those that are."""
        names = [tool.name for tool in await self.offered(caller)]
        if name not in names:
            raise UnknownName("tool", name, names)

    async def _outcome(
        self, name: str, arguments: Mapping[str, Any], caller: McpCaller, report: ReportProgress
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
        with unwrap_exception_groups():
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
        question = AskArguments.model_json_schema()
        known = caller.assistants_of(self.host)
        question["properties"]["assistant"]["description"] += self._described(known)
        if caller.assistant:
            question["properties"].pop("assistant")
        elif len(known) == 1:
            question["properties"]["assistant"] |= {"enum": known, "default": known[0]}
        else:
            question["properties"]["assistant"]["enum"] = known
            question["properties"]["assistant"].pop("default", None)
            question["required"] = ["question", "assistant"]
        tools = [
            OfferedTool(
                name="ask",
                description="Ask an assistant. The answer cites its sources by number.",
                parameters=question,
                output=None,
                reads_only=False,
                open_world=True,
            )
        ]
        if self.connector:
            tools += self._source_tools(caller)
        return tools

    def _described(self, assistants: Sequence[str]) -> str:
        """Return what the assistants are for, a line for each."""
        lines: list[str] = []
        for id in assistants:
            with suppress(HostError):  # its files are invalid: a call reports it
                package = self.host.app.package(id)
                about = " ".join(f"{package.name}. {package.description}".split())
                lines.append(f"\n- {id}: {about[:LONGEST_ABOUT]}")
        return "".join(lines)[:LONGEST_LIST]

    def _source_tools(self, caller: McpCaller) -> list[OfferedTool]:
        web = self.sources.searches_web(caller)
        tools = (
            ("search", SearchArguments, Results, web),
            ("fetch", FetchArguments, FetchedDocument, web),
            ("batch_fetch", BatchArguments, Fetched, web),
            ("search_documents", PassageArguments, Passages, False),
        )
        return [
            OfferedTool(
                name=name,
                description=DESCRIPTIONS[name],
                parameters=arguments.model_json_schema(),
                output=answer.model_json_schema(),
                reads_only=True,
                open_world=open_world,
            )
            for name, arguments, answer, open_world in tools
        ]

    async def _ask(
        self, arguments: Mapping[str, Any], caller: McpCaller, report: ReportProgress
    ) -> McpAnswer:
        wanted = _valid(AskArguments, arguments)
        known = caller.assistants_of(self.host)
        assistant = wanted.assistant or (known[0] if len(known) == 1 else "")
        if not assistant:
            raise UsageError(f"assistant: name one of {', '.join(known)}")
        if assistant not in known:
            raise UnknownName("assistant", assistant, known)
        return await ask(
            self.host, assistant, wanted.question, caller, report, self.sources.public_url
        )

    async def _search(
        self, arguments: Mapping[str, Any], caller: McpCaller, _: ReportProgress
    ) -> McpAnswer:
        wanted = _valid(SearchArguments, arguments)
        found, failed = await self.sources.search(wanted.query, caller)
        return _answer(Results(results=found), failed)

    async def _passages(
        self, arguments: Mapping[str, Any], caller: McpCaller, _: ReportProgress
    ) -> McpAnswer:
        wanted = _valid(PassageArguments, arguments)
        found, failed = await self.sources.passages(
            wanted.query,
            caller,
            collections=wanted.collections,
            filter=wanted.filter,
            limit=wanted.limit,
        )
        return _answer(Passages(items=found), failed)

    async def _fetch(
        self, arguments: Mapping[str, Any], caller: McpCaller, _: ReportProgress
    ) -> McpAnswer:
        return _answer(await self.sources.fetch(_valid(FetchArguments, arguments).id, caller))

    async def _batch_fetch(
        self, arguments: Mapping[str, Any], caller: McpCaller, _: ReportProgress
    ) -> McpAnswer:
        wanted = _valid(BatchArguments, arguments)
        found, missing, failed = await self.sources.fetch_all(wanted.ids, caller)
        return _answer(Fetched(results=found, missing=missing), failed)


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


def _answer(value: BaseModel, failed: Sequence[str] = ()) -> McpAnswer:
    return McpAnswer(
        text=value.model_dump_json(),
        structured=value.model_dump(mode="json"),
        warnings=[f"{each}; its results are missing" for each in failed],
    )


def _valid(model: type[_Model], arguments: Mapping[str, Any]) -> _Model:
    return cast(_Model, validated(model, arguments))
