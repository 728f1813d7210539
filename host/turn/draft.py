"""The answer to one model request as it arrives: a fold over its deltas. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from groundhook.core.errors import ModelGarbled
from groundhook.core.pieces import TextPieces, grown
from groundhook.core.ports import (
    Delta,
    Finished,
    Notice,
    ReasoningDelta,
    TextDelta,
    ToolDelta,
)
from groundhook.host.tools.toolbox import parse_arguments

MOST_CALLS = 128  # tool calls of one answer of a model


@dataclass(frozen=True)
class Draft:
    """The part of the answer to one model request that has arrived."""

    pieces: TextPieces = ()  # of the text
    calls: tuple[ToolDelta, ...] = ()
    thought: bool = False
    finished: Finished | None = None

    @property
    def text(self) -> str:
        return "".join(self.pieces)


def step(draft: Draft, delta: Delta) -> Draft:
    """Return the draft with one more delta. The pieces of a tool call are joined by its index.
    Raises ModelGarbled for more than MOST_CALLS."""
    match delta:
        case TextDelta(text):
            return replace(draft, pieces=grown(draft.pieces, text))
        case Notice():
            return draft
        case ReasoningDelta():
            return draft if draft.thought else replace(draft, thought=True)
        case ToolDelta():
            calls = {call.index: call for call in draft.calls}
            if delta.index not in calls and len(calls) == MOST_CALLS:
                raise ModelGarbled(f"the model called more than {MOST_CALLS} tools in one answer")
            old = calls.get(delta.index, ToolDelta(delta.index))
            calls[delta.index] = ToolDelta(
                delta.index,
                old.id or delta.id,
                old.name or delta.name,
                old.arguments + delta.arguments,
            )
            return replace(draft, calls=tuple(calls[index] for index in sorted(calls)))
        case Finished():
            return replace(draft, finished=delta)


def arguments_for_event(arguments: str) -> dict[str, object]:
    """Return the arguments for an event: a JSON object as it is, anything else as the text of one
    key."""
    try:
        return parse_arguments(arguments)
    except ValueError:
        return {"arguments": arguments}
