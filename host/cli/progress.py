"""How far a long command is: a bar on a terminal, a line now and then elsewhere, nothing for
programs (`--json`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from groundhook.host.cli.report import Report
from groundhook.host.output.flow import one_line

SHOWN_NAME = 24  # characters of a document's id
EVERY_S = 10.0  # between two lines

Told = Callable[
    [int, int, str], None
]  # done, of how many in all (0: not known), document under way
Shown = Callable[[int], str]  # a number of what is counted


@contextmanager
def progress(
    report: Report, doing: str, shown: Shown, *columns: ProgressColumn
) -> Iterator[Told | None]:
    """What is to be told how far it is. `columns` show numbers on a terminal, `shown` elsewhere;
    the bar is gone when the block ends."""
    if report.err.is_terminal and not report.err.is_dumb_terminal:
        with _bar(report.err, *columns) as told:
            yield told
    else:
        yield None if report.json else Lines(report.err, doing, shown)


class Lines:
    """Writes a line at most every ten seconds, the first one after ten: a short command stays
    silent."""

    def __init__(
        self, err: Console, doing: str, shown: Shown, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._err = err
        self._doing = doing
        self._shown = shown
        self._now = now
        self._began = self._told = now()

    def __call__(self, done: int, total: int, document: str) -> None:
        now = self._now()
        if now - self._told < EVERY_S:
            return
        self._told = now
        parts = [
            f"{self._shown(done)} of {self._shown(total)} ({100 * done // total} %)"
            if total
            else self._shown(done)
        ]
        if 0 < done < total:
            minutes, seconds = divmod(round((now - self._began) * (total - done) / done), 60)
            parts.append(f"{minutes}:{seconds:02} left")
        line = f"{self._doing}: {', '.join([*parts, shortened(document)])}"
        self._err.print(line, soft_wrap=True, markup=False, highlight=False)


@contextmanager
def _bar(err: Console, *columns: ProgressColumn) -> Iterator[Told]:
    named = TextColumn(
        "{task.description}", markup=False, table_column=Column(width=SHOWN_NAME, no_wrap=True)
    )
    with Progress(
        named,
        BarColumn(bar_width=None),
        *columns,
        TimeRemainingColumn(),
        console=err,
        transient=True,
        expand=True,
    ) as bar:
        task = bar.add_task("", total=None)

        def told(done: int, total: int, document: str) -> None:
            bar.update(task, completed=done, total=total or None, description=shortened(document))

        yield told


class Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "", style="progress.data.speed")


def shortened(name: str) -> str:
    """A name that fits beside a bar: its end."""
    shown = one_line(name)
    return shown if len(shown) <= SHOWN_NAME else f"…{shown[1 - SHOWN_NAME :]}"
