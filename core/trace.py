"""The trace of a turn: `with span("search", label=…) as node:` opens a step under the surrounding
one; `open_span(…)` opens a step without a block, which `close` ends.

Parents are found through a context variable, which tasks inherit; the run does not depend on it.
Without a recorder a span is not reported and costs almost nothing.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from groundhook.core.exception_groups import errors_in
from groundhook.core.types.events import NodeStatus, TraceNode


@dataclass
class Recorder:
    """Calls `changed` with every change of a node of one turn; `changed` must not block."""

    changed: Callable[[TraceNode], None]
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
    _recorder: Recorder | None = None
    _began: float = field(default_factory=time.perf_counter)
    _took_ms: float = 0.0

    def fail(self, reason: str) -> None:
        """Mark the step as failed, without an exception."""
        self.status = "failed"
        self.data["error"] = reason

    def close(self) -> None:
        """End the step: completed, unless it failed. Ending it again keeps its duration."""
        if self.status == "running":
            self.status = "completed"
        self._took_ms = self._took_ms or (time.perf_counter() - self._began) * 1000
        self.report()

    def report(self) -> None:
        """Pass the current state of the step to the recorder."""
        if self._recorder is not None:
            self._recorder.changed(
                TraceNode(
                    id=self.id,
                    parent=self.parent,
                    type=self.type,
                    label=self.label,
                    status=self.status,
                    duration_ms=round(self._took_ms, 3),
                    data=dict(self.data),
                )
            )


_recorder: ContextVar[Recorder | None] = ContextVar("recorder", default=None)
_here: ContextVar[str] = ContextVar("here", default="")


# Receives the steps of turns and tool calls by their id; events report the same steps.
Export = Callable[[str], Callable[[TraceNode], None]]


@contextmanager
def recording(changed: Callable[[TraceNode], None] | None) -> Iterator[None]:
    """Return a context manager that records the spans that this task and the tasks it starts open
    inside the block. None: nothing is recorded, nor by a recording around the block."""
    recorder = _recorder.set(None if changed is None else Recorder(changed))
    here = _here.set("")
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
    above = _here.get() if parent is None else parent.id
    node = Span(
        type,
        label,
        recorder.new_id() if recorder else "",
        above,
        {} if data is None else data,
        _recorder=recorder,
    )
    node.report()
    return node


class span:  # noqa: N801
    """A step of the turn as a context manager: completed when the block ends, failed when it raises
    or `fail` was called."""

    def __init__(self, type: str, label: str = "", **data: Any) -> None:
        self._about = type, label, data

    def __enter__(self) -> Span:
        type, label, data = self._about
        self._node = open_span(type, label, data=data)
        self._token = _here.set(self._node.id)
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
