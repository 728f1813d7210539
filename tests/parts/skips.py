"""What a run of the tests leaves out, in one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

LONGEST = 80  # characters of a reason: some have the output of a program


def summary(skipped: Iterable[Any]) -> str:
    """Return how many tests were skipped for which reason, the most frequent first. `skipped` are
    the `longrepr` of their reports: file, line and reason."""
    reasons = Counter(
        " ".join(str(reason).removeprefix("Skipped: ").split())[:LONGEST]
        for _file, _line, reason in skipped
    )
    listed = "; ".join(f"{count} × {reason}" for reason, count in reasons.most_common())
    return f"skipped: {listed}"
