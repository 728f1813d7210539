"""Handles Ctrl-C: during long work it is acknowledged at once, and the command ends with a message
about what was kept; a command that goes on until then just ends."""

from __future__ import annotations

import signal

import anyio
import anyio.abc

from groundhook.core.errors import HostError
from groundhook.core.exception_groups import errors_in
from groundhook.core.types.events import Failed
from groundhook.host.cli.edge import INTERRUPTED, Work
from groundhook.host.cli.report import Report
from groundhook.host.cli.streams import end_input


async def stoppable(work: Work, report: Report, after: str) -> int:
    """Run `work` and return its exit code. Ctrl-C cancels it; the error message then ends with
    `after`: what was kept and what to do."""
    code: int | None = None
    stopped = anyio.Event()
    try:
        async with anyio.create_task_group() as tasks:
            await tasks.start(_cancel_on_interrupt, tasks.cancel_scope, stopped, report)
            code = await work()
            tasks.cancel_scope.cancel()
    except (HostError, BaseExceptionGroup) as exc:
        # Input that was stopped ends in the middle of a document, which raises an error of its own.
        if not stopped.is_set() or not all(isinstance(leaf, HostError) for leaf in errors_in(exc)):
            raise
    if code is None:
        report.failed(Failed(code="interrupted", message=f"interrupted; {after}"))
        return INTERRUPTED
    return code


async def cancel_on_signals(scope: anyio.CancelScope, *wanted: signal.Signals) -> None:
    """Cancel `scope` on the first of the signals: the end of a command that goes on until then."""
    with anyio.open_signal_receiver(*wanted) as signals:
        async for _ in signals:
            scope.cancel()
            return


async def _cancel_on_interrupt(
    scope: anyio.CancelScope,
    stopped: anyio.Event,
    report: Report,
    *,
    task_status: anyio.abc.TaskStatus[None],
) -> None:
    """Cancel `scope` on Ctrl-C and print a message at once, since work under way takes a moment to
    stop."""
    with anyio.open_signal_receiver(signal.SIGINT) as signals:
        task_status.started()
        async for _ in signals:
            report.err.print("stopping …")
            stopped.set()
            scope.cancel()
            end_input()  # a thread that reads a pipe does not notice the cancellation
            return  # a second Ctrl-C has its usual effect
