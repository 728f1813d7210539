"""The deltas of an answer as the host uses them, from any connector: text of whole characters, and
the thinking that some models write into their answer as deltas of its own.

`read` is a pure fold; `answering` applies it to the stream of a connector.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Literal

from groundhook.core.ports import (
    Connector,
    Delta,
    Finished,
    ModelCall,
    ReasoningDelta,
    TextDelta,
)
from groundhook.core.types.base import well_formed

# Tags around the thinking at the beginning of an answer, where no parser of the endpoint took it
# out: DeepSeek-R1, Qwen and others, Gemma, Magistral.
TAGS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "[THINK]": "[/THINK]",
}
LONGEST_BLANK = 64  # characters of white space before a tag


@dataclass(frozen=True)
class Settling:
    """The state of the fold. `text` and `thought` are the first half of a character, `held` is text
    that may be the beginning of a tag, `closing` the tag that ends the thinking."""

    place: Literal["start", "thinking", "after", "answer"] = "start"
    closing: str = ""
    held: str = ""
    text: str = ""
    thought: str = ""


@asynccontextmanager
async def answering(connector: Connector, call: ModelCall) -> AsyncIterator[AsyncIterator[Delta]]:
    """Yield the settled deltas of a connector's answer. Raises what the connector raises, after the
    text that had arrived."""
    async with connector.stream(call) as deltas, aclosing(_settle(deltas)) as settled:
        yield settled


async def _settle(deltas: AsyncIterator[Delta]) -> AsyncGenerator[Delta]:
    state = Settling()
    try:
        async for delta in deltas:
            state, settled = read(state, delta)
            for each in settled:
                yield each
    except Exception:
        for each in end(state):
            yield each
        raise
    for each in end(state):
        yield each


def read(state: Settling, delta: Delta) -> tuple[Settling, list[Delta]]:
    """Return the state after a delta, and the deltas that are settled by it."""
    if isinstance(delta, TextDelta):
        text, half = _whole(state.text + delta.text)
        return _split(replace(state, text=half), text)
    if isinstance(delta, ReasoningDelta):
        thought, half = _whole(state.thought + delta.text)
        return replace(state, thought=half), [ReasoningDelta(thought)] if thought else []
    if isinstance(delta, Finished):
        return Settling(), [*end(state), delta]
    return state, [delta]


def end(state: Settling) -> list[Delta]:
    """Return what is held back, when no further delta follows."""
    rest, settled = _split(replace(state, text=""), well_formed(state.text))
    kind = ReasoningDelta if rest.place == "thinking" else TextDelta
    last = [kind(rest.held)] if rest.held else []
    thought = [ReasoningDelta(well_formed(state.thought))] if state.thought else []
    return [*thought, *settled, *last]


def _whole(text: str) -> tuple[str, str]:
    """Return the text without halves of characters, and a first half at its end: some endpoints cut
    a character in two, each half a surrogate of its own."""
    half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
    return well_formed(text[: len(text) - len(half)]), half


def _split(state: Settling, text: str) -> tuple[Settling, list[Delta]]:
    """Return the state after more text of the answer, and the parts of it: thinking, answer."""
    settled: list[Delta] = []
    text, state = state.held + text, replace(state, held="")
    if state.place == "start":
        begun = text.lstrip()
        tag = next((tag for tag in TAGS if begun.startswith(tag)), "")
        if tag:
            state = replace(state, place="thinking", closing=TAGS[tag])
            text = begun[len(tag) :]
        elif len(text) < LONGEST_BLANK and any(tag.startswith(begun) for tag in TAGS):
            return replace(state, held=text), []
        else:
            state = replace(state, place="answer")
    if state.place == "thinking":
        thought, closed, after = text.partition(state.closing)
        held = "" if closed else thought[len(thought) - _overlap(thought, state.closing) :]
        if thought := thought[: len(thought) - len(held)]:
            settled.append(ReasoningDelta(thought))
        if not closed:
            return replace(state, held=held), settled
        state, text = replace(state, place="after"), after
    if state.place == "after":
        text = text.lstrip()
        state = replace(state, place="answer" if text else "after")
    if text:
        settled.append(TextDelta(text))
    return state, settled


def _overlap(text: str, tag: str) -> int:
    """Return how many characters at the end of the text may be the beginning of the tag."""
    return next((n for n in range(len(tag) - 1, 0, -1) if text.endswith(tag[:n])), 0)
