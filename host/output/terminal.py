"""Shows a turn's events in a terminal: the searches, the streamed answer, the sources it cites.

A fold over events that writes to two consoles, the second for warnings and errors. It never
influences the turn. On a pipe or a dumb terminal there are no control codes and no cut lines. Text
of models, hooks and documents always passes through `visible`.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator
from typing import IO, Any, Literal, assert_never, get_args

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.style import Style
from rich.text import Text as Styled

from groundhook.core.audience import CALL_REFUSED
from groundhook.core.hook_messages import Messages, added_text, step
from groundhook.core.types.events import (
    STOPPED,
    ApprovalRequired,
    CitationSeen,
    Cited,
    DocumentsSearchCompleted,
    DocumentsSearchStarted,
    Event,
    Failed,
    HookMessage,
    Reasoning,
    SearchComplete,
    SearchFound,
    SearchStart,
    SourcesGiven,
    StreamEnd,
    StreamStart,
    Text,
    ToolProgress,
    ToolResult,
    ToolStart,
    Trace,
    TraceNode,
    Verdict,
    Warned,
)
from groundhook.core.types.search import Item, SourceType
from groundhook.host.output.flow import Flow, Isolates, one_line, shortened, visible
from groundhook.host.output.single_lines import (
    SOURCES,
    marker_style,
    place_of,
    problem_line,
    safe_link,
    title_of,
)
from groundhook.host.output.tree import duration, trace_tree

Section = Literal["progress", "answer", "message", "sources", "trace"]

SHOWN_RESULTS = 5
SHOWN_QUERY, SHOWN_ARGUMENTS = 200, 100  # characters of a question, and of a tool call's arguments
UNCUT = 10_000  # width of a console that is not a terminal

SYMBOLS = {
    "search": "🔍",
    "found": "📄",
    "done": "✅",
    "failed": "⚠",
    "stopped": "⏹",
    "tool": "🔧",
    "choice": "▸",
}
PLAIN_SYMBOLS = {
    "search": ">",
    "found": "-",
    "done": "ok:",
    "failed": "!",
    "stopped": "-",
    "tool": "*",
    "choice": "-",
}


class _Console(Console):
    """A console that raises at the end of a pipe instead of ending the process."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console(file: IO[str]) -> Console:
    """Return a console that does not interpret markup, and does not cut lines unless it is a
    terminal. Writing raises BrokenPipeError when the reader has closed the pipe."""
    made = _Console(file=file, markup=False, emoji=False, highlight=False)
    if not made.is_terminal:
        made.width = UNCUT
    return made


