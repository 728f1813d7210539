"""Memory: whether the right preview is first, and what reading a hundred memories at once costs.

The sample's 60 memories of two teams, 36 questions in three languages, many of them in another
language than their memory. Half of them are kept aside: what can be chosen is chosen by the others.
"""

from __future__ import annotations

import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.figures import figure
from groundhook import Host, open_host

REPOSITORY = Path(__file__).parents[2]
QUESTIONS = Path(__file__).with_name("memory_questions.jsonl")
RED = {"tenant_id": "acme", "team_id": "red"}
ROUNDS = 20


async def measure(_: Path | None) -> None:
    """Print the figures of memory."""
    cases = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        shutil.copytree(REPOSITORY / "agent", root / "agent")
        shutil.copytree(REPOSITORY / "assistants/memory", root / "assistants/memory")
        async with open_host(root, environment={}) as host:
            await host.syncs.run("memory")
            found = [await _previews(host, case) for case in cases]
            batch, single = await _reads(host)
    for aside, about in ((False, ""), (True, " kept aside")):
        answered = [
            (case, ids) for case, ids in zip(cases, found, strict=True) if case["aside"] is aside
        ]
        for most, place in ((1, "first"), (3, "in the first three")):
            right = sum(case["id"] in ids[:most] for case, ids in answered)
            figure(f"right preview {place}, of {len(answered)} questions{about}", right, "")
    figure("batch_fetch of 100 references, p50", batch, "ms", single * 100, "100 × fetch")


async def _call(host: Host, tool: str, arguments: Mapping[str, Any]) -> Any:
    outcome = await host.tool(f"memory.{tool}", arguments, identity=RED)
    assert outcome.error is None, outcome.error
    return outcome.result


async def _previews(host: Host, case: Mapping[str, Any]) -> list[int]:
    arguments = {"query": case["question"], "collection": case["collection"]}
    return [each["id"] for each in await _call(host, "search", arguments)]


async def _reads(host: Host) -> tuple[float, float]:
    """Return the milliseconds of a batch of 100 and of one fetch."""
    shelves = {**dict.fromkeys(range(1, 16), "backend"), **dict.fromkeys(range(16, 26), "qa")}
    refs = [[id, shelf] for id, shelf in shelves.items()] * 4
    batches, singles = [], []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        assert len(await _call(host, "batch_fetch", {"doc_refs": refs})) == len(refs)
        batches.append(time.perf_counter() - began)
        began = time.perf_counter()
        await _call(host, "fetch", {"doc_id": 3, "collection": "backend"})
        singles.append(time.perf_counter() - began)
    return statistics.median(batches) * 1000, statistics.median(singles) * 1000
