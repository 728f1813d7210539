"""Measure complete runs of `kb add`: real text, and very many small documents.

    python -m bench.kb_adding [rows]

Real text is this repository's documentation, embedded by the bundled model. A second add with
vectors that cost nothing shows the time of the rest: reading, cutting, analysing and storing. The
small documents are rows of a CSV file (10,000 by default), with vectors that cost next to nothing;
their floor is the bare engine in this process, which stores the same points in the same batches.
Figures are JSON lines on standard output.
"""

from __future__ import annotations

import csv
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import anyio
import qdrant_edge as engine

from bench.figures import figure, quantile
from bench.generated import text, vector
from bench.kb import knowledge_base, lag
from groundhook.core.types.collection_spec import EmbeddingSpec
from groundhook.handlers.kb.embed import HashEmbedder
from groundhook.handlers.kb.embedded.collection import BATCH
from groundhook.handlers.kb.embedded.edge import Shard
from groundhook.handlers.kb.embedded.folder import folder_of
from groundhook.handlers.kb.embedders.builtin import BuiltinEmbedder

ROWS = 10_000


class Instant(BuiltinEmbedder):
    """The bundled model's tokens, and vectors of no cost."""

    async def embed_documents(self, texts: Sequence[str], /) -> list[list[float]]:
        return [VECTORS[len(text) % len(VECTORS)] for text in texts]


VECTORS = [vector(random.Random(seed)) for seed in range(50)]


async def real_text(folder: Path) -> None:
    """With the model, and how far the event loop lags meanwhile; then without."""
    model = BuiltinEmbedder()
    await model.embed_query("load it")
    model.count_tokens("and its tokens")
    files = sorted(Path(__file__).parent.parent.glob("docs/*.md"))
    lags: list[float] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lag, lags)
        took, chunks, unchanged = await added(folder / "embedded", model, files)
        tasks.cancel_scope.cancel()
    rest, _, _ = await added(folder / "instant", Instant(), files)
    figure(
        "documents of real text added",
        len(files) / took,
        "documents/s",
        len(files) / rest,
        "with vectors at no cost",
    )
    figure(
        "chunks of real text added",
        chunks / took,
        "chunks/s",
        chunks / rest,
        "with vectors at no cost",
    )
    figure("share of embedding in adding real text", 100 * (1 - rest / took), "%")
    figure("documents added again, unchanged", len(files) / unchanged, "documents/s")
    figure("event loop lag while documents are added, p99", quantile(lags, 0.99), "ms")


async def added(
    state: Path, embedder: BuiltinEmbedder, files: Sequence[Path]
) -> tuple[float, int, float]:
    """(seconds, chunks, seconds of adding the same once more), with the worker running."""
    async with knowledge_base(state, embedder) as kb:
        await kb.add("docs", files[:1])
        await kb.remove("docs", None)
        began = time.perf_counter()
        report = await kb.add("docs", files)
        between = time.perf_counter()
        assert not report.failed
        await kb.add("docs", files)
        return between - began, report.chunks, time.perf_counter() - between


async def small_documents(folder: Path, rows: int) -> None:
    """Added, added again as they are, added again with other words, and exported."""
    chance = random.Random(3)
    took: dict[str, float] = {}
    path, one = folder / "rows.csv", folder / "one.csv"
    one.write_text("id,title,text\n1,a,b\n", encoding="utf-8")
    async with knowledge_base(folder / "small", HashEmbedder(EmbeddingSpec(provider="hash"))) as kb:
        await kb.add("docs", [one])  # starts the worker
        for outcome in ("added", "unchanged", "replaced"):
            if outcome != "unchanged":
                table = [(n, text(chance, 4), text(chance, 40)) for n in range(rows)]
                with path.open("w", newline="", encoding="utf-8") as file:
                    csv.writer(file).writerows([("id", "title", "text"), *table])
            began = time.perf_counter()
            report = await kb.add("docs", [path])
            assert report.counts == {outcome: rows}
            took[outcome] = time.perf_counter() - began
        began = time.perf_counter()
        with (folder / "rows.jsonl").open("w", encoding="utf-8") as out:
            assert (await kb.export("docs", out)).documents == rows + 1
        took["exported"] = time.perf_counter() - began
    floor = bare_adding(folder / "small", folder / "bare")
    for outcome, seconds in took.items():
        name = f"{rows} documents of one chunk, {outcome}"
        if outcome in ("added", "replaced"):
            figure(name, rows / seconds, "documents/s", floor, "the engine alone")
        else:
            figure(name, rows / seconds, "documents/s")


def bare_adding(state: Path, folder: Path) -> float:
    """Points a second that the engine stores in a shard of the same settings, in the batches of the
    host, with one write to the disk at the end."""
    stored = folder_of(state / "kb", "docs")
    contents = stored.read("docs")
    assert contents is not None
    copy = state / "copy"  # the worker that ends may still have the shard open
    shutil.copytree(stored.path / contents.shard, copy)
    full = engine.EdgeShard.load(str(copy))
    every = engine.ScrollRequest(limit=2**31, with_payload=True, with_vector=True)
    points = [
        engine.Point(each.id, each.vector or {}, each.payload) for each in full.scroll(every)[0]
    ]
    full.close()
    empty = Shard.create(folder, contents.settings)
    began = time.perf_counter()
    for at in range(0, len(points), BATCH):
        empty.store_points(points[at : at + BATCH])
    empty.flush()
    took = time.perf_counter() - began
    empty.close()
    return len(points) / took


async def main(rows: int) -> None:
    with tempfile.TemporaryDirectory(
        prefix="groundhook-bench-", ignore_cleanup_errors=True
    ) as folder:
        await small_documents(Path(folder), rows)
        await real_text(Path(folder))


if __name__ == "__main__":
    anyio.run(main, int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
