"""The outermost edge: runs a command, and turns every error into a message and an exit code. This
is the only place that catches everything. A HostError becomes one clear line; a bug becomes one
line that names the option for more."""

from __future__ import annotations

import errno
import logging
import os
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress

from groundhook.core.errors import WAITS, HostError
from groundhook.core.exception_groups import errors_in
from groundhook.host.cli.report import Report

FAILED = 1
INTERRUPTED = 130
READER_GONE = 141
# The errors when standard output is a file that cannot be written.
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

Work = Callable[[], Awaitable[int]]

DEBUG_HINT = (
    "this is a bug in Groundhook or a plug-in; add --debug to the command to see the traceback"
)


def execute(work: Work, report: Report, *, debug: bool = False) -> int:
    """Run `work` on an event loop of its own and return the exit code of the process."""

    def on_a_loop() -> int:
        # Imported here because some commands need no event loop.
        import anyio

        return anyio.run(_run_woken_by_signals, work)

    return execute_without_loop(on_a_loop, report, debug=debug)


def execute_without_loop(work: Callable[[], int], report: Report, *, debug: bool = False) -> int:
    """Run `work` without an event loop and return the exit code of the process."""
    # Without --debug nothing is logged: every error is reported below, in one line.
    logging.basicConfig(level=logging.INFO if debug else logging.CRITICAL + 1, stream=sys.stderr)
    if not debug:
        _show_waits(report)
    try:
        code = work()
        sys.stdout.flush()  # here, where a failure to write is still reported
    except BaseException as exc:  # noqa: BLE001 - the outermost edge: nothing is above it
        return _report_errors(list(errors_in(exc)), report, debug=debug)
    return code


def _show_waits(report: Report) -> None:
    """Show what the command waits for: it would seem to hang."""

    class Shown(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            from groundhook.core.types.events import Warned

            report.warned(Warned(code="waiting", message=record.getMessage()))

    waits = logging.getLogger(WAITS)
    waits.handlers, waits.propagate = [Shown(logging.WARNING)], False
    waits.setLevel(logging.WARNING)


def print_text(text: str) -> int:
    """Write a text to standard output and return the exit code of the process."""

    def write() -> int:
        sys.stdout.write(text)
        return 0

    return execute_without_loop(write, Report(json=False))


async def _run_woken_by_signals(work: Work) -> int:
    """Run `work` on an event loop that every signal wakes. Ctrl-C just before the loop begins to
    wait would otherwise take effect only at its next event; a handler for any signal prevents
    that."""
    import asyncio

    with suppress(RuntimeError):  # not on the main thread, the only one that receives signals
        asyncio.get_running_loop().add_signal_handler(signal.SIGURG, lambda: None)
    return await work()


def _report_errors(errors: list[BaseException], report: Report, *, debug: bool) -> int:
    # Imported here because most commands succeed.
    from groundhook.core.error_events import error_events
    from groundhook.core.types.events import Failed

    if any(isinstance(error, KeyboardInterrupt) for error in errors):
        report.failed(Failed(code="interrupted", message="interrupted"))
        return INTERRUPTED
    # Such as `| head`: not worth a message.
    if any(isinstance(error, BrokenPipeError) for error in errors):
        _discard_output()
        return READER_GONE
    for error in errors:
        if isinstance(error, HostError):
            for event in error_events(error):
                report.failed(event)
        # With a file name it is about another file than standard output.
        elif isinstance(error, OSError) and error.errno in UNWRITABLE and error.filename is None:
            _discard_output()  # the unwritten output would fail again at exit
            report.failed(
                Failed(
                    code="output", message=f"standard output cannot be written: {error.strerror}"
                )
            )
        else:
            if debug:
                traceback.print_exception(error)
            message = f"internal error: {error.__class__.__name__}: {error}"
            report.failed(Failed(code="internal", message=message, hint=DEBUG_HINT))
    return FAILED


def _discard_output() -> None:
    """Redirect standard output to nothing, so that the interpreter's last flush does not fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
