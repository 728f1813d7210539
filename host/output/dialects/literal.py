"""Numbers in brackets that a model wrote itself, where the host's own are citations: `[1]` becomes
`(1)` outside of code, so that no reader takes it for a checked citation. Pure.

Models imitate the numbers of earlier answers, which a client sends back; `without_citations` takes
those out of its messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from groundhook.core.types.events import CitationSeen, Event, Failed, HookMessage, StreamEnd, Text
from groundhook.host.search.citations.reader import Grammar, Marker, Reading, read

_NUMBERS = Grammar.of("[{index}]")
# Code in a line, or a citation as a client was shown it.
_CODE_OR_SHOWN = re.compile(
    r"(?P<code>(?<!`)(?P<ticks>``*+)[^`\n]++(?P=ticks))"
    r"| ?(?:\[\[\d{1,3}\]\]\([^()\s]{0,2000}\)|\[(?:\d{1,3}|\?)\](?![(\[:]))"
)
_FENCE = re.compile(r"(?m)^ {0,3}(?P<run>`{3,}|~{3,})(?P<rest>[^\n]*)$")


@dataclass(frozen=True)
class Literal:
    """The state of the fold; `marker` is a citation whose text comes next."""

    reading: Reading = Reading()
    marker: str = ""


def step(state: Literal, event: Event) -> tuple[Literal, Sequence[Event]]:
    """Return the events in the place of one event. Text is held back while it may become a
    number."""
    match event:
        case Text():
            before, marker, after = event.delta.partition(state.marker or event.delta)
            if not state.marker or not marker:
                return _text(state, event.delta, event)
            reading, shown = _read(state.reading, before, last=True)
            passed = Literal(replace(reading, line=reading.line.extend(marker)))
            rest, more = _text(passed, after, event)
            # In one event: folds look for a marker in the text right after its citation.
            return rest, [event.model_copy(update={"delta": shown + marker}), *more]
        case CitationSeen():
            flushed, events = flush(state)
            return replace(flushed, marker=event.marker), [*events, event]
        case HookMessage() | Failed() | StreamEnd():
            flushed, events = flush(state)
            return flushed, [*events, event]
        case _:
            return state, (event,)


def flush(state: Literal) -> tuple[Literal, Sequence[Event]]:
    """Return the text that is held back as an event."""
    return _text(state, "", Text(delta=""), last=True)


def without_numbers(text: str) -> str:
    """Return a whole answer whose own numbers in brackets are no citations."""
    return _read(Reading(), text, last=True)[1]


def _text(
    state: Literal, text: str, event: Text, *, last: bool = False
) -> tuple[Literal, Sequence[Event]]:
    reading, shown = _read(state.reading, text, last=last)
    made = (event.model_copy(update={"delta": shown}),) if shown else ()
    return replace(state, reading=reading), made


def _read(reading: Reading, text: str, *, last: bool = False) -> tuple[Reading, str]:
    reading, pieces = read(reading, text, _NUMBERS, last=last)
    shown = (
        f"({piece.text[1:-1]})" if isinstance(piece, Marker) else piece.text for piece in pieces
    )
    return reading, "".join(shown)


def without_citations(content: Any) -> Any:
    """Return the content of an earlier answer without the numbers and links of its citations.
    Code, and an answer that is a JSON object, stay as they are."""
    if isinstance(content, str):
        whole = content.strip()
        return content if whole[:1] == "{" and whole[-1:] == "}" else "".join(_uncited(content))
    if isinstance(content, list):
        return [
            {**part, "text": without_citations(part["text"])}
            if isinstance(part, dict) and isinstance(part.get("text"), str)
            else part
            for part in content
        ]
    return content


def _uncited(text: str) -> Iterator[str]:
    """Yield a text in pieces: blocks of code, and what is between them without citations."""
    at, opener = 0, ""
    for fence in _FENCE.finditer(text):
        run = fence["run"]
        if not opener and not (run[0] == "`" and "`" in fence["rest"]):
            yield _CODE_OR_SHOWN.sub(_keep_code, text[at : fence.start()])
            at, opener = fence.start(), run
        elif opener and run.startswith(opener) and not fence["rest"].strip():
            yield text[at : fence.end()]
            at, opener = fence.end(), ""
    yield text[at:] if opener else _CODE_OR_SHOWN.sub(_keep_code, text[at:])


def _keep_code(match: re.Match[str]) -> str:
    return match["code"] or ""
