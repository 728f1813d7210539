"""The four toolkits, and what the collections do alone: what is found, and how long it takes. A
call above `host.search` of the same question has its arguments checked, its answer built and its
sources cited; `searchDatasets` also counts all results, and `search` of memories asks which of them
are superseded, in a request of its own. What is found in another language is the embedding model's
limit: a model that translates the intent finds more sections of books (the rows "translated").
Words that mean nothing find datasets and sections too, and the answer says that they are near
matches only: a threshold that left them out would lose right answers in other languages. What an
export of traces adds to a turn, the processor spends on spans, whether or not an endpoint answers.

`python -m bench.toolkits [KIND ...] [--data DIR]`: each module of this folder with a function
`measure(data)` is a kind. `data` is a folder with collections in BEIR's layout, or None; what needs
one is left out without it.
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
