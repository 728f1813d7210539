"""The line about skipped tests."""

from __future__ import annotations

from tests.parts.skips import LONGEST, summary


def test_tests_that_were_skipped_for_one_reason_are_counted_together() -> None:
    caddy, npm = "Skipped: caddy is not installed", "Skipped: npm is not installed"
    skipped = [("a.py", 1, npm), ("b.py", 2, caddy), ("c.py", 3, npm)]
    assert summary(skipped) == "skipped: 2 × npm is not installed; 1 × caddy is not installed"


def test_the_output_of_a_program_stays_one_short_line() -> None:
    assert summary([("a.py", 1, "Skipped: no server: " + "error\n" * 100)]).count("\n") == 0
    assert len(summary([("a.py", 1, "x" * 1000)])) < LONGEST + 20
