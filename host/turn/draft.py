"""The answer to one model request as it arrives: a fold over its deltas. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

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
class DraftCall:
    """The part of a tool call that has arrived. `pieces` are those of its arguments."""

    id: str = ""
    name: str = ""
    pieces: TextPieces = ()


@dataclass(frozen=True)
class Draft:
    """The part of the answer to one model request that has arrived."""

    pieces: TextPieces = ()  # of the text
    begun: Mapping[int, DraftCall] = field(default_factory=dict)  # by index
    thought: bool = False
    finished: Finished | None = None

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def calls(self) -> tuple[ToolDelta, ...]:
        """The tool calls, each as one delta, by index."""
        return tuple(
            ToolDelta(index, call.id, call.name, "".join(call.pieces))
            for index, call in sorted(self.begun.items())
        )

    def with_calls(self, calls: Iterable[ToolDelta]) -> Draft:
        """Return the draft with these calls in the place of its own."""
        begun = {call.index: DraftCall(call.id, call.name, (call.arguments,)) for call in calls}
        return replace(self, begun=begun)


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
            if delta.index not in draft.begun and len(draft.begun) == MOST_CALLS:
                raise ModelGarbled(f"the model called more than {MOST_CALLS} tools in one answer")
            old = draft.begun.get(delta.index, DraftCall())
            call = DraftCall(
                old.id or delta.id,
                old.name or delta.name,
                grown(old.pieces, delta.arguments),
            )
            return replace(draft, begun={**draft.begun, delta.index: call})
        case Finished():
            return replace(draft, finished=delta)


def arguments_for_event(arguments: str) -> dict[str, object]:
    """Return the arguments for an event: a JSON object as it is, anything else as the text of one
    key."""
    try:
        return parse_arguments(arguments)
    except ValueError:
        return {"arguments": arguments}
