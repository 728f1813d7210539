"""A turn's events in a terminal: the search as it happens, the answer as it streams, the sources it
cites.

A fold over events that writes to two consoles, the second for warnings and errors. It never
influences the turn. On a pipe or a dumb terminal there are no control codes and no cut lines;
nothing that comes from a model, a hook or a document reaches the terminal without `visible`.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable
from typing import IO, Any, Literal, assert_never

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.style import Style
from rich.text import Text as Styled

from groundhook.host.core.types.events import (
    STOPPED,
    CitationSeen,
    Cited,
    Event,
    Failed,
    HookMessage,
    SearchComplete,
    SearchFound,
    SearchStart,
    StreamEnd,
    StreamStart,
    Text,
    ToolResult,
    ToolStart,
    Trace,
    TraceNode,
    Verdict,
    Warned,
)
from groundhook.host.core.types.search import Item, SearchType
from groundhook.host.output.flow import Flow, Isolates, one_line, shortened, visible
from groundhook.host.output.messages import Messages, spoken, step
from groundhook.host.output.tree import duration, trace_tree

Section = Literal["progress", "answer", "message", "sources", "trace"]

SHOWN_RESULTS = 5
SHOWN_QUERY, SHOWN_ARGUMENTS = 200, 100  # characters of a question, and of a tool call's arguments
_PAGE = re.compile(r"#page=(\d+)$")
UNCUT = 10_000  # width of a console that is no terminal

SOURCES: dict[SearchType, str] = {"web": "web", "kb": "knowledge base", "db": "database"}
SYMBOLS = {"search": "🔍", "found": "📄", "done": "✅", "failed": "⚠", "stopped": "⏹", "tool": "🔧"}
PLAIN_SYMBOLS = {
    "search": ">",
    "found": "-",
    "done": "ok:",
    "failed": "!",
    "stopped": "-",
    "tool": "*",
}


class _Console(Console):
    """A console that leaves the end of a pipe to its caller instead of ending the process."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console(file: IO[str]) -> Console:
    """A console that interprets nothing in what it prints, and cuts nothing when it is not a
    terminal. Writing raises BrokenPipeError when nobody reads any more."""
    made = _Console(file=file, markup=False, emoji=False, highlight=False)
    if not made.is_terminal:
        made.width = UNCUT
    return made


