"""Shows the events of a turn: as JSON lines, or in the terminal."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING

import anyio

from groundhook.core.exception_groups import unwrap_exception_groups
from groundhook.core.types.events import Event, Failed, SearchComplete, Warned
from groundhook.host.cli.edge import DEBUG_HINT
from groundhook.host.cli.hints import add_option, add_option_to_search, omit_hook
from groundhook.host.cli.report import Report
from groundhook.host.output.waiting import Waiting

if TYPE_CHECKING:
    from groundhook.host.output.terminal import Terminal

TICK_S = 1.0  # seconds


class View:
    """Shows events as JSON lines or in the terminal; leaving it ends the line of the answer."""

    def __init__(
        self, report: Report, *, trace: bool, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._report = report
        self._trace = trace
        self._now = now
        self._waiting = Waiting()

    @cached_property
    def _terminal(self) -> Terminal:
        # Imported here because JSON lines need no terminal.
        from groundhook.host.output.terminal import Terminal

        return Terminal(self._report.out, self._report.err, trace=self._trace)

    @asynccontextmanager
    async def telling_of_waits(self) -> AsyncIterator[None]:
        """Say while the block runs how long the model has been waited for."""

        async def tell() -> None:
            while True:
                await anyio.sleep(TICK_S)
                self.tick()

        with unwrap_exception_groups():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(tell)
                yield
                tasks.cancel_scope.cancel()

    def tick(self) -> None:
        """Show the line about a wait, if one is due."""
        self._waiting, line = self._waiting.line(self._now())
        if line and not self._report.json:
            self._terminal.wait(line)

    def __enter__(self) -> View:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._report.json:
            self._terminal.close()

    def show(self, event: Event) -> None:
        self._waiting = self._waiting.after(event, self._now())
        if isinstance(event, Failed) and event.code == "internal":
            # "the log has the traceback": on the command line only --debug shows a log.
            event = event.model_copy(update={"hint": DEBUG_HINT})
        if self._report.json and isinstance(event, Failed):
            self._report.failed(event)
            return
        if isinstance(event, Failed | Warned):
            event = add_option(event)
        elif isinstance(event, SearchComplete):
            event = add_option_to_search(event)
        if self._report.json:
            self._report.line(event)
        else:
            self._terminal.show(omit_hook(event))

    def note(self, text: str) -> None:
        """Show a remark on a new line; nothing with `json`."""
        if self._report.json:
            return
        from rich.text import Text

        self._terminal.close()  # writes the text that is held back, and ends its line
        self._report.show(Text(text, "dim"))
