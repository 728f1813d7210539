"""Reads the stream of an answer within its deadlines: one for the first token, which begins with
the request, and one between any two events. The connectors share it; each has its own reader of
events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import anyio

from groundhook.core.errors import ModelStalled
from groundhook.core.ports import Delta
from groundhook.core.trace import note
from groundhook.core.types.connector_spec import ConnectorSpec

CLOSING_S = 1.0  # to close the connection of an answer that failed
END = object()  # of a stream


class EventReader(Protocol):
    """The state of one answer, a fold from the endpoint's events to the host's deltas. `started`: a
    token has arrived, also of the thinking before the answer; `complete`: the answer has ended;
    `progress`: what the endpoint reports before the first token, in words."""

    @property
    def started(self) -> bool: ...

    @property
    def complete(self) -> bool: ...

    @property
    def progress(self) -> str: ...

    def read(self, event: Any, /) -> Iterator[Delta]: ...


_Reader = TypeVar("_Reader", bound=EventReader)


@dataclass(frozen=True)
class BegunAnswer(Generic[_Reader]):
    """An answer whose first token has arrived, or that ended without one (`ended`). `deltas` were
    read so far. The caller closes `stream`, an async iterator and context manager of the SDK."""

    stream: Any
    reader: _Reader
    deltas: Sequence[Delta]
    ended: bool


async def begin_answer(
    spec: ConnectorSpec, open_stream: Callable[[], Awaitable[Any]], reader: _Reader, hint: str = ""
) -> BegunAnswer[_Reader]:
    """Send the request by `open_stream` and return the answer when its first token has arrived.
    Raises ModelStalled with `hint` after the connector's `first_token_timeout`, and the errors of
    the SDK and of the reader."""
    note(provider=spec.type, model=spec.options.model)
    patience = spec.options.first_token_timeout
    stream: Any = None
    with anyio.move_on_after(patience):
        stream = await open_stream()
        deltas: list[Delta] = []
        event: Any = None
        try:
            while not (reader.started or reader.complete or event is END):
                event = await anext(stream, END)
                deltas += () if event is END else reader.read(event)
        # Cancelled, or at the deadline: no caller has this stream yet, to close it.
        except BaseException:
            with anyio.move_on_after(CLOSING_S, shield=True):
                await stream.close()
            raise
        return BegunAnswer(stream, reader, deltas, event is END)
    # Comments and progress are no tokens, but they show that the endpoint works.
    alive = "it sent comments only" if getattr(stream, "comments", 0) else ""
    seen = f" ({reader.progress or alive})" if reader.progress or alive else ""
    raise ModelStalled(
        f"model {_name(spec)!r} sent no token within {patience:g} s of the request{seen}",
        hint=f"options.first_token_timeout of the connector is this deadline{hint}",
    )


async def next_event(spec: ConnectorSpec, stream: Any) -> Any:
    """Return the next event of a stream, or END. Raises ModelStalled after the connector's
    `timeout`, and the errors of the SDK."""
    patience = spec.options.timeout
    with anyio.move_on_after(patience):
        return await anext(stream, END)
    raise ModelStalled(
        f"model {_name(spec)!r} stopped sending: no further token within {patience:g} s",
        hint="options.timeout of the connector is this deadline",
    )


def _name(spec: ConnectorSpec) -> str:
    return spec.id or spec.label or spec.type
