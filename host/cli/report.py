"""Where a command's output goes: people read a terminal, programs read JSON lines.

With `json`, standard output has one event or result to a line and nothing else, errors included;
what people should know is on standard error either way.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from groundhook.host.core.json_lines import line
from groundhook.host.output.flow import one_line

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console, RenderableType

    from groundhook.host.core.types.events import Failed, Warned


class Report:
    """The two streams of this process. The library that writes to terminals is imported when
    something is shown: with `json` that is seldom."""

    def __init__(self, *, json: bool) -> None:
        self.json = json

    @cached_property
    def out(self) -> Console:
        from groundhook.host.output.terminal import console

        return console(sys.stdout)

    @cached_property
    def err(self) -> Console:
        from groundhook.host.output.terminal import console

        return console(sys.stderr)

    def line(self, value: BaseModel | Mapping[str, Any]) -> None:
        """A JSON line, at once."""
        sys.stdout.buffer.write(line(value).encode("utf-8"))
        sys.stdout.buffer.flush()

    def show(self, what: RenderableType) -> None:
        """Something for people; nothing with `json`."""
        if not self.json:
            self.out.print(what, soft_wrap=not self.out.is_terminal)

    def rows(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """A table in a terminal; for other programs a line for each row, with a tab between its
        cells and nothing padded; nothing with `json`."""
        if self.json or not rows:
            return
        if not sys.stdout.isatty():
            for cells in rows:
                sys.stdout.write("\t".join(one_line(str(cell)) for cell in cells).rstrip() + "\n")
            return
        # Imported here because only terminals need a library that measures and colours text.
        from groundhook.host.cli.tables import table

        self.show(table(columns, rows))

    def failed(self, event: Failed) -> None:
        """An error: on standard error, and as an event with `json`."""
        self._complain("error", event, "red")
        if self.json:
            self.line(event)

    def warned(self, event: Warned) -> None:
        """A warning, on standard error."""
        self._complain("warning", event, "yellow")

    def _complain(
        self, kind: Literal["error", "warning"], event: Failed | Warned, style: str
    ) -> None:
        from groundhook.host.output.terminal import problem_line

        self.err.print(problem_line(kind, event, style), soft_wrap=True)


def report_wrong_usage(message: str, command: str, *, json: bool) -> None:
    """Report a wrong command line like every other error."""
    from groundhook.host.core.types.events import Failed

    Report(json=json).failed(Failed(code="usage", message=message, hint=f"see `{command} --help`"))
