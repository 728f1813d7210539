"""How far a long command is, where nobody draws a bar."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.filesize import decimal

from groundhook.host.cli.progress import ProgressLines, progress
from groundhook.host.cli.report import Report


def test_a_line_comes_after_five_seconds_and_then_every_ten_with_the_speed_and_the_time_left() -> (
    None
):
    out, clock = io.StringIO(), iter(range(0, 1000, 4))
    lines = ProgressLines(Console(file=out), "adding to docs", decimal, now=lambda: next(clock))
    for done in range(1, 9):  # the clock shows 4, 8, 12, …
        lines(done * 100_000, 1_000_000, f"{'long/' * 10}[b]{done}.md", done * 200)
    assert out.getvalue().splitlines() == [
        "adding to docs: 200.0 kB of 1.0 MB (20 %), 50 passages/s, 0:32 left, …/long/long/long/[b]2.md",
        "adding to docs: 500.0 kB of 1.0 MB (50 %), 50 passages/s, 0:20 left, …/long/long/long/[b]5.md",
        "adding to docs: 800.0 kB of 1.0 MB (80 %), 50 passages/s, 0:08 left, …/long/long/long/[b]8.md",
    ]


def test_the_time_of_a_start_does_not_count_against_the_deadline() -> None:
    out, clock = io.StringIO(), iter([0, 1, 4, 6])
    lines = ProgressLines(Console(file=out), "adding", str, now=lambda: next(clock))
    lines(0, 100, "a.md", 0)
    lines(10, 100, "a.md", 1)
    lines(30, 100, "a.md", 3)
    assert out.getvalue() == "adding: 30 of 100 (30 %), 1.0 passages/s, 0:07 left, a.md\n"


def test_the_start_of_one_big_file_is_no_measure_of_the_time_left() -> None:
    out, clock = io.StringIO(), iter([0, 40, 55, 70])
    lines = ProgressLines(Console(file=out), "adding", decimal, now=lambda: next(clock))
    for done in (100, 2_000, 2_000_100):  # bytes of 60 MB: the file is read and split at first
        lines(done, 60_000_000, "big.md")
    assert [line.partition(", ")[2] for line in out.getvalue().splitlines()] == [
        "big.md",
        "big.md",
        "14:30 left, big.md",
    ]


def test_what_is_not_known_in_all_is_counted() -> None:
    out, clock = io.StringIO(), iter([0, 90, 180])
    lines = ProgressLines(
        Console(file=out),
        "importing notes",
        lambda number: f"{number} chunks",
        now=lambda: next(clock),
    )
    lines(7, 0, "a.md")
    lines(80, 80, "")
    assert out.getvalue().splitlines() == [
        "importing notes: 7 chunks, a.md",
        "importing notes: 80 chunks of 80 chunks (100 %)",
    ]


@pytest.mark.parametrize("json", [True, False])
def test_programs_get_no_hint(json: bool) -> None:
    # The tests' standard error is not a terminal.
    with progress(Report(json=json), "adding", str) as lines:
        assert (lines is None) == json
