"""How far a long command is, where nobody draws a bar."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.filesize import decimal

from groundhook.host.cli.progress import Lines, progress
from groundhook.host.cli.report import Report


def test_a_line_comes_every_ten_seconds_and_says_how_long_it_will_take() -> None:
    out, clock = io.StringIO(), iter(range(0, 1000, 4))
    told = Lines(Console(file=out), "adding to docs", decimal, now=lambda: next(clock))
    for done in range(1, 9):  # the clock says 4, 8, 12, …
        told(done * 100_000, 1_000_000, f"{'long/' * 10}[b]{done}.md")
    assert out.getvalue().splitlines() == [
        "adding to docs: 300.0 kB of 1.0 MB (30 %), 0:28 left, …/long/long/long/[b]3.md",
        "adding to docs: 600.0 kB of 1.0 MB (60 %), 0:16 left, …/long/long/long/[b]6.md",
    ]


def test_what_is_not_known_in_all_is_counted() -> None:
    out, clock = io.StringIO(), iter([0, 90, 180])
    told = Lines(
        Console(file=out),
        "importing notes",
        lambda number: f"{number} chunks",
        now=lambda: next(clock),
    )
    told(7, 0, "a.md")
    told(80, 80, "b.md")
    assert (
        out.getvalue()
        == "importing notes: 7 chunks, a.md\nimporting notes: 80 chunks of 80 chunks (100 %),"
        " b.md\n"
    )


@pytest.mark.parametrize("json", [True, False])
def test_programs_are_told_nothing(json: bool) -> None:
    with progress(
        Report(json=json), "adding", str
    ) as told:  # the tests' standard error is no terminal
        assert (told is None) == json
