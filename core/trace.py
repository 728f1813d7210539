"""The trace of a turn: `with span("search", label=…) as node:` opens a step under the surrounding
one; `open_span(…)` opens a step without a block, which `close` ends.

Parents are found through a context variable, which tasks inherit; the run does not depend on it.
Without a recorder a span is not reported and costs almost nothing.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from groundhook.core.exception_groups import errors_in
from groundhook.core.types.events import NodeStatus, TraceNode


@dataclass(frozen=True, kw_only=True)
class Traced:
    """What a trace is of: a turn, or a tool call outside of turns. `session` and `user` are "" if
    nobody named them; those of a tenant begin with it."""

    turn_id: str
    session: str = ""
    user: str = ""


# Called with each change of a step, and with what `Span.note` kept of it. It must not block.
ExportStep = Callable[[TraceNode, Mapping[str, Any]], None]

# Returns the function that receives the steps of a turn or tool call. Events report the same steps,
# without what `note` kept.
Export = Callable[[Traced], ExportStep]


@dataclass
class Recorder:
    """Calls `changed`, and `export` where traces are exported, with every change of a node of one
    turn; neither may block."""

    changed: Callable[[TraceNode], None]
    export: ExportStep | None = None
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def new_id(self) -> str:
        """Return the next id of a node: n1, n2, …"""
        return f"n{next(self._ids)}"


@dataclass
class Span:
    """A running step. `data` may be filled until it ends."""

    type: str
    label: str
    id: str
    parent: str
    data: dict[str, Any]
    status: NodeStatus = "running"
    noted: dict[str, Any] = field(default_factory=dict)
    _recorder: Recorder | None = None
    _began: float = field(default_factory=time.perf_counter)
    _took_ms: float = 0.0

    def fail(self, reason: str) -> None:
        """Mark the step as failed, without an exception."""
        self.status = "failed"
        self.data["error"] = reason

    def note(self, **values: Any) -> None:
        """Keep values of the step for an export of traces, which no event has: `input`, `output`,
        `messages`, `answer`, `documents`, `provider`, `model`, `tool`, `call_id`, as
        `host.output.trace_names` reads them. Without an export they are dropped."""
        if self._recorder is not None and self._recorder.export is not None:
            self.noted.update(values)

    def close(self) -> None:
        """End the step: completed, unless it failed. Ending it again keeps its duration."""
        if self.status == "running":
            self.status = "completed"
        self._took_ms = self._took_ms or (time.perf_counter() - self._began) * 1000
        self.report()

    def report(self) -> None:
        """Pass the current state of the step to the recorder."""
        if self._recorder is None:
            return
        node = TraceNode(
            id=self.id,
            parent=self.parent,
            type=self.type,
            label=self.label,
            status=self.status,
            duration_ms=round(self._took_ms, 3),
            data=dict(self.data),
        )
        self._recorder.changed(node)
        if self._recorder.export is not None:
            self._recorder.export(node, self.noted)


_recorder: ContextVar[Recorder | None] = ContextVar("recorder", default=None)
_here: ContextVar[Span | None] = ContextVar("here", default=None)


@contextmanager
def recording(
    changed: Callable[[TraceNode], None] | None, export: ExportStep | None = None
) -> Iterator[None]:
    """Return a context manager that records the spans that this task and the tasks it starts open
    inside the block. None: nothing is recorded, nor by a recording around the block."""
    recorder = _recorder.set(None if changed is None else Recorder(changed, export))
    here = _here.set(None)
    try:
        yield
    finally:
        _here.reset(here)
        _recorder.reset(recorder)


def open_span(
    type: str, label: str = "", *, parent: Span | None = None, data: dict[str, Any] | None = None
) -> Span:
    """Open a step under `parent`, or under the step that surrounds the caller, and return it;
    `close` ends it."""
    recorder = _recorder.get()
    above = parent or _here.get()
    node = Span(
        type,
        label,
        recorder.new_id() if recorder else "",
        above.id if above else "",
        {} if data is None else data,
        _recorder=recorder,
    )
    node.report()
    return node


def note(**values: Any) -> None:
    """Keep values for an export of traces on the step that surrounds the caller, if any."""
    if (here := _here.get()) is not None:
        here.note(**values)


class span:  # noqa: N801
    """A step of the turn as a context manager: completed when the block ends, failed when it raises
    or `fail` was called."""

    def __init__(self, type: str, label: str = "", **data: Any) -> None:
        self._about = type, label, data

    def __enter__(self) -> Span:
        type, label, data = self._about
        self._node = open_span(type, label, data=data)
        self._token = _here.set(self._node)
        return self._node

    def __exit__(self, _: object, exc: BaseException | None, __: object) -> None:
        if exc is not None:
            self._node.fail(_describe(exc))
        _here.reset(self._token)
        self._node.close()


def _describe(exc: BaseException) -> str:
    """Return an exception as text for a client: the same on every run, without memory addresses and
    names of tasks."""
    if isinstance(exc, asyncio.CancelledError):
        return "stopped"
    return "; ".join(str(each) or each.__class__.__name__ for each in errors_in(exc))
