"""Folds: pure functions from the events of a turn to the messages for one kind of client. A fold
depends on its state alone, so a stream that is resumed or read twice has the same pieces, in
whatever groups the events arrive.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from groundhook.core.types.events import Event

State = TypeVar("State")


@dataclass(frozen=True)
class Piece:
    """One message to the client: a JSON value, or text that is sent as it is (`[DONE]`), with the
    name of its event in dialects that have one."""

    data: Any
    event: str = ""


class Fold(Protocol[State]):
    """The events of one turn in one dialect. `end` is called once, after the last event, also when
    the events broke off."""

    def begin(self) -> State: ...

    def step(self, state: State, event: Event, /) -> tuple[State, Sequence[Piece]]: ...

    def end(self, state: State, /) -> Sequence[Piece]: ...


def steps(fold: Fold[State], state: State, events: Iterable[Event]) -> tuple[State, list[Piece]]:
    """Fold some events; return the state behind them and their pieces."""
    pieces: list[Piece] = []
    for event in events:
        state, more = fold.step(state, event)
        pieces += more
    return state, pieces


def run(fold: Fold[State], events: Iterable[Event]) -> list[Piece]:
    """Fold all events of a turn; return every piece."""
    state, pieces = steps(fold, fold.begin(), events)
    return [*pieces, *fold.end(state)]
