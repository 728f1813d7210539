"""A conversation on the command line: reads questions, and shows answers as they arrive.

`groundhook chat` and `groundhook dev` share it. Lines such as `/new` are commands, typed or piped.
If a person types, Ctrl-C stops the running answer, and an unknown command is not sent as a
question.
"""

from __future__ import annotations

import difflib
import signal
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.abc
from rich.padding import Padding
from rich.text import Text

from groundhook.core.error_events import error_events
from groundhook.core.errors import HostError
from groundhook.core.exception_groups import unwrap_exception_groups
from groundhook.core.types.chats import KeptCitation
from groundhook.core.types.events import (
    ApprovalRequired,
    Event,
    Failed,
    SearchComplete,
    Trace,
    TraceNode,
    Warned,
)
from groundhook.core.types.search import OtherReading
from groundhook.host.app.host import Host
from groundhook.host.cli.options import with_files
from groundhook.host.cli.prompt import Lines
from groundhook.host.cli.report import Report
from groundhook.host.cli.view import View
from groundhook.host.output.dialects.kept import events_of, kept
from groundhook.host.output.flow import one_line

if TYPE_CHECKING:
    from groundhook.host.app.open_chat import OpenChat

DECISIONS = {"/approve": True, "/refuse": False}
COMMANDS = {
    "/approve": "run the call that waits for you",
    "/refuse": "do not run it; words behind it tell the model why",
    "/new": "begin a new conversation",
    "/sources": "show what the last answer cites, with the passages",
    "/trace": "show the steps of the last answer and their times",
    "/help": "show these commands",
    "/quit": "end the conversation (also Ctrl-D)",
}
STOPPED = "(stopped)"
NO_ANSWER = "There is no answer yet."


