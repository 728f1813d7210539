"""Memory: whether the right preview is first, and what reading a hundred memories at once costs.

The sample's 60 memories of two teams, 36 questions in three languages, many of them in another
language than their memory. Half of them are kept aside: what can be chosen is chosen by the others.
The hundred memories are in five collections, with the sample's texts.
"""

from __future__ import annotations

import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.figures import figure
from groundhook import Host, open_host

REPOSITORY = Path(__file__).parents[2]
QUESTIONS = Path(__file__).with_name("memory_questions.jsonl")
RED = {"tenant_id": "acme", "team_id": "red"}
SHELVES = ("one", "two", "three", "four", "five")
REFS = 100
ROUNDS = 20


async def measure(_: Path | None) -> None:
    """Print the figures of memory."""
    cases = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        shutil.copytree(REPOSITORY / "agent", root / "agent")
        shutil.copytree(REPOSITORY / "assistants/memory", root / "assistants/memory")
        async with open_host(root, environment={}) as host:
            await host.syncs.run("memory")
            found = [await _previews(host, case) for case in cases]
            tool, search = await _searches(host, cases)
        async with open_host(_hundred(root / "hundred"), environment={}) as host:
            await host.syncs.run("memory")
            batch, single = await _reads(host)
    for aside, about in ((False, ""), (True, " kept aside")):
        answered = [
            (case, ids) for case, ids in zip(cases, found, strict=True) if case["aside"] is aside
        ]
        for most, place in ((1, "first"), (3, "in the first three")):
            right = sum(case["id"] in ids[:most] for case, ids in answered)
            figure(f"right preview {place}, of {len(answered)} questions{about}", right, "")
    figure("search of memories, p50", tool, "ms", search, "host.search of the same question")
    figure("batch_fetch of 100 references, p50", batch, "ms", single * 100, "100 × fetch")


async def _call(host: Host, tool: str, arguments: Mapping[str, Any]) -> Any:
    outcome = await host.tool(f"memory.{tool}", arguments, identity=RED)
    assert outcome.error is None, outcome.error
    return outcome.result


async def _previews(host: Host, case: Mapping[str, Any]) -> list[int]:
    arguments = {"query": case["question"], "collection": case["collection"]}
    return [each["id"] for each in await _call(host, "search", arguments)]


async def _searches(host: Host, cases: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Return the milliseconds of a search by the tool and by `host.search`, one after the other;
    the questions are embedded before."""
    took: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS // 4):
        for case in cases:
            began = time.perf_counter()
            await _previews(host, case)
            between = time.perf_counter()
            found = await host.search(
                {
                    "type": "kb",
                    "query": case["question"],
                    "collections": [f"agents.memory.{case['collection']}"],
                    "threshold": 0,
                    "groups": 1,
                },
                identity={**RED, "tenant_id": "acme/team/red"},
            )
            assert found.items
            took[0].append((between - began) * 1000)
            took[1].append((time.perf_counter() - between) * 1000)
    return statistics.median(took[0]), statistics.median(took[1])


def _hundred(root: Path) -> Path:
    """Write an app with the memories that are read at once, and return its folder."""
    folder = root / "assistants/hundred"
    for name in ("kb", "toolkits"):
        (folder / name).mkdir(parents=True)
    (folder / "package.yao").write_text('{"tools": ["memory"]}', encoding="utf-8")
    fields = dict.fromkeys(("tags", "supersedes", "links"), "keyword")
    collection = {"fields": {"preview": "text", "written": "datetime", **fields}}
    for shelf in SHELVES:
        file = folder / f"kb/{shelf}.kb.yao"
        file.write_text(json.dumps({"name": shelf, **collection}), encoding="utf-8")
    sample = (REPOSITORY / "assistants/memory/data/red.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in sample.splitlines()]
    memories = [
        {"id": id, "collection": shelf, "title": line["title"], "content": line["content"]}
        for id, shelf in _refs()
        for line in [lines[id % len(lines)]]
    ]
    text = "\n".join(json.dumps(memory) for memory in memories)
    (folder / "memories.jsonl").write_text(text, encoding="utf-8")
    keys = {
        "type": "memory",
        "collections": {shelf: shelf for shelf in SHELVES},
        "owner": "app",
        "source": {"file": "memories.jsonl"},
    }
    (folder / "toolkits/memory.toolkit.yao").write_text(json.dumps(keys), encoding="utf-8")
    return root


def _refs() -> Sequence[tuple[int, str]]:
    return [(id, SHELVES[id % len(SHELVES)]) for id in range(REFS)]


async def _reads(host: Host) -> tuple[float, float]:
    """Return the milliseconds of a batch of 100 and of one fetch."""
    refs = [list(ref) for ref in _refs()]
    batches, singles = [], []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        assert len(await _call(host, "batch_fetch", {"doc_refs": refs})) == REFS
        batches.append(time.perf_counter() - began)
        began = time.perf_counter()
        await _call(host, "fetch", {"doc_id": 3, "collection": SHELVES[3]})
        singles.append(time.perf_counter() - began)
    return statistics.median(batches) * 1000, statistics.median(singles) * 1000
