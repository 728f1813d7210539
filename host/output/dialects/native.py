"""One JSON answer made of all events of a turn. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import Field

from groundhook.core.types.base import Value, defaults_of
from groundhook.core.types.events import (
    ApprovalRequired,
    Cited,
    Claims,
    Event,
    Failed,
    SearchComplete,
    SearchFound,
    StreamEnd,
    StreamStart,
    Warned,
)
from groundhook.core.types.search import Certainty, Item, SearchResult
from groundhook.core.types.turn import Usage
from groundhook.host.output.dialects.audience import Audience
from groundhook.host.output.dialects.fold import ClientMessage


class Answer(Value):
    """A turn that is over, as one value."""

    turn_id: str = Field(default="", description="The turn")
    chat_id: str = Field(default="", description="Its chat; empty: none")
    message_id: str = Field(default="", description="The answer in the chat; empty: none")
    assistant_id: str = ""
    content: str = Field(default="", description="The whole answer, with markers")
    citations: tuple[Cited, ...] = Field(default=(), description="Every marker of the answer once")
    sources: tuple[Item, ...] = Field(default=(), description="What was found, each source once")
    data: Any = Field(default=None, description="`data` that the Next hook returned")
    metadata: dict[str, Any] = {}
    finish_reason: str = ""
    pending: tuple[ApprovalRequired, ...] = Field(
        default=(), description="Calls that wait for the user's approval"
    )
    grounded: bool | None = Field(default=None, description="Whether the answer cites a source")
    certainty: Certainty | None = Field(
        default=None,
        description=(
            "As in `stream_end`: that of the best search whose items the answer cites; `none`: it"
            " cites nothing although sources were asked; null: no source was asked, or none that"
            " it cites judges"
        ),
    )
    claims: Claims = defaults_of(Claims)
    usage: Usage = Usage()
    timings: dict[str, float] = Field(default={}, description="Milliseconds")
    warnings: tuple[Warned, ...] = Field(
        default=(), description="For authors; for all readers those of parts that were not read"
    )
    error: Failed | None = Field(default=None, description="The first error of the turn")


@dataclass(frozen=True)
class Gathered:
    """The parts of an answer so far."""

    start: StreamStart | None = None
    sources: tuple[Item, ...] = ()
    warnings: tuple[Warned, ...] = ()
    error: Failed | None = None
    pending: tuple[ApprovalRequired, ...] = ()
    end: StreamEnd | None = None


@dataclass(frozen=True)
class Whole:
    """One piece, when the turn is over: its `Answer`."""

    def begin(self) -> Gathered:
        return Gathered()

    def step(self, state: Gathered, event: Event, /) -> tuple[Gathered, Sequence[ClientMessage]]:
        match event:
            case StreamStart() if state.start is None:  # not of an assistant it was delegated to
                state = replace(state, start=event)
            case SearchFound():
                state = replace(state, sources=(*state.sources, event.item))
            case Warned():
                state = replace(state, warnings=(*state.warnings, event))
            case Failed() if state.error is None:  # the first one is the cause of the others
                state = replace(state, error=event)
            case ApprovalRequired():
                state = replace(state, pending=(*state.pending, event))
            case StreamEnd():
                state = replace(state, end=event)
            case _:
                pass
        return state, ()

    def end(self, state: Gathered, /) -> Sequence[ClientMessage]:
        return (ClientMessage(answer(state)),)


def answer(state: Gathered) -> Answer:
    """Return the answer made of the parts; a source that was found twice is listed once."""
    start, end = state.start or StreamStart(assistant_id=""), state.end or StreamEnd()
    once = {item.citation_id or item.url or str(n): item for n, item in enumerate(state.sources)}
    return Answer(
        turn_id=start.turn_id,
        chat_id=start.chat_id,
        message_id=start.message_id,
        assistant_id=start.assistant_id,
        content=end.content,
        citations=end.citations,
        sources=tuple(once.values()),
        data=end.data,
        metadata=end.metadata,
        finish_reason=end.finish_reason,
        pending=state.pending,
        grounded=end.grounded,
        certainty=end.certainty,
        claims=end.claims,
        usage=end.usage,
        timings=end.timings,
        warnings=state.warnings,
        error=state.error,
    )


def readable(result: SearchResult, audience: Audience) -> SearchResult:
    """Return the result of a search as its reader may see it."""
    error = result.error
    found = [SearchFound(search_id="", item=item) for item in result.items]
    seen = [audience.of(event) for event in found]
    items = tuple(event.item for event in seen if isinstance(event, SearchFound))
    if not audience.author:
        ended = audience.of(SearchComplete(search_id="", total=0, duration_ms=0, error=error))
        error = ended.error if isinstance(ended, SearchComplete) else error
        return result.model_copy(
            update={"items": items, "error": error, "dsl": None, "provider": ""}
        )
    return result.model_copy(update={"items": items})