class TerminalConversation:
    """A conversation with one assistant. `failed`: a turn of it has failed."""

    def __init__(
        self,
        host: Host,
        assistant: str,
        lines: Lines,
        report: Report,
        *,
        asking: Mapping[str, Any],
        overrides: Mapping[str, Any] | None = None,
        attach: Sequence[Path] = (),
        trace: bool = False,
    ) -> None:
        self.failed = False
        self._host, self._assistant = host, assistant
        self._lines, self._report = lines, report
        self._identity = asking["identity"]
        self._chat_id: str | None = asking["options"].get("chat_id")
        options = {name: value for name, value in asking["options"].items() if name != "chat_id"}
        self._sending = {**(overrides or {}), "options": options}
        self._attach = attach  # files of the first question
        self._trace = trace
        self._last: Sequence[Event] = ()
        self._readings: Sequence[OtherReading] = ()  # of the last question, to choose from
        self._turn: tuple[anyio.CancelScope, OpenChat] | None = None  # under way

    async def run(self, *, create: bool = False) -> None:
        """Send every line as a question until the lines end. `create`: begin the named chat if it
        does not exist; otherwise raises UnknownName."""
        if not self._lines.typed:  # Ctrl-C then ends the command, as in any pipeline
            await self._converse(create=create)
            return
        with unwrap_exception_groups():
            async with anyio.create_task_group() as tasks:
                await tasks.start(self._stop_on_interrupts)
                await self._converse(create=create)
                tasks.cancel_scope.cancel()

    async def _converse(self, *, create: bool) -> None:
        chat = await self._open_chat(self._chat_id, create=create)
        typed = self._lines.typed
        if typed:
            await self._greet(chat)
        async for line in self._lines:
            text = line.strip()
            if text == "/quit":
                break
            if text == "/new":
                chat = await self._open_chat(None)
                self._last, self._readings = (), ()
                if typed:
                    self._report.show(Text("A new conversation begins.", "dim"))
            elif text.partition(" ")[0] in DECISIONS:
                await self._decide(chat, text)
            # In a pipe an unknown word after a slash is a question: paths begin with one.
            elif text in COMMANDS or (typed and text.startswith("/") and text[1:].isalpha()):
                self._run_command(text)
            elif text:
                await self._answer(chat, self._chosen(text))
                if typed:
                    self._report.show("")
        if typed and chat.is_kept:
            hint = f"groundhook chat {self._assistant} --chat {chat.id}"
            self._report.show(Text(f"Continue it with: {hint}", "dim"))

    async def _open_chat(self, id: str | None, *, create: bool = False) -> OpenChat:
        async with self._host.chat(
            self._assistant, identity=self._identity, chat_id=id, create=create
        ) as chat:
            return chat

    async def _greet(self, chat: OpenChat) -> None:
        name = self._host.app.package(self._assistant).name or self._assistant
        self._report.show(
            Text.assemble((name, "bold"), (" · /help shows the commands, Ctrl-D ends", "dim"))
        )
        messages = await chat.messages()
        shown = messages[-2:]  # the last question and its answer
        if len(messages) > len(shown):
            self._report.show(Text(f"({len(messages) - len(shown)} earlier messages)", "dim"))
        for message in shown:
            if message.answer is None:
                self._report.show(Text(f"› {message.text}", "bold"))
                continue
            # Kept as the last answer, so that /sources works before the first new question.
            self._last = list(events_of(message.answer))
            self._show(self._last)

    # ---- a turn

    async def _decide(self, chat: OpenChat, text: str) -> None:
        word, _, reason = text.partition(" ")
        options = self._sending.get("options")
        await self._run_turn(
            chat, chat.decide(DECISIONS[word], reason=reason.strip(), options=options)
        )

    @property
    def _asked(self) -> ApprovalRequired | None:
        """The question of a hook that the last turn ended with."""
        waiting = (event for event in self._last if isinstance(event, ApprovalRequired))
        return next((event for event in waiting if event.question), None)

    async def _reply(self, chat: OpenChat, text: str, asked: ApprovalRequired) -> None:
        """Answer a question of a hook with words, or the number of a choice."""
        if text.isdecimal() and text not in asked.choices and len(text) < 3:
            text = dict(enumerate(asked.choices, 1)).get(int(text), text)
        options, last = self._sending.get("options"), self._last
        await self._run_turn(chat, chat.decide(True, reason=text, options=options))
        if not self._last:  # the answer was none of the choices, so the question still waits
            self._last = last

    async def _answer(self, chat: OpenChat, text: str) -> None:
        if self._asked is not None:
            await self._reply(chat, text, self._asked)
            return
        attach, self._attach = self._attach, ()
        await self._run_turn(chat, chat.send(with_files(text, attach), **self._sending))

    def _chosen(self, text: str) -> str:
        """Return the reading that a number chooses, else the text."""
        if text.isdecimal() and 1 <= int(text[:9]) <= len(self._readings):
            return self._readings[int(text) - 1].read_as
        return text

    def _offer_readings(self) -> None:
        """Show the readings of the last question with their numbers."""
        ends = [each for each in self._last if isinstance(each, SearchComplete)]
        self._readings = [reading for each in ends for reading in each.readings]
        if self._report.json:
            return
        for number, each in enumerate(self._readings, 1):
            count = "" if each.total is None else f" ({each.total})"
            shown = Text.assemble((f"  {number}  ", "cyan"), f"{one_line(each.read_as)}{count}")
            self._report.show(shown)
        if self._readings:
            self._report.show(Text("a number chooses how the question is meant", "dim"))

    async def _run_turn(self, chat: OpenChat, turn: AbstractAsyncContextManager[Any]) -> None:
        events: list[Event] = []
        try:
            with anyio.CancelScope() as scope:
                self._turn = scope, chat
                await self._stream(turn, events)
            if scope.cancelled_caught:
                self._report.show(Text(STOPPED, "dim"))
        except HostError as exc:  # the conversation continues: the next question may work
            self.failed = True
            for event in error_events(exc):
                self._report.failed(event)
        finally:
            self._turn = None
        self._last = events
        self._offer_readings()
        if self._asked is not None:
            self._report.show(Text("type the answer; /refuse gives none", "dim"))
        elif any(event.type == "approval_required" for event in events):
            hint = "/approve runs it, /refuse does not; anything else goes on without it"
            self._report.show(Text(hint, "dim"))

    async def _stop_on_interrupts(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Stop the turn on Ctrl-C and keep its text so far. Of a turn that has not begun nothing is
        kept; without a turn, Ctrl-C does nothing."""
        with anyio.open_signal_receiver(signal.SIGINT) as signals:
            task_status.started()
            async for _ in signals:
                if self._turn is not None:
                    scope, chat = self._turn
                    # `stop` keeps the text so far; it cannot stop a turn that has not begun.
                    if not chat.stop():
                        scope.cancel()

    async def _stream(self, turn: AbstractAsyncContextManager[Any], events: list[Event]) -> None:
        with View(self._report, trace=self._trace) as view:
            async with turn as arriving, view.telling_of_waits():
                async for event in arriving:
                    events.append(event)
                    # The user stopped it: a remark, not an error.
                    if isinstance(event, Failed) and event.code == "stopped":
                        view.note(STOPPED)
                        continue
                    self.failed = self.failed or event.type == "error"
                    view.show(event)

    def _show(self, events: Sequence[Event]) -> None:
        with View(self._report, trace=False) as view:
            for event in events:
                view.show(event)
        self._report.show("")

    # ---- commands

    def _run_command(self, word: str) -> None:
        if self._report.json:
            message = f"{word} shows nothing with --json: the events have what it would show"
            self._report.warned(Warned(code="usage", message=message))
            return
        match word:
            case "/help":
                for name, about in COMMANDS.items():
                    self._report.show(Text.assemble((f"{name:10}", "cyan"), about))
            case "/sources":
                self._show_sources()
            case "/trace":
                self._show_trace()
            case _:
                near = difflib.get_close_matches(word, COMMANDS, n=1)
                hint = f"did you mean {near[0]}?" if near else "/help shows the commands"
                self._report.show(Text(f"There is no command {word}: {hint}", "yellow"))

    def _show_sources(self) -> None:
        cited = [each for each in kept(self._last).citations if each.item is not None]
        if not cited:
            none = "The last answer cites nothing." if self._last else NO_ANSWER
            self._report.show(Text(none, "dim"))
        for citation in cited:
            self._show_source(citation)

    def _show_source(self, citation: KeptCitation) -> None:
        # Imported here because JSON lines need no terminal.
        from groundhook.host.output.flow import visible
        from groundhook.host.output.single_lines import marker_style, place_of, title_of

        item = citation.item
        assert item is not None
        marker = (visible(citation.marker), marker_style(citation.verdict, item.url))
        self._report.show(Text.assemble(marker, "  ", (title_of(item), "bold")))
        self._report.show(Padding(Text(place_of(item), "dim"), (0, 0, 0, 2), expand=False))
        self._report.show(Padding(Text(visible(item.content)), (0, 0, 1, 2), expand=False))

    def _show_trace(self) -> None:
        from groundhook.host.output.tree import trace_tree

        nodes: dict[str, TraceNode] = {}
        for event in self._last:
            if isinstance(event, Trace):
                nodes[event.node.id] = event.node
        if nodes:
            self._report.show(trace_tree(nodes.values()))
        else:
            none = "There is no trace of the last answer." if self._last else NO_ANSWER
            self._report.show(Text(none, "dim"))