class Terminal:
    """Shows one turn. `trace` adds the tree of its steps, and its warnings once more, at the
    end."""

    def __init__(self, out: Console, err: Console, *, trace: bool = False) -> None:
        self._out = out
        self._err = err
        self._trace = trace
        self._flow = Flow(out.width if out.is_terminal else 0, cell_len)
        self._isolates = Isolates()  # of what the flow is fed
        self._symbols = SYMBOLS if out.encoding.startswith("utf") else PLAIN_SYMBOLS
        self._section: Section | None = None
        self._written = False
        self._wants_gap = False
        self._found: dict[str, list[Item]] = {}
        self._types: dict[str, SearchType] = {}
        self._announced: deque[CitationSeen] = deque()
        self._held = ""  # of the answer: may be the beginning of an announced marker
        self._messages: Messages = {}
        self._speaking = ""  # the message whose line is not ended
        self._nodes: dict[str, TraceNode] = {}
        self._warnings: list[Styled] = []

    def show(self, event: Event) -> None:
        match event:
            case StreamStart():
                pass
            case SearchStart():
                self._types[event.search_id] = event.search_type
                self._say(
                    "search",
                    f'Searching "{shortened(one_line(event.query), SHOWN_QUERY)}"'
                    f" ({SOURCES[event.search_type]})...",
                )
            case SearchFound():
                self._found.setdefault(event.search_id, []).append(event.item)
            case SearchComplete():
                self._searched(event)
            case Text():
                self._answer(event.delta)
            case CitationSeen():
                self._announced.append(event)
            case HookMessage():
                self._message(event)
            case ToolStart():
                arguments = one_line(json.dumps(event.arguments, ensure_ascii=False, default=str))
                self._say("tool", f"{one_line(event.name)} {shortened(arguments, SHOWN_ARGUMENTS)}")
            case ToolResult():
                took = duration(event.duration_ms)
                if event.error:
                    self._say(
                        "failed",
                        f"{one_line(event.name)} failed: {one_line(event.error)} ({took})",
                        "yellow",
                    )
                else:
                    self._say("done", f"{one_line(event.name)} ({took})")
            case Trace():
                self._nodes[event.node.id] = event.node
            case Warned():
                self._warnings.append(self._complain("warning", event, "yellow"))
            case Failed():
                self._complain("error", event, "red")
            case StreamEnd():
                self._end(event)
            case _:
                assert_never(event)

    def close(self) -> None:
        """Write what is held back; call it also when the turn was left in the middle."""
        self._enter(None)

    # ---- searches and tools

    def _searched(self, event: SearchComplete) -> None:
        items = self._found.pop(event.search_id, [])
        source = SOURCES[self._types.get(event.search_id, "web")]
        source += f" by {one_line(event.provider)}" if event.provider else ""
        took = duration(event.duration_ms)
        if (
            event.error == STOPPED
        ):  # such as one whose answer was not awaited, since another was first
            self._say("stopped", f"Search stopped ({source}) ({took})", "dim")
            return
        if event.error:
            self._say(
                "failed",
                f"Search failed ({source}): {one_line(event.error)} ({took})",
                "yellow",
                whole=True,
            )
            return
        count = f"{len(items)} of {event.total}" if event.total > len(items) else str(len(items))
        noun = "result" if event.total == 1 and len(items) == 1 else "results"
        self._say("found", f"Found {count} {noun} ({source}){':' if items else ''}")
        for number, item in enumerate(items[:SHOWN_RESULTS], 1):
            self._line(
                Styled.assemble(
                    f"   {number}. ", (visible(item.citation_id), "cyan"), f" - {title_of(item)}"
                )
            )
        if len(items) > SHOWN_RESULTS:
            self._line(Styled(f"   ... and {len(items) - SHOWN_RESULTS} more", "dim"))
        self._say("done", f"Search complete ({took})")

    def _say(self, symbol: str, text: str, style: str = "", *, whole: bool = False) -> None:
        self._enter("progress")
        self._line(Styled(f"{self._symbols[symbol]} {text}", style), whole=whole)

    # ---- the answer

    def _answer(self, delta: str) -> None:
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
                marker_style("ok" if verdict == "ok" else "unknown", url) if verdict else None,
            )
        if text:
            self._print(text, end="", soft_wrap=True)

    def _end_line(self) -> None:
        """Write what is held back of the answer and leave its line."""
        self._write(self._held)
        self._held = ""
        self._put_end()

    def _put_end(self) -> None:
        self._put([*self._flow.feed(self._isolates.end()), *self._flow.end(), ("\n", "")])

    # ---- what hooks send

    def _message(self, event: HookMessage) -> None:
        """Each message on lines of its own; what cannot be written over is written again below."""
        before = self._messages.get(event.message_id)
        self._messages = step(self._messages, event)
        after = self._messages.get(event.message_id)
        text, anew = spoken(before, after)
        if text:
            if anew or self._speaking != event.message_id:
                self._stop_speaking()
            self._enter("message")
            self._speaking = event.message_id
            self._put(self._flow.feed(self._isolates.feed(text)))
        if after is not None and after.ended and self._speaking == event.message_id:
            self._stop_speaking()

    def _stop_speaking(self) -> None:
        if self._speaking:
            self._speaking = ""
            self._put_end()

    # ---- the end

    def _end(self, event: StreamEnd) -> None:
        self._enter("sources")
        cited = [citation for citation in event.citations if citation.verdict == "ok"]
        unknown = [citation.marker for citation in event.citations if citation.verdict == "unknown"]
        if cited:
            self._line(Styled("Sources", "bold"))
            for citation in cited:
                self._cited(citation)
        if unknown:
            self._line(Styled(f"Not among the sources: {one_line(' '.join(unknown))}", "red"))
        if event.grounded is False:
            self._line(Styled("Not grounded: the answer cites none of the sources found", "yellow"))
        if event.data is not None:
            self._wants_gap = self._written
            self._line(Styled("Data", "bold"))
            data = json.dumps(event.data, ensure_ascii=False, indent=2, default=str)
            self._print(Styled(visible(data)), soft_wrap=True)
        if self._trace and self._nodes:
            self._enter("trace")
            self._print(trace_tree(self._nodes.values(), self._warnings))

    def _cited(self, citation: Cited) -> None:
        place = place_of(citation)
        title = one_line(citation.title) or place
        marker = visible(citation.marker)
        self._line(Styled.assemble("  ", (marker, marker_style("ok", citation.url)), f"  {title}"))
        if place != title:
            self._line(
                Styled(
                    f"  {' ' * cell_len(marker)}  {place}",
                    Style(dim=True, link=safe_link(citation.url)),
                )
            )

    # ---- lines

    def _complain(self, kind: str, event: Warned | Failed, style: str) -> Styled:
        if self._section == "answer" or self._speaking:
            self._enter(None)
        said = complaint(kind, event, style)
        self._err.print(said, soft_wrap=True)
        return said

    def _line(self, text: Styled, *, whole: bool = False) -> None:
        """A line of its own; on a terminal what does not fit is left out, unless `whole`: what to
        do about a failure is read."""
        if self._out.is_terminal and not whole:
            self._print(text, no_wrap=True, overflow="ellipsis")
        else:
            self._print(text, soft_wrap=True)

    def _enter(self, section: Section | None) -> None:
        """Begin another kind of output, with an empty line before it unless it is the first."""
        if section == self._section:
            return
        if self._section == "answer":
            self._end_line()
        self._stop_speaking()
        self._section = section
        self._wants_gap = self._written

    def _print(self, what: RenderableType, **options: Any) -> None:
        if self._wants_gap:
            self._out.print()
        self._written, self._wants_gap = True, False
        self._out.print(what, **options)


