"""The product's modules, parsed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


PRODUCT = ("core", "hooks", "handlers", "rerankers", "toolkits", "host")


def modules(*roots: str) -> Iterator[tuple[str, Path]]:
    for root in roots:
        for path in sorted((ROOT / root).rglob("*.py")):
            yield ".".join(path.relative_to(ROOT).with_suffix("").parts), path


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))
