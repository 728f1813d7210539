"""Build bench/README.md, and the table of the README, from the figures of the benches.

    make figures

runs every bench into build/figures/NAME.jsonl and then this. The section of a bench that did not
run is omitted; a figure that the README shows and no bench printed is an error.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import platform
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "build/figures"
PAGE, README = ROOT / "bench/README.md", ROOT / "README.md"
TABLE = re.compile(r"(?<=<!-- figures -->\n).*?(?=<!-- end of figures -->)", re.DOTALL)
HEAD = "| what | measured | floor of the same run | ratio |\n|---|---|---|---|\n"
# The five figures of the README: of each bench, the first figure that begins so.
SHOWN = {
    "turn": (
        "turn without a hook: request to first",
        "turn with a hook: request to first",
        "groundhook chat: start",
    ),
    "hooks": ("fresh isolate, 200-line hook",),
    "web": ("web search through the host",),
}


@dataclass(frozen=True)
class Figure:
    """A line that a bench printed, as `bench.figures.figure` describes it."""

    figure: str
    value: float
    unit: str
    floor: float | None
    floor_is: str
    ratio: float | None

    def row(self) -> str:
        floor = "–" if self.floor is None else f"{_format(self.floor, self.unit)}, {self.floor_is}"
        name = f"… {self.figure.strip()}" if self.figure.startswith(" ") else self.figure
        return (
            f"| {name} | {_format(self.value, self.unit)} | {floor} |"
            f" {'–' if self.ratio is None else f'{self.ratio:.2f}'} |\n"
        )


def _format(value: float, unit: str) -> str:
    """Three digits that mean something."""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f} {'µs' if unit == 'us' else unit}"


def read(name: str) -> list[Figure]:
    lines = (FIGURES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    known: Sequence[dict[str, Any]] = [json.loads(line) for line in lines]
    return [Figure(**line) for line in known if "figure" in line]


def shown(name: str, figures: Sequence[Figure]) -> list[Figure]:
    """Return the figures of a bench that the README shows, the first for each beginning in SHOWN.
    Raises LookupError when one is missing."""
    rows = []
    for beginning in SHOWN.get(name, ()):
        found = next((one for one in figures if one.figure.startswith(beginning)), None)
        if found is None:
            raise LookupError(
                f"no figure of bench.{name} begins with {beginning!r}: correct SHOWN in"
                f" {Path(__file__).name}"
            )
        rows.append(found)
    return rows


def where() -> str:
    """The machine, in a sentence."""
    cores = os.cpu_count()
    return (
        f"Taken on {datetime.now(UTC):%d %B %Y}: {cores} cores, {platform.machine()}, Python"
        f" {platform.python_version()}."
    )


def main(names: Sequence[str]) -> None:
    sections, rows = [], []
    for name in names:
        if not (FIGURES / f"{name}.jsonl").exists():
            print(f"bench.{name} has no figures; its section is omitted", file=sys.stderr)
            continue
        figures = read(name)
        about = (inspect.getdoc(importlib.import_module(f"bench.{name}")) or "").partition("\n\n")[
            0
        ]
        sections.append(
            f"## `make bench NAME={name}`\n\n{about}\n\n{HEAD}{''.join(map(Figure.row, figures))}"
        )
        rows += shown(name, figures)
    if not sections:
        raise SystemExit(f"there are no figures in {FIGURES}: `make figures` takes them")
    opening = PAGE.read_text(encoding="utf-8").partition("\n## ")[0]
    opening = re.sub(r"\nTaken on .*", f"\n{where()}", opening).rstrip()
    PAGE.write_text("\n".join((f"{opening}\n", *sections)), encoding="utf-8")
    table = f"{HEAD}{''.join(map(Figure.row, rows))}"
    readme = README.read_text(encoding="utf-8")
    README.write_text(TABLE.sub(lambda _: table, readme), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
