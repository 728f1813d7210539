"""What toolkits add to the start of `groundhook chat`: for an assistant without tools in an app
that has the four samples, and for an assistant that lists them.

Times are those of the processor, of whole processes that take turns: other programs make them
little longer.
"""

from __future__ import annotations

import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench.figures import figure

REPOSITORY = Path(__file__).parents[2]
GROUNDHOOK = str(Path(sys.executable).with_name("groundhook"))
SAMPLES = ("catalogue", "documents", "learning", "memory")
ROUNDS = 15


async def measure(_: Path | None) -> None:
    """Print the figures of the start."""
    with tempfile.TemporaryDirectory() as folder:
        alone, beside = Path(folder) / "alone", Path(folder) / "beside"
        for root in (alone, beside):
            _write(root / "assistants/plain", {"connector": "extractive"})
        for name in SAMPLES:
            shutil.copytree(REPOSITORY / "assistants" / name, beside / "assistants" / name)
        every = {"connector": "extractive", "tools": [f"agents.{each}.{each}" for each in SAMPLES]}
        _write(beside / "assistants/every", every)
        runs = ((alone, "plain"), (beside, "plain"), (beside, "every"))
        took: list[list[float]] = [[] for _ in runs]
        for _round in range(ROUNDS + 1):  # the first compiles what it imports
            for each, (app, assistant) in zip(took, runs, strict=True):
                each.append(_seconds(app, assistant) * 1000)
    bare, beside_ms, listing = (statistics.median(each[1:]) for each in took)
    figure(
        "groundhook chat in an app with four toolkits, processor time of the process",
        beside_ms,
        "ms",
        bare,
        "in one without",
    )
    figure(
        "  with an assistant that lists them",
        listing,
        "ms",
        bare,
        "an assistant without tools, in an app without",
    )


def _seconds(app: Path, assistant: str) -> float:
    """Return the processor time of a turn from the command line."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [GROUNDHOOK, "chat", assistant, "hello", "--no-search", "--json"]
    subprocess.run(command, cwd=app, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _write(folder: Path, package: Mapping[str, object]) -> None:
    folder.mkdir(parents=True)
    (folder / "package.yao").write_text(json.dumps(package), encoding="utf-8")
