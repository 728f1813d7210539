"""Shows the progress of a long command: a bar on a terminal, otherwise a line every ten seconds,
nothing with `--json`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

from groundhook.host.cli.report import Report
from groundhook.host.output.flow import one_line

SHOWN_NAME = 24  # characters of a document's id
FIRST_S, EVERY_S = 5.0, 10.0  # seconds before the first line, and between two lines
MEASURED = 0.01  # share of the total from which the remaining time is estimated

_Shown = Callable[[int], str]  # a number of what is counted


class Progressed(Protocol):
    def __call__(self, done: int, total: int, document: str, passages: int = 0, /) -> None:
        """Report `done` of `total` (0: unknown), the current document or "", and the number of
        passages embedded, when they are counted."""
        ...


@contextmanager
def progress(
    report: Report, doing: str, shown: _Shown, *columns: ProgressColumn
) -> Iterator[Progressed | None]:
    """Yield the function that reports progress; None when nothing is shown. `columns` format
    numbers on a terminal, `shown` elsewhere. The bar disappears when the block ends."""
    # Standard error, since the result of the command is on standard output.
    if report.err.is_terminal and not report.err.is_dumb_terminal:
        with _bar(report.err, *columns) as update:
            yield update
    else:
        yield None if report.json else ProgressLines(report.err, doing, shown)


class ProgressLines:
    """Writes a line after five seconds and then at most every ten: a short command writes nothing.
    Speed and remaining time are measured from the first progress, without the time to start."""

    def __init__(
        self, err: Console, doing: str, shown: _Shown, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._err = err
        self._doing = doing
        self._shown = shown
        self._now = now
        self._next = now() + FIRST_S
        self._first: tuple[float, int, int] | None = None  # when, done, passages

    def __call__(self, done: int, total: int, document: str, passages: int = 0, /) -> None:
        now = self._now()
        if self._first is None and done:
            self._first = now, done, passages
        if now < self._next:
            return
        self._next = now + EVERY_S
        parts = [
            f"{self._shown(done)} of {self._shown(total)} ({100 * done // total} %)"
            if total
            else self._shown(done)
        ]
        began, done_then, passages_then = self._first or (now, done, passages)
        if passages > passages_then:
            parts.append(rate((passages - passages_then) / (now - began)))
        if left := time_left(now - began, done - done_then, done, total):
            parts.append(f"{left} left")
        if document:
            parts.append(shortened(document))
        line = f"{self._doing}: {', '.join(parts)}"
        self._err.print(line, soft_wrap=True, markup=False, highlight=False)


@contextmanager
def _bar(err: Console, *columns: ProgressColumn) -> Iterator[Progressed]:
    named = TextColumn(
        "{task.description}", markup=False, table_column=Column(width=SHOWN_NAME, no_wrap=True)
    )
    with Progress(
        named,
        BarColumn(bar_width=None),  # as wide as the other columns leave
        *columns,
        PassageRate(),
        TimeLeft(),
        console=err,
        transient=True,
        expand=True,
    ) as bar:
        task = bar.add_task("", total=None)

        def update(done: int, total: int, document: str, passages: int = 0, /) -> None:
            bar.update(
                task,
                completed=done,
                total=total or None,
                description=shortened(document),
                passages=passages,
            )

        yield update


class Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "", style="progress.data.speed")


class PassageRate(ProgressColumn):
    """The column with the passages per second since the first ones were embedded."""

    def __init__(self) -> None:
        super().__init__()
        self._first: tuple[float, int] | None = None

    def render(self, task: Task) -> Text:
        passages, now = task.fields.get("passages", 0), task.get_time()
        if self._first is None and passages:
            self._first = now, passages
        began, before = self._first or (now, passages)
        shown = rate((passages - before) / (now - began)) if passages > before else ""
        return Text(shown, style="progress.data.speed")


class TimeLeft(ProgressColumn):
    """The column with the remaining time. It is measured from the first progress, since the time
    before it, for loading a model or splitting a large file, says nothing about the rest."""

    def __init__(self) -> None:
        super().__init__()
        self._first: tuple[float, float] | None = None

    def render(self, task: Task) -> Text:
        done, now = task.completed, task.get_time()
        if self._first is None and done:
            self._first = now, done
        began, before = self._first or (now, done)
        left = time_left(now - began, done - before, done, task.total or 0)
        return Text(left or "-:--", style="progress.remaining")


def time_left(seconds: float, made: float, done: float, total: float) -> str:
    """Return the remaining time as text, given the `seconds` that `made` took; "" while less than a
    hundredth of the total is measured, since such an estimate can be wrong by hours."""
    if not 0 < total * MEASURED <= made or done >= total:
        return ""
    minutes, rest = divmod(round(seconds * (total - done) / made), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def rate(per_second: float) -> str:
    return f"{per_second:,.{0 if per_second >= 10 else 1}f} passages/s"


def shortened(name: str) -> str:
    """Return the end of a name that is too long for the line of a bar."""
    shown = one_line(name)
    return shown if len(shown) <= SHOWN_NAME else f"…{shown[1 - SHOWN_NAME :]}"
