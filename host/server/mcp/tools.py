"""The tools that an MCP client may call: those of an assistant or of the app, `ask` (a whole turn),
and, for chat clients that connect sources, `search` and `fetch`. Knows no SDK. Every call has the
identity of its caller.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import anyio
from pydantic import BaseModel

from groundhook.core.audience import NOT_PERMITTED, TOOL_FAILED
from groundhook.core.errors import HostError, NotPermitted, UnknownName, UsageError
from groundhook.core.exception_groups import unwrap_exception_groups
from groundhook.core.types.events import (
    Event,
    ToolProgress,
)
from groundhook.core.types.tools import ABOUT_THE_REQUEST, ToolInfo, ToolOutcome
from groundhook.host.app.host import Host
from groundhook.host.app.requests import validated
from groundhook.host.server.mcp.asking import AskedTurn
from groundhook.host.server.mcp.caller import McpCaller
from groundhook.host.server.mcp.sources import McpSources, Unavailable
from groundhook.host.server.mcp.values import (
    AskArguments,
    BatchArguments,
    FetchArguments,
    Fetched,
    FetchedDocument,
    FormAnswer,
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

ASKING = (
    "`ask` puts a question to an assistant, which searches the sources here and answers. [1], [2] …"
    " in its text are citations that were checked; the links behind it are those sources, with the"
    " same numbers. In `structuredContent` the markers in `citations` are, and numbers are not."
    " Repeat a claim with its source, by title and address. When `grounded` is"
    " not true the answer cites no source: say so."
)
READING = (
    "`search` finds documents, records and pages, and `fetch` reads one of them whole, by its id."
    " `search_documents` finds passages. Cite what you have read, by its title and `url`."
)

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

    def instructions(self, caller: McpCaller) -> str:
        """Return what the server holds for the caller, and how a model asks and cites."""
        lines = [ASKING, *([READING] if self.connector else [])]
        if assistants := self._described(caller.assistants_of(self.host)):
            lines.append(f"The assistants:{assistants}")
        if self.connector and (collections := caller.collections(self.host)):
            lines.append(f"The collections: {', '.join(collections)}"[:LONGEST_LIST])
        return "\n\n".join(lines)

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        caller: McpCaller,
        report: ReportProgress,
        *,
        given: FormAnswer | None = None,
        can_show: bool = False,
    ) -> McpAnswer:
        """Call a tool. Every failure is an answer that describes it. `given` is the user's answer
        to the form that an earlier call returned, `can_show` whether the client shows forms."""
        try:
            if name == "ask":
                return await self._ask(arguments, caller, report, given, can_show=can_show)
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
        self,
        arguments: Mapping[str, Any],
        caller: McpCaller,
        report: ReportProgress,
        given: FormAnswer | None = None,
        *,
        can_show: bool = False,
    ) -> McpAnswer:
        wanted = _valid(AskArguments, arguments)
        known = caller.assistants_of(self.host)
        assistant = wanted.assistant or (known[0] if len(known) == 1 else "")
        if not assistant:
            raise UsageError(f"assistant: name one of {', '.join(known)}")
        if assistant not in known:
            raise UnknownName("assistant", assistant, known)
        asked = AskedTurn(
            host=self.host,
            assistant=assistant,
            question=wanted.question,
            caller=caller,
            report=report,
            public_url=self.sources.public_url,
            rows_id=self.sources.rows_id,
            given=given,
            can_show=can_show,
        )
        return await asked.answer()

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
