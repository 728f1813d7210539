"""The bundled embedding model on its two engines, in one run over the same texts: onnxruntime, and
the small engine.

    python -m bench.embedder [vectors] [documents] [demo] [folder] [MEGABYTES]

`vectors`: texts of 20, 110 and 330 tokens, questions, the first question of a process, and memory.
`documents`: `kb add` of the files that `make demo` adds, this repository's documentation, with each
engine. `demo`: the commands of `make demo` in an installed environment, from an empty knowledge
base. `folder`: `kb add` of MEGABYTES of text, 1 by default, from which the time of 10 MB is
estimated. Without the name of a part, all of them. Figures are JSON lines on standard output; the
floor is the small engine.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import anyio

from bench.answers import APP, COLLECTION
from bench.figures import figure
from bench.kb_adding import added
from groundhook.handlers.kb.embedders.builtin import BuiltinEmbedder
from groundhook.handlers.kb.embedders.e5.engine import E5Engine, load_engine
from groundhook.handlers.kb.ingest.throttle import CORES

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted(ROOT.glob("docs/*.md"))]
SMALL = "the small engine"
TEXTS, ROUNDS = 10, 3
MEGABYTE = 1_000_000
FRESH = 9  # processes started with each engine
QUESTION = """
import os, resource
from groundhook.handlers.kb.embedders.e5.engine import load_engine
load_engine(small={small}).engine.query("How long does green tea steep?")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, flush=True)
os._exit(0)
"""
Fresh = tuple[float, float]


def texts(tokens: int, count: Callable[[str], int]) -> Iterator[str]:
    """Pieces of the documentation, each with that number of tokens."""
    words = " ".join(path.read_text(encoding="utf-8") for path in DOCUMENTS).split()
    start = 0
    while start < len(words):
        size = 1
        while start + size < len(words) and count(" ".join(words[start : start + size])) < tokens:
            size += 1
        yield " ".join(words[start : start + size])
        start += size


def vectors() -> None:
    began = time.perf_counter()
    fast = load_engine().engine
    figure("engine loaded", (time.perf_counter() - began) * 1000, "ms")
    small = load_engine(small=True).engine
    for tokens in (20, 110, 330):
        given = list(islice(texts(tokens, fast.token_count), TEXTS))
        rate = {engine: TEXTS / processor_s(engine, given) for engine in (fast, small)}
        figure(
            f"texts of {tokens} tokens embedded, by processor time",
            rate[fast],
            "texts/s",
            rate[small],
            SMALL,
        )
        near = [float(fast.passage(text) @ small.passage(text)) for text in given]
        figure(f"cosine of both engines' vectors, {tokens} tokens, least", min(near), "")
    questions = list(islice(texts(14, fast.token_count), 60))
    figure("question embedded, p50", p50(fast, questions), "ms", p50(small, questions), SMALL)
    fresh = {False: list[Fresh](), True: list[Fresh]()}
    for _ in range(FRESH):  # in turns, so that a busy moment meets both
        for of_small, runs in fresh.items():
            runs.append(fresh_process(small=of_small))
    for at, (what, unit) in enumerate(
        (("first question of a process, from its start, p50", "ms"), ("memory of a process", "MB"))
    ):
        mine, other = (statistics.median(run[at] for run in fresh[each]) for each in (False, True))
        figure(what, mine, unit, other, SMALL)


def fresh_process(*, small: bool) -> Fresh:
    """Start a process that embeds one question → milliseconds, megabytes."""
    began = time.perf_counter()
    run = subprocess.run(
        [sys.executable, "-c", QUESTION.format(small=small)], stdout=subprocess.PIPE, check=True
    )
    return (time.perf_counter() - began) * 1000, float(run.stdout) / 1024


def processor_s(engine: E5Engine, given: Sequence[str]) -> float:
    """The least of some rounds, in seconds of processor time."""
    taken = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for text in given:
            engine.passage(text)
        taken.append(time.process_time() - began)
    return min(taken)


def p50(engine: E5Engine, questions: Sequence[str]) -> float:
    taken = []
    for question in questions:
        began = time.perf_counter()
        engine.query(question)
        taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)


async def documents(state: Path) -> None:
    rates: dict[bool, Any] = {}
    for small in (False, True):
        began = time.process_time()
        took, chunks, _ = await added(
            state / f"docs-{small}", BuiltinEmbedder(small_engine=small), DOCUMENTS
        )
        busy = time.process_time() - began
        rates[small] = len(DOCUMENTS) / took, chunks / took, len(DOCUMENTS) / busy
        if not small:
            figure("kb add of the documentation, as `make demo` does", took, "s")
            quiet = "kb add of the documentation on quiet cores, estimated from its processor time"
            figure(quiet, busy / CORES, "s")
    for index, unit in enumerate(("documents/s", "passages/s")):
        figure(
            f"kb add of the documentation, {unit}",
            rates[False][index],
            unit,
            rates[True][index],
            SMALL,
        )
    figure(
        "kb add of the documentation, by processor time",
        rates[False][2],
        "documents/s",
        rates[True][2],
        SMALL,
    )


def demo(app: Path) -> None:
    for name in APP:
        (app / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, app / name)
    files = [path.relative_to(ROOT) for path in DOCUMENTS]
    began = time.perf_counter()
    run_command(app, "kb", "add", COLLECTION, *files)
    between = time.perf_counter()
    run_command(app, "chat", "docs", "What is a hook and how is it kept from harming the host?")
    ended = time.perf_counter()
    figure("make demo in an installed environment", ended - began, "s")
    figure("  of that, the question", ended - between, "s", ended - began, "all of it")


def run_command(app: Path, *arguments: str | Path) -> None:
    command = [Path(sys.executable).with_name("groundhook"), *arguments, "--app", "."]
    subprocess.run(command, cwd=app, stdout=subprocess.DEVNULL, check=True)


async def folder(state: Path, megabytes: int) -> None:
    """Files of the documentation, with another first line each time, until they are large
    enough."""
    files: list[Path] = []
    size = round = 0
    while size < megabytes * MEGABYTE:
        round += 1
        for path in DOCUMENTS:
            copy = state / f"{round}-{path.name}"
            copy.write_text(
                f"Copy {round}.\n\n{path.read_text(encoding='utf-8')}", encoding="utf-8"
            )
            files.append(copy)
            size += copy.stat().st_size
            if size >= megabytes * MEGABYTE:
                break
    began = time.process_time()
    took, _, _ = await added(state / "folder", BuiltinEmbedder(), files)
    busy = (time.process_time() - began) / CORES
    ten = 10 * MEGABYTE / size / 60
    figure(f"kb add of {megabytes} MB", took * megabytes * MEGABYTE / size / 60, "min")
    if megabytes != 10:
        figure("kb add of 10 MB, estimated from that", took * ten, "min")
    quiet = "kb add of 10 MB on quiet cores, estimated from its processor time"
    figure(quiet, busy * ten, "min")


async def main(given: Sequence[str]) -> None:
    megabytes = next((int(each) for each in given if each.isdecimal()), 1)
    parts = [each for each in given if not each.isdecimal()]
    with tempfile.TemporaryDirectory(prefix="groundhook-bench-") as state:
        if not parts or "vectors" in parts:
            vectors()
        if not parts or "documents" in parts:
            await documents(Path(state))
        if not parts or "demo" in parts:
            demo(Path(state) / "demo")
        if not parts or "folder" in parts:
            await folder(Path(state), megabytes)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1:])
