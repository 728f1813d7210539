"""Folds: pure functions from the events of a turn to the messages for one kind of client. A fold
depends on its state alone, so a stream that is resumed or read twice has the same pieces, in
whatever groups the events arrive.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from groundhook.core.types.events import Event

_State = TypeVar("_State")


@dataclass(frozen=True)
class ClientMessage:
    """One message to the client: a JSON value, or text that is sent as it is (`[DONE]`), with the
    name of its event in dialects that have one."""

    data: Any
    event: str = ""


class Fold(Protocol[_State]):
    """The events of one turn in one dialect. `end` is called once, after the last event, also when
    the events broke off."""

    def begin(self) -> _State: ...

    def step(self, state: _State, event: Event, /) -> tuple[_State, Sequence[ClientMessage]]: ...

    def end(self, state: _State, /) -> Sequence[ClientMessage]: ...


def steps(
    fold: Fold[_State], state: _State, events: Iterable[Event]
) -> tuple[_State, list[ClientMessage]]:
    """Fold some events; return the state behind them and their pieces."""
    pieces: list[ClientMessage] = []
    for event in events:
        state, more = fold.step(state, event)
        pieces += more
    return state, pieces


def run(fold: Fold[_State], events: Iterable[Event]) -> list[ClientMessage]:
    """Fold all events of a turn; return every piece."""
    state, pieces = steps(fold, fold.begin(), events)
    return [*pieces, *fold.end(state)]
