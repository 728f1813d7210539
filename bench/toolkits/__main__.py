"""Measure the toolkits: `python -m bench.toolkits [KIND ...] [--data DIR]`.

Each module of this folder with a function `measure(data)` is a kind. `data` is a folder with
collections in BEIR's layout, or None; what needs one is left out without it.
"""

from __future__ import annotations

import argparse
import pkgutil
from importlib import import_module
from pathlib import Path

import anyio

import bench.toolkits


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.toolkits", description=__doc__)
    kinds = [each.name for each in pkgutil.iter_modules(bench.toolkits.__path__)]
    kinds.remove("__main__")
    parser.add_argument("kinds", nargs="*", choices=[*kinds, []], metavar="KIND")
    parser.add_argument("--data", type=Path)
    given = parser.parse_args()
    for kind in given.kinds or kinds:
        anyio.run(import_module(f"bench.toolkits.{kind}").measure, given.data)


if __name__ == "__main__":
    main()
