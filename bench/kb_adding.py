"""Measure complete runs of `kb add`: real text, and very many small documents.

    python -m bench.kb_adding [rows]

Real text is this repository's documentation, embedded by the bundled model. A second add with
vectors that cost nothing shows the time of the rest: reading, cutting, analysing and storing. The
small documents are rows of a CSV file (10,000 by default), with vectors that cost next to nothing.
Figures are JSON lines on standard output.
"""

from __future__ import annotations

import csv
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import anyio

from bench.figures import figure, quantile
from bench.generated import text, vector
from bench.kb import knowledge_base, lag
from groundhook.core.types.collection_spec import EmbeddingSpec
from groundhook.handlers.kb.embed import HashEmbedder
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
            figure(
                f"{rows} documents of one chunk, {outcome}",
                rows / (time.perf_counter() - began),
                "documents/s",
            )
        began = time.perf_counter()
        with (folder / "rows.jsonl").open("w", encoding="utf-8") as out:
            assert (await kb.export("docs", out)).documents == rows + 1
        figure(
            f"{rows} documents of one chunk, exported",
            rows / (time.perf_counter() - began),
            "documents/s",
        )


async def main(rows: int) -> None:
    with tempfile.TemporaryDirectory(
        prefix="groundhook-bench-", ignore_cleanup_errors=True
    ) as folder:
        await small_documents(Path(folder), rows)
        await real_text(Path(folder))


if __name__ == "__main__":
    anyio.run(main, int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