class Terminal:
    """Shows one turn. `trace` adds the tree of its steps, with its warnings, at the end."""

    def __init__(self, out: Console, err: Console, *, trace: bool = False) -> None:
        self._out = out
        self._err = err
        self._trace = trace
        self._flow = Flow(out.width if out.is_terminal else 0, cell_len)
        self._isolates = Isolates()  # applied before the flow
        self._symbols = SYMBOLS if out.encoding.startswith("utf") else PLAIN_SYMBOLS
        self._section: Section | None = None
        self._written = False
        self._wants_gap = False
        self._found: dict[str, list[Item]] = {}
        self._types: dict[str, SourceType] = {}
        self._announced: deque[CitationSeen] = deque()
        self._held = ""  # end of the answer that may be the beginning of an announced marker
        self._messages: Messages = {}
        self._open_message = ""  # id of the message whose line is not ended
        self._nodes: dict[str, TraceNode] = {}
        self._warnings: list[Styled] = []
        self._warned: set[str] = set()

    def show(self, event: Event) -> None:  # noqa: C901 - one case for each event
        """Write one event."""
        match event:
            case (
                StreamStart()
                | Reasoning()  # only the answer is shown
                | DocumentsSearchStarted()  # tool_start and tool_result show the same
                | DocumentsSearchCompleted()
            ):
                pass
            case SearchStart():
                self._types[event.search_id] = event.search_type
                self._show_progress(
                    "search",
                    f'Searching "{shortened(one_line(event.query), SHOWN_QUERY)}"'
                    f" ({SOURCES[event.search_type]})...",
                )
            case SearchFound():
                self._found.setdefault(event.search_id, []).append(event.item)
            case SearchComplete():
                self._show_search_end(event)
            case SourcesGiven():
                self._show_progress("done", event.words[0].upper() + event.words[1:])
            case Text():
                self._show_answer(event.delta)
            case CitationSeen():
                self._announced.append(event)
            case HookMessage():
                self._show_message(event)
            case ToolStart() | ToolProgress() | ToolResult() | ApprovalRequired():
                self._show_tool(event)
            case Trace():
                self._nodes[event.node.id] = event.node
                self._show_rewriting(event.node)
            case Warned():
                self._print_warning(event)
            case Failed():
                self._print_problem("error", event, "red")
            case StreamEnd():
                self._end(event)
            case _:
                assert_never(event)

    def wait(self, text: str) -> None:
        """Write a line that says what is waited for."""
        self._enter("progress")
        self._write_line(Styled(f"... {text}", "dim"))

    def close(self) -> None:
        """Write the text that is held back. Call it also when the turn is left early."""
        self._enter(None)

    # ---- searches and tools

    def _show_tool(self, event: ToolStart | ToolProgress | ToolResult | ApprovalRequired) -> None:
        match event:
            case ToolStart():
                arguments = one_line(json.dumps(event.arguments, ensure_ascii=False, default=str))
                self._show_progress(
                    "tool", f"{one_line(event.name)} {shortened(arguments, SHOWN_ARGUMENTS)}"
                )
            case ToolProgress():
                self._show_tool_progress(event)
            case ToolResult():
                self._show_tool_end(event)
            case ApprovalRequired():
                self._show_pending(event)

    def _show_tool_progress(self, event: ToolProgress) -> None:
        of = f" of {event.total:g}" if event.total is not None else ""
        done = f" {event.done:g}{of}" if event.done or event.total else ""
        message = f" {one_line(event.message)}" if event.message else ""
        self._show_progress("tool", f"{one_line(event.name)}:{done}{message}")

    def _show_pending(self, event: ApprovalRequired) -> None:
        """Write the call whole: the user decides about all of it. A question is the text already;
        its choices follow."""
        if event.question:
            for number, choice in enumerate(event.choices, 1):
                self._show_progress("choice", f"{number}  {one_line(choice)}", "yellow", whole=True)
            return
        arguments = one_line(json.dumps(event.arguments, ensure_ascii=False, default=str))
        text = f"Approval required: {one_line(event.name)} {arguments}"
        self._show_progress("tool", text, "yellow", whole=True)

    def _show_tool_end(self, event: ToolResult) -> None:
        took = duration(event.duration_ms)
        if event.error:
            failed = "" if event.error.startswith(CALL_REFUSED) else " failed"
            reason = f"{one_line(event.name)}{failed}: {one_line(event.error)} ({took})"
            self._show_progress("failed", reason, "yellow")
        else:
            self._show_progress("done", f"{one_line(event.name)} ({took})")

    def _show_rewriting(self, node: TraceNode) -> None:
        """Write the question that is searched for, if it differs from the user's."""
        searched = node.data.get("searched")
        if node.type == "rewrite" and searched and searched != node.data.get("question"):
            text = f"Searched as: {shortened(one_line(searched), SHOWN_QUERY)}"
            self._show_progress("search", text, "dim")

    def _show_search_end(self, event: SearchComplete) -> None:
        items = self._found.pop(event.search_id, [])
        source = SOURCES[self._types.get(event.search_id, "web")]
        source += f" by {one_line(event.provider)}" if event.provider else ""
        took = duration(event.duration_ms)
        if event.error == STOPPED:  # cancelled, such as the slower searches of `any`
            self._show_progress("stopped", f"Search stopped ({source}) ({took})", "dim")
            return
        if event.error:
            self._show_progress(
                "failed",
                f"Search failed ({source}): {one_line(event.error)} ({took})",
                "yellow",
                whole=True,
            )
            return
        least = "at least " if event.total_is == "at_least" else ""
        more = event.total > len(items)
        count = f"{len(items)} of {least}{event.total}" if more else str(len(items))
        noun = "result" if event.total == 1 and len(items) == 1 else "results"
        self._show_progress("found", f"Found {count} {noun} ({source}){':' if items else ''}")
        for number, item in enumerate(items[:SHOWN_RESULTS], 1):
            self._write_line(
                Styled.assemble(
                    f"   {number}. ", (visible(item.citation_id), "cyan"), f" - {title_of(item)}"
                )
            )
        if len(items) > SHOWN_RESULTS:
            self._write_line(Styled(f"   ... and {len(items) - SHOWN_RESULTS} more", "dim"))
        self._show_progress("done", f"Search complete ({took})")

    def _show_progress(
        self, symbol: str, text: str, style: str = "", *, whole: bool = False
    ) -> None:
        self._enter("progress")
        self._write_line(Styled(f"{self._symbols[symbol]} {text}", style), whole=whole)

    # ---- the answer

    def _show_answer(self, delta: str) -> None:
        if not delta:
            return
        self._enter("answer")
        self._held += delta
        while self._announced:
            citation = self._announced[0]
            before, marker, after = self._held.partition(citation.marker)
            if not marker:
                break
            self._announced.popleft()
            self._held = after
            self._write(before)
            self._write(marker, citation)
        # A citation comes before its text, in which the marker may arrive in pieces.
        held = _overlap(self._held, self._announced[0].marker) if self._announced else 0
        text, self._held = (
            self._held[: len(self._held) - held],
            self._held[len(self._held) - held :],
        )
        self._write(text)

    def _write(self, text: str, citation: CitationSeen | None = None) -> None:
        url = citation.item.url if citation and citation.item else ""
        style = citation.verdict + " " + url if citation else ""
        self._put(self._flow.feed(self._isolates.feed(text), style))

    def _put(self, pieces: Iterable[tuple[str, str]]) -> None:
        text = Styled()
        for piece, style in pieces:
            verdict, _, url = style.partition(" ")
            text.append(
                piece,
                marker_style(_VERDICTS[verdict], url) if verdict else None,
            )
        if text:
            self._print(text, end="", soft_wrap=True)

    def _end_line(self) -> None:
        """Write the rest of the answer and end its line."""
        self._write(self._held)
        self._held = ""
        self._put_end()

    def _put_end(self) -> None:
        self._put([*self._flow.feed(self._isolates.end()), *self._flow.end(), ("\n", "")])

    # ---- messages of hooks

    def _show_message(self, event: HookMessage) -> None:
        """Show each message on lines of its own; a replaced text is written again below."""
        before = self._messages.get(event.message_id)
        self._messages = step(self._messages, event)
        after = self._messages.get(event.message_id)
        text, anew = added_text(before, after)
        if text:
            if anew or self._open_message != event.message_id:
                self._end_message()
            self._enter("message")
            self._open_message = event.message_id
            self._put(self._flow.feed(self._isolates.feed(text)))
        if after is not None and after.ended and self._open_message == event.message_id:
            self._end_message()

    def _end_message(self) -> None:
        if self._open_message:
            self._open_message = ""
            self._put_end()

    # ---- the end

    def _end(self, event: StreamEnd) -> None:
        self._enter("sources")
        self._show_sources("Sources", event, "ok")
        self._show_sources("From earlier in the conversation", event, "earlier")
        unknown = [citation.marker for citation in event.citations if citation.verdict == "unknown"]
        if unknown:
            self._write_line(Styled(f"Not among the sources: {one_line(' '.join(unknown))}", "red"))
        if event.grounded is False:
            self._write_line(
                Styled("Not grounded: the answer cites none of the sources found", "yellow")
            )
        if event.data is not None:
            self._wants_gap = self._written
            self._write_line(Styled("Data", "bold"))
            data = json.dumps(event.data, ensure_ascii=False, indent=2, default=str)
            self._print(Styled(visible(data)), soft_wrap=True)
        if self._trace and self._nodes:
            self._enter("trace")
            self._print(trace_tree(self._nodes.values(), self._warnings))

    def _show_sources(self, heading: str, event: StreamEnd, verdict: str) -> None:
        shown = [citation for citation in event.citations if citation.verdict == verdict]
        if shown:
            self._write_line(Styled(heading, "bold"))
        for citation in shown:
            self._show_source(citation)

    def _show_source(self, citation: Cited) -> None:
        place = place_of(citation)
        title = one_line(citation.title) or place
        marker = visible(citation.marker)
        style = marker_style(citation.verdict, citation.url)
        self._write_line(Styled.assemble("  ", (marker, style), f"  {title}"))
        if place not in ("", title):
            self._write_line(
                Styled(
                    f"  {' ' * cell_len(marker)}  {place}",
                    Style(dim=True, link=safe_link(citation.url)),
                )
            )
        for doubt in _doubts(citation):
            self._write_line(Styled(f"  {' ' * cell_len(marker)}  {doubt}", "yellow"))

    # ---- lines

    def _print_warning(self, event: Warned) -> None:
        """Print a warning unless one with the same message was printed: several calls of a turn may
        have the same problem."""
        if event.message not in self._warned:
            self._warned.add(event.message)
            self._warnings.append(self._print_problem("warning", event, "yellow"))

    def _print_problem(self, kind: str, event: Warned | Failed, style: str) -> Styled:
        if self._section == "answer" or self._open_message:
            self._enter(None)
        line = problem_line(kind, event, style)
        self._err.print(line, soft_wrap=True)
        return line

    def _write_line(self, text: Styled, *, whole: bool = False) -> None:
        """Write a line. On a terminal a long line is cut, unless it is to be shown `whole`: the
        message of a failure must be readable to its end."""
        if self._out.is_terminal and not whole:
            self._print(text, no_wrap=True, overflow="ellipsis")
        else:
            self._print(text, soft_wrap=True)

    def _enter(self, section: Section | None) -> None:
        """Begin another section of the output, with an empty line before it unless it is the
        first."""
        if section == self._section:
            return
        if self._section == "answer":
            self._end_line()
        self._end_message()
        self._section = section
        self._wants_gap = self._written

    def _print(self, what: RenderableType, **options: Any) -> None:
        if self._wants_gap:
            self._out.print()
        self._written, self._wants_gap = True, False
        self._out.print(what, **options)


_VERDICTS: dict[str, Verdict] = {verdict: verdict for verdict in get_args(Verdict)}


def _overlap(text: str, marker: str) -> int:
    """Return how many characters at the end of `text` are the beginning of `marker`."""
    return next(
        (
            size
            for size in range(min(len(text), len(marker) - 1), 0, -1)
            if marker.startswith(text[-size:])
        ),
        0,
    )


def _doubts(citation: Cited) -> Iterator[str]:
    """Yield what is doubtful of the sentences that cite a source."""
    if citation.missing:
        yield one_line(f"not in it: {', '.join(citation.missing)}")
    for each in citation.verified:
        if not each.supported:
            yield one_line(f"does not say: {each.sentence}")
