"""Writes a command's output: text for people, or JSON lines for programs. With `json`, standard
output has one event or result per line, errors included, and nothing else; messages for people are
on standard error in both cases.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from groundhook.core.json_lines import line
from groundhook.host.output.flow import one_line

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console, RenderableType

    from groundhook.core.types.events import Failed, Warned


class Report:
    """The two streams of this process. The library that writes to terminals is imported when
    something is shown for people."""

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
        """Write a JSON line."""
        sys.stdout.buffer.write(line(value).encode("utf-8"))
        sys.stdout.buffer.flush()

    def show(self, what: RenderableType) -> None:
        """Write something for people; nothing with `json`."""
        if not self.json:
            self.out.print(what, soft_wrap=not self.out.is_terminal)

    def rows(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Write a table to a terminal; to other outputs a line for each row, its cells separated by
        tabs; nothing with `json`."""
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
        """Write an error to standard error, and as an event with `json`."""
        # Imported here because most commands end well.
        from groundhook.host.cli.hints import add_option

        self._complain("error", event, "red")
        if self.json:
            self.line(add_option(event))

    def warned(self, event: Warned) -> None:
        """Write a warning to standard error."""
        self._complain("warning", event, "yellow")

    def _complain(
        self, kind: Literal["error", "warning"], event: Failed | Warned, style: str
    ) -> None:
        from groundhook.host.cli.hints import add_option
        from groundhook.host.output.single_lines import problem_line

        self.err.print(problem_line(kind, add_option(event), style), soft_wrap=True)


def report_wrong_usage(message: str, command: str, *, json: bool) -> None:
    """Report a wrong command line like every other error."""
    from groundhook.core.types.events import Failed

    Report(json=json).failed(Failed(code="usage", message=message, hint=f"see `{command} --help`"))
