"""Runs a whole turn for an MCP client. The answer has numbered citations and a link to each source.
A question that can be read in several ways, and calls that the user approves, are asked back where
the client can show a form. Knows no SDK.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import quote

import anyio
import anyio.to_thread

from groundhook.core.audience import for_readers
from groundhook.core.errors import UsageError
from groundhook.core.json_text import NotJson, read_json
from groundhook.core.types.events import (
    ApprovalRequired,
    CitationSeen,
    Cited,
    Event,
    SearchComplete,
    SearchFound,
    SearchStart,
    SourcesGiven,
    Text,
    ToolStart,
)
from groundhook.core.types.search import LongTable
from groundhook.host.app.host import Host
from groundhook.host.output.dialects import fold, literal, native
from groundhook.host.output.dialects.audience import Audience
from groundhook.host.output.dialects.openai_chat import OpenAIChat
from groundhook.host.search.citations import index
from groundhook.host.server.mcp.caller import McpCaller
from groundhook.host.server.mcp.sources import whole_title
from groundhook.host.server.mcp.values import (
    RESOURCES,
    FormAnswer,
    McpAnswer,
    ReportProgress,
    UserForm,
)

ANSWER, ASK = "answer", "ctx.Ask"
AS_ASKED = "as I wrote it"
LONGEST_SHOWN = 2000  # characters of the arguments of a call in a form


@dataclass(kw_only=True)
class AskedTurn:
    """One question of an MCP client to an assistant. `given`: what the user has answered to the
    form of an earlier call; `can_show`: whether the client shows forms."""

    host: Host
    assistant: str
    question: str
    caller: McpCaller
    report: ReportProgress
    public_url: str
    rows_id: Callable[[LongTable, McpCaller], str]
    given: FormAnswer | None = None
    can_show: bool = False
    _steps: int = 0
    _found: dict[str, int] = field(default_factory=dict)  # items, by search
    _writes: bool = False
    _tables: tuple[LongTable, ...] = ()
    _cited: dict[int, tuple[str, str]] = field(default_factory=dict)

    async def answer(self) -> McpAnswer:
        """Run the turn and return its answer, or a form for the user; report its steps while it
        runs. Raises HostError for a turn that cannot begin."""
        # Without an address of the server, a path below it would lead a client nowhere.
        url = self.public_url
        reduced = Audience(public_url=url).of if url else for_readers
        whole, chat = native.Whole(), OpenAIChat(id="", model="", created=0, public_url=url)
        gathered, sent, text = whole.begin(), chat.begin(), ""
        async with self.caller.admit(), await self._turn() as events:
            async for event in events:
                seen = reduced(event)
                if seen is None:
                    continue
                if isinstance(seen, SearchComplete):
                    self._tables += seen.tables
                    if form := self._readings(seen):
                        return McpAnswer(text=form.message, form=form)
                gathered, _ = whole.step(gathered, seen)
                sent, pieces = chat.step(sent, seen)
                text += _content(pieces)
                if isinstance(seen, CitationSeen) and seen.item is not None:
                    _, number = sent.numbers.with_item(seen.item)
                    link = _link(index.cited(seen.marker, seen.verdict, seen.item))
                    self._cited.setdefault(number, (link, f"[{number}] {seen.item.title or link}"))
                await self._report(seen)
        answer = native.answer(gathered)
        if answer.pending:
            form = _approval(answer.pending, answer.chat_id, answer.message_id)
            return McpAnswer(text=text or form.message, form=form)
        if answer.error is not None and not text:
            return McpAnswer(text=answer.error.message, failed=True)
        # Offsets stay: the brackets of a number are replaced, as in the text.
        content = literal.without_numbers(answer.content)
        return McpAnswer(
            text=text,
            structured=answer.model_copy(update={"content": content}).model_dump(mode="json"),
            links=[*((link, name) for link, name in self._cited.values() if link), *self._whole()],
        )

    async def _turn(self) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """Return the turn: the decision of the user about calls, or the question."""
        place = _place(self.given)
        if self.given is not None and place:
            said = self.given.values.get(ANSWER)
            answer = said if isinstance(said, str) else ""
            approved = bool(answer) or self.given.values.get("approve") is True
            return self._decide(approved, answer, *place)
        chosen = self.given.values.get("reading") if self.given else None
        question = chosen if isinstance(chosen, str) and chosen != AS_ASKED else self.question
        if self.can_show and await self._has_approvals():
            return self._kept(question)
        return self.host.stream(self.assistant, question, identity=self.caller.identity)

    async def _has_approvals(self) -> bool:
        """Return whether a tool of the assistant is marked, or its hook asks the user, so that a
        turn may have to wait in a chat."""
        hook = self.host.app.package(self.assistant).hook
        if hook is not None and await anyio.to_thread.run_sync(hook.mentions, ASK):
            return True
        if self.host.settings(self.assistant).options.confirm:
            return True
        identity = self.caller.identity
        tools = await self.host.tools(identity=identity, assistant=self.assistant)
        return any(tool.confirm for tool in tools)

    @asynccontextmanager
    async def _kept(self, question: str) -> AsyncIterator[AsyncIterator[Event]]:
        identity = self.caller.identity
        async with (
            self.host.chat(self.assistant, identity=identity) as chat,
            chat.send(question) as events,
        ):
            yield events

    @asynccontextmanager
    async def _decide(
        self, approved: bool, reason: str, chat_id: str, message_id: str
    ) -> AsyncIterator[AsyncIterator[Event]]:
        identity = self.caller.identity
        async with (
            self.host.chat(self.assistant, identity=identity, chat_id=chat_id) as chat,
            chat.decide(approved, message=message_id, reason=reason) as events,
        ):
            yield events

    def _readings(self, event: SearchComplete) -> UserForm | None:
        """Return the form that asks which reading of the question is meant; its turn is left then.
        None where it was asked, or there is one reading."""
        if not self.can_show or self.given is not None or not event.readings:
            return None
        options = [AS_ASKED, *(each.read_as for each in event.readings)]
        return UserForm(
            message=f"{self.question!r} can be read in several ways. Which one is meant?",
            properties={"reading": {"type": "string", "title": "Reading", "enum": options}},
        )

    async def _report(self, event: Event) -> None:
        words = self._words(event)
        if words:
            self._steps += 1
            await self.report(self._steps, None, words)

    def _whole(self) -> Iterator[tuple[str, str]]:
        """Yield the links to all rows of the tables of which the answer shows a part."""
        for table in dict.fromkeys(self._tables):
            if id := self.rows_id(table, self.caller):
                kind, _, rest = id.partition(":")
                yield f"{RESOURCES}{kind}/{quote(rest)}", whole_title(table)

    def _words(self, event: Event) -> str:
        """Return the words for a step, or ""."""
        match event:
            case SearchStart():
                return f"searching: {event.query}"
            case SearchFound():
                self._found[event.search_id] = self._found.get(event.search_id, 0) + 1
            case SearchComplete():
                failed = "the search failed"
                return failed if event.error else f"found {self._found.get(event.search_id, 0)}"
            case SourcesGiven():
                return event.words
            case ToolStart():
                return f"calling {event.name}"
            case Text() if not self._writes:
                self._writes = True
                return "writing the answer"
            case _:
                pass
        return ""


def _place(given: FormAnswer | None) -> tuple[str, str] | None:
    """Return the chat and the answer of a form about calls; None for another form. Raises
    UsageError for a state that is none of ours."""
    if given is None or not given.state:
        return None
    try:
        state = read_json(given.state)
    except NotJson:
        state = None
    ids = [state.get("chat"), state.get("message")] if isinstance(state, Mapping) else []
    if not ids or not all(isinstance(id, str) for id in ids):
        raise UsageError("the state of the request is not one that this server has sent")
    chat, message = ids
    return str(chat), str(message)


def _approval(pending: Sequence[ApprovalRequired], chat: str, message: str) -> UserForm:
    state = json.dumps({"chat": chat, "message": message})
    if asked := next((each for each in pending if each.question), None):
        kind = {"enum": list(asked.choices)} if asked.choices else {"minLength": 1}
        return UserForm(
            message=asked.question,
            properties={ANSWER: {"type": "string", "title": "Answer", **kind}},
            state=state,
        )
    calls = "\n".join(
        f"{each.name} {json.dumps(each.arguments, ensure_ascii=False)[:LONGEST_SHOWN]}"
        for each in pending
    )
    return UserForm(
        message=f"The assistant wants to run:\n{calls}",
        properties={"approve": {"type": "boolean", "title": "Run it"}},
        state=state,
    )


def _content(pieces: Sequence[fold.ClientMessage]) -> str:
    return "".join(
        choice["delta"].get("content", "")
        for piece in pieces
        if isinstance(piece.data, dict)
        for choice in piece.data.get("choices", ())
    )


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
