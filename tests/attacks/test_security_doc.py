"""docs/security.md promises what tests show: every row of its tables names a test here, and every
attack here has its row."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from groundhook.hooks.child import KEPT, MEGABYTE
from groundhook.hooks.pool import COMPILER_SECONDS, MOST_ALONE

ROOT = Path(__file__).parents[2]
DOC = ROOT / "docs/security.md"


def rows() -> list[list[str]]:
    lines = [line for line in DOC.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in cells if row[0] != "attack" and not set(row[0]) <= set("-|")]


def attacks() -> set[str]:
    return {
        node.name
        for path in Path(__file__).parent.glob("test_*.py")
        if path.name != Path(__file__).name
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef)
        and node.name.startswith("test_")
    }


def test_every_row_has_its_test_and_every_attack_its_row() -> None:
    assert [row for row in rows() if len(row) != 4] == []
    assert sorted(row[3] for row in rows()) == sorted(attacks())


def test_files_that_the_page_points_at_are_there() -> None:
    named = re.findall(r"`((?:tests|docs)/[\w/]+(?:\.py|\.md)?)`", DOC.read_text(encoding="utf-8"))
    assert len(named) > 4
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_sum_of_memory_is_made_of_the_figures_of_the_code() -> None:
    text = DOC.read_text(encoding="utf-8").partition("## What hooks can hold")[2]
    assert f"(70 + {KEPT // MEGABYTE}) MB" in text
    assert f"at most {MOST_ALONE} × `hooks.workers`" in text
    assert f"until {COMPILER_SECONDS:.0f} s after" in text
