"""Build bench/README.md, and the table of the README, from the figures of the benches.

    make figures

runs every bench into build/figures/NAME.jsonl and then this; `make figures NAME=turn` runs one and
changes its section and rows alone. A figure that the README shows and its bench did not print is an
error.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "build/figures"
PAGE, README = ROOT / "bench/README.md", ROOT / "README.md"
HEADING = "## `make bench NAME={}`"
SECTION = re.compile(rf"^{HEADING.format('([a-z_]+)')}\n", re.MULTILINE)
HEAD = "| what | measured | floor of the same run | ratio |\n|---|---|---|---|\n"
# The figures of the README: of each bench, the first figure that begins so.
SHOWN = {
    "turn": (
        "turn without a hook: request to first",
        "turn with a hook: request to first",
        "groundhook chat: start",
    ),
    "serve": ("a turn over HTTP: what HTTP adds", "a turn kept: what the store adds"),
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
    """Three digits that mean something; a count ("of 69") is whole."""
    digits = 0 if abs(value) >= 100 or unit.startswith("of ") else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f} {'µs' if unit == 'us' else unit}"


def read(name: str) -> list[Figure]:
    lines = (FIGURES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    known: Sequence[dict[str, Any]] = [json.loads(line) for line in lines]
    return [Figure(**line) for line in known if "figure" in line]


def with_rows(readme: str, name: str, figures: Sequence[Figure]) -> str:
    """Return the README with the rows of a bench replaced: for each beginning in SHOWN the first
    figure that has it. Raises LookupError without such a figure, or without a row to replace."""
    for beginning in SHOWN.get(name, ()):
        row = next((one.row() for one in figures if one.figure.startswith(beginning)), None)
        if row is None:
            raise LookupError(
                f"no figure of bench.{name} begins with {beginning!r}: correct SHOWN in"
                f" {Path(__file__).name}"
            )
        before, found, rest = readme.partition(f"\n| {beginning}")
        if not found:
            raise LookupError(f"no row in {README.name} begins with {beginning!r}")
        readme = f"{before}\n{row}{rest.partition(chr(10))[2]}"
    return readme


def section(name: str, figures: Sequence[Figure]) -> str:
    """Return the section of a bench: what it measures, when and where that was, and the rows."""
    package = (PAGE.parent / name / "__main__.py").exists()
    module = importlib.import_module(f"bench.{name}.__main__" if package else f"bench.{name}")
    about = (inspect.getdoc(module) or "").split("\n\n")[0]
    taken = datetime.fromtimestamp((FIGURES / f"{name}.jsonl").stat().st_mtime, UTC)
    where = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    rows = "".join(map(Figure.row, figures))
    return f"{about}\n\nTaken on {taken:%d %B %Y}: {where}.\n\n{HEAD}{rows}"


def with_sections(page: str, renewed: Mapping[str, str]) -> str:
    """Return the page with the sections of some benches replaced; a new section is the last."""
    opening, *parts = SECTION.split(page)
    sections = {**dict(zip(parts[::2], parts[1::2], strict=True)), **renewed}
    texts = (f"{HEADING.format(name)}\n\n{text.strip()}" for name, text in sections.items())
    return "\n\n".join((opening.strip(), *texts)) + "\n"


def main(names: Sequence[str]) -> None:
    readme = README.read_text(encoding="utf-8")
    renewed = {}
    for name in names:
        figures = read(name)
        renewed[name] = section(name, figures)
        readme = with_rows(readme, name, figures)
    PAGE.write_text(with_sections(PAGE.read_text(encoding="utf-8"), renewed), encoding="utf-8")
    README.write_text(readme, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