# ------------------------------------------------------------------------------------------- pieces


def complaint(kind: str, event: Warned | Failed, style: str) -> Styled:
    """A warning or an error as one line: `error: file:line:column: message (hint)`."""
    parts = [event.file] + [str(number) for number in (event.line, event.column) if number]
    where = f"{':'.join(parts)}: " if event.file else ""
    hint = f" ({event.hint})" if event.hint else ""
    return Styled.assemble((f"{kind}:", style), " " + one_line(f"{where}{event.message}{hint}"))


def title_of(item: Item) -> str:
    """What to call an item: its title, or else the beginning of its content."""
    return one_line(item.title or item.content[:200]) or "(untitled)"


def place_of(source: Item | Cited) -> str:
    """Where a source is: its address on the web, `collection / document` with its page and the
    sentences of a long passage, or `model / record`."""
    if source.url.startswith(("http://", "https://")):
        return one_line(source.url)
    parts = (
        (source.collection, source.document_id)
        if source.type == "kb"
        else (source.model, source.record_id)
    )
    place = one_line(
        " / ".join(str(part) for part in parts if part not in ("", None)) or source.url
    )
    if page := _PAGE.search(source.url):
        place += f", page {page.group(1)}"
    told = source.extent.sentences if source.extent else None
    if told is None:
        return place
    which = (
        f"sentence {told.first}"
        if told.first == told.last
        else f"sentences {told.first}-{told.last}"
    )
    return f"{place} ({which} of {told.of})"


def marker_style(verdict: Verdict, url: str) -> Style:
    if verdict == "ok":
        return Style(color="cyan", link=safe_link(url))
    return Style(color="red", strike=True)


def safe_link(url: str) -> str | None:
    """The address as a terminal may be given it, or None: only the web's, and nothing that ends the
    escape sequence."""
    return (
        url
        if url.startswith(("http://", "https://"))
        and url.isascii()
        and url.isprintable()
        and " " not in url
        else None
    )


def _overlap(text: str, marker: str) -> int:
    """How many characters at the end of `text` are the beginning of `marker`."""
    return next(
        (
            size
            for size in range(min(len(text), len(marker) - 1), 0, -1)
            if marker.startswith(text[-size:])
        ),
        0,
    )
