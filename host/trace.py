"""The trace of a turn: `with span("search", label=…) as node:` opens a step under the one that surrounds it.

Parents are found through a context variable, which tasks inherit; nothing that the run depends on travels in it. Where no
recorder is set, a span costs next to nothing and goes nowhere.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from host.types.events import NodeStatus, TraceNode


@dataclass
class Recorder:
    """Hands every change of a node of one turn to `changed`, which must not block."""

    changed: Callable[[TraceNode], None]
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def new_id(self) -> str:
        return f"n{next(self._ids)}"


@dataclass
class Span:
    """A step that is under way. `data` may be filled until it ends; `fail` marks it failed without an exception."""

    type: str
    label: str
    id: str
    parent: str
    data: dict[str, Any]
    status: NodeStatus = "running"

    def fail(self, reason: str) -> None:
        self.status = "failed"
        self.data["error"] = reason


_recorder: ContextVar[Recorder | None] = ContextVar("recorder", default=None)
_here: ContextVar[str] = ContextVar("here", default="")


@contextmanager
def recording(changed: Callable[[TraceNode], None]) -> Iterator[None]:
    """Record the spans opened inside, in this task and those it starts."""
    recorder, here = _recorder.set(Recorder(changed)), _here.set("")
    try:
        yield
    finally:
        _here.reset(here)
        _recorder.reset(recorder)


@contextmanager
def span(type: str, label: str = "", **data: Any) -> Iterator[Span]:
    """A step of the turn: completed when the block ends, failed when it raises or `fail` was called."""
    recorder = _recorder.get()
    node = Span(type, label, recorder.new_id() if recorder else "", _here.get(), data)
    began = time.perf_counter()

    def tell() -> None:
        if recorder is not None:
            elapsed = (time.perf_counter() - began) * 1000
            recorder.changed(
                TraceNode(
                    id=node.id,
                    parent=node.parent,
                    type=node.type,
                    label=node.label,
                    status=node.status,
                    duration_ms=0.0 if node.status == "running" else round(elapsed, 3),
                    data=dict(node.data),
                )
            )

    token = _here.set(node.id)
    tell()
    try:
        yield node
    except BaseException as exc:
        node.fail(str(exc) or type_name(exc))
        raise
    finally:
        if node.status == "running":
            node.status = "completed"
        _here.reset(token)
        tell()


def type_name(exc: BaseException) -> str:
    """The name of an exception's class, for those that carry no message (a cancelled task, for one)."""
    return exc.__class__.__name__
