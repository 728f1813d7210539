"""`groundhook test`: runs the tests of assistants, offline and with the same result every time."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import aclosing
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from groundhook.host.cli import options
from groundhook.host.cli.check import count
from groundhook.host.cli.edge import FAILED, execute
from groundhook.host.cli.report import Report
from groundhook.host.output.flow import visible
from groundhook.host.output.tree import duration
from groundhook.host.testing.runner import FileEnd, Result, open_runner

MARKS = {"passed": ("ok", "green"), "failed": ("FAILED", "red"), "skipped": ("skipped", "yellow")}


@click.command("test")
@click.argument("assistants", nargs=-1, metavar="[ASSISTANT]...")
@click.option(
    "--record", is_flag=True, help="Use the real sources and models, and record their answers."
)
@options.common
def command(
    assistants: tuple[str, ...], record: bool, app: Path, as_json: bool, debug: bool
) -> int:
    """Run the tests of ASSISTANTs, or of all: tests/*.test.ts in the assistant's folder.

    Searches and models answer as recorded in tests/*.cassette.json; only --record calls real ones.
    The exit code is 1 if a test fails.
    """
    report = Report(json=as_json)

    async def work() -> int:
        seen, began = Counter[str](), time.perf_counter()
        view = ResultView(report)
        async with (
            open_runner(app, record=record) as runner,
            aclosing(runner.run(assistants)) as results,
        ):
            async for result in results:
                if isinstance(result, Result):
                    seen[result.status] += 1
                view.show(result)
        view.summary(seen, (time.perf_counter() - began) * 1000)
        return FAILED if seen["failed"] else 0

    return execute(work, report, debug=debug)


class ResultView:
    """Results in the terminal, or as JSON lines."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._file = ""

    def show(self, result: Result | FileEnd) -> None:
        if isinstance(result, FileEnd):
            self._show_end(result)
            return
        if self._report.json:
            self._report.line(_as_json(result))
            return
        if result.file != self._file:
            self._file = result.file
            self._report.show(Text(result.file, "bold"))
        mark, style = MARKS[result.status]
        took = "" if result.status == "skipped" else f" ({duration(result.duration_ms)})"
        self._report.show(
            Text.assemble("  ", (mark, style), f" {visible(result.name or 'cannot be run')}{took}")
        )
        for line in result.console if result.status == "failed" else ():
            self._report.show(Text(f"      {visible(line)}", "dim"))
        if result.fault is not None:
            self._report.show(Text.assemble("    ", (visible(str(result.fault.place)), "cyan")))
            self._report.show(_indent(_describe_failure(result)))

    def summary(self, seen: Counter[str], took_ms: float) -> None:
        if self._report.json:
            counts = {status: seen[status] for status in MARKS}
            self._report.line({"type": "summary", **counts, "duration_ms": round(took_ms, 3)})
            return
        skipped = f", {seen['skipped']} skipped" if seen["skipped"] else ""
        style = "red" if seen["failed"] else "green"
        summary = Text(f"{seen['passed']} passed, {seen['failed']} failed{skipped}", style)
        self._report.show(summary.append(f" ({duration(took_ms)})", "default"))

    def _show_end(self, end: FileEnd) -> None:
        if self._report.json:
            if end.written or end.unused:
                cassette = {"cassette": end.cassette, "written": end.written, "unused": end.unused}
                self._report.line({"type": "cassette", "file": end.file, **cassette})
            return
        if end.written:
            self._report.show(Text(f"  recorded {end.cassette}", "dim"))
        if end.unused:
            self._report.show(
                Text(
                    f"  {count(end.unused, 'recording')} of {end.cassette} not used; --record drops"
                    " them",
                    "dim",
                )
            )


def _describe_failure(result: Result) -> str:
    """Return the failure in words: expected and actual value on lines of their own if they do not
    fit on one."""
    fault = result.fault
    assert fault is not None
    lines = [fault.message]
    if fault.expected:
        lines[0] += f" {fault.expected}" if "\n" not in fault.expected else f":\n{fault.expected}"
    if fault.expected or fault.actual:
        lines.append(
            f"actual: {fault.actual}" if "\n" not in fault.actual else f"actual:\n{fault.actual}"
        )
    lines += [f"called from {caller}" for caller in fault.callers]
    return "\n".join(lines)


def _indent(text: str) -> Text:
    return Text("\n".join(f"    {visible(line)}" for line in text.split("\n")))


def _as_json(result: Result) -> dict[str, Any]:
    fault = result.fault
    wrong = (
        {}
        if fault is None
        else {"message": fault.message, "expected": fault.expected, "actual": fault.actual}
    )
    return {
        "type": "test",
        "assistant": result.assistant,
        "file": result.file,
        "name": result.name,
        "status": result.status,
        "line": result.place.line,
        "column": result.place.column,
        "place": str(result.place),
        "duration_ms": result.duration_ms,
        "console": result.console,
        **wrong,
    }
