"""The catalogue: which datasets are found, how long a search takes, and what a sync of nothing new
costs.

Quality: the sample's 80 datasets in three languages, 40 questions in another language than the
dataset, 14 in the same, and 60 of words that mean nothing; `--data` adds the titles of govil-title
through sync and tool. Speed: 10,000 datasets with hashed vectors, from a CKAN portal on 127.0.0.1;
the tool and `host.search` take turns. The floor of a sync is adding the same documents again as a
feed.
"""

from __future__ import annotations

import io
import json
import math
import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from bench.figures import figure
from groundhook import Host, open_host
from tests.loopback.ckan import Ckan, ckan, package

REPOSITORY = Path(__file__).parents[2]
QUESTIONS = Path(__file__).with_name("catalogue_questions.jsonl")
DATASETS, ROUNDS, WARMING = 10_000, 200, 20
NONSENSE = 60
LATIN, HEBREW = ("bcdfghjklmnpqrstvwxz", "aeiou"), ("אבגדהוזחטיכלמנסעפצקרשת",) * 2
WORDS = ("budget", "water", "school", "road", "forest", "tax", "energy", "health", "bus", "income")


async def measure(data: Path | None) -> None:
    """Print the figures of the catalogue."""
    with tempfile.TemporaryDirectory() as folder:
        await _languages(Path(folder) / "sample")
        await _large(Path(folder) / "large")
        if data is not None and (data / "govil-title").is_dir():
            await _titles(Path(folder) / "titles", data / "govil-title")


# ------------------------------------------------------------------------------------------ quality


async def _languages(root: Path) -> None:
    cases = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    shutil.copytree(REPOSITORY / "agent", root / "agent")
    shutil.copytree(REPOSITORY / "assistants/catalogue", root / "assistants/catalogue")
    async with open_host(root, environment={}) as host:
        await host.syncs.run("catalogue")
        for kind, name in (("cross", "another language"), ("same", "its own language")):
            of_kind = [case for case in cases if case["kind"] == kind]
            ranks = [_rank(await _by_tool(host, case["question"]), case) for case in of_kind]
            plain = [_rank(await _by_search(host, case["question"]), case) for case in of_kind]
            about = f"datasets by questions in {name}"
            by = "host.search with its default threshold"
            figure(f"{about}, MRR", _mrr(ranks), "", _mrr(plain), by)
            figure(f"{about}, R@5", _recall(ranks), "", _recall(plain), by)
        await _nonsense(host)


async def _by_tool(host: Host, question: str) -> list[str]:
    outcome = await host.tool("catalogue.searchDatasets", {"query": question})
    return [each["url"].rpartition("/")[2] for each in outcome.result["datasets"]]


async def _by_search(host: Host, question: str) -> list[str]:
    request = {
        "type": "kb",
        "query": question,
        "collections": ["agents.catalogue.datasets"],
        "threshold": 0.3,
        "groups": 1,
    }
    found = await host.search(request)
    return [item.url.rpartition("/")[2] for item in found.items]


async def _nonsense(host: Host) -> None:
    """Questions of words that mean nothing: those with a result, and those whose result is not
    said to be far from the query."""
    found, clear = 0, 0
    for question in nonsense(NONSENSE):
        result = (await host.tool("catalogue.searchDatasets", {"query": question})).result
        found += bool(result["datasets"])
        clear += bool(result["datasets"]) and not result["message"]
    figure(f"questions of nonsense with datasets, of {NONSENSE}", found, "")
    figure(f"questions of nonsense with datasets and no notice, of {NONSENSE}", clear, "")


def nonsense(count: int) -> Iterator[str]:
    """Yield questions of words that mean nothing, in Latin and in Hebrew letters."""
    chance = random.Random(count)
    for number in range(count):
        letters = LATIN if number % 2 else HEBREW
        syllables = ["".join(map(chance.choice, letters)) for _ in range(8)]
        yield " ".join("".join(syllables[at : at + 3]) for at in range(0, 8, 3))


def _rank(listed: Sequence[str], case: Mapping[str, Any]) -> int:
    right = [place for place, name in enumerate(listed, 1) if name in case["datasets"]]
    return min(right, default=0)


def _mrr(ranks: Sequence[int]) -> float:
    return sum(1 / rank for rank in ranks if rank) / len(ranks)


def _recall(ranks: Sequence[int]) -> float:
    return sum(0 < rank <= 5 for rank in ranks) / len(ranks)


async def _titles(root: Path, data: Path) -> None:
    """Titles as questions, descriptions as documents: nDCG@10 through sync and tool."""
    rows = [json.loads(line) for line in (data / "corpus.jsonl").open(encoding="utf-8")]
    packages = [{"id": row["_id"], "name": row["_id"], "notes": row["text"]} for row in rows]
    _write_app(root, {"file": "packages.json"}, embedding="builtin")
    (root / "packages.json").write_text(json.dumps(packages), encoding="utf-8")
    wanted: dict[str, set[str]] = {}
    for line in (data / "qrels/test.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        question, document, score = line.split("\t")
        if int(score):
            wanted.setdefault(question, set()).add(document)
    texts = {
        row["_id"]: row["text"]
        for row in map(json.loads, (data / "queries.jsonl").open(encoding="utf-8"))
    }
    by_tool, by_search = [], []
    async with open_host(root, environment={}) as host:
        await host.syncs.run("catalogue")
        for question, right in wanted.items():
            outcome = await host.tool("catalogue.searchDatasets", {"query": texts[question]})
            by_tool.append(_gain([each["id"] for each in outcome.result["datasets"]], right))
            alone = {"type": "kb", "query": texts[question], "collections": ["datasets"]}
            found = await host.search({**alone, "threshold": 0, "groups": 1, "limit": 10})
            listed = [item.document_id.rpartition("#")[2] for item in found.items]
            by_search.append(_gain(listed, right))
    figure(
        "gov.il titles, nDCG@10",
        statistics.fmean(by_tool),
        "",
        statistics.fmean(by_search),
        "host.search of the titles",
    )


def _gain(listed: Sequence[str], right: Collection[str]) -> float:
    """Return nDCG@10."""
    gain = sum(1 / math.log2(n + 2) for n, id in enumerate(listed[:10]) if id in right)
    return gain / sum(1 / math.log2(n + 2) for n in range(min(10, len(right))))


# -------------------------------------------------------------------------------------------- speed


async def _large(root: Path) -> None:
    chance = random.Random(1)
    with ckan() as portal:
        for number in range(DATASETS):
            portal.add(_package(number, chance))
        _write_app(root, {"ckan": portal.url}, embedding="hash")
        async with open_host(root, environment={}) as host:
            await host.syncs.run("catalogue")
            await _searches(host, chance)
        await _unchanged(root, portal)


def _package(number: int, chance: random.Random) -> dict[str, Any]:
    words = chance.sample(WORDS, 4)
    about = {"title": " ".join(words), "notes": f"Figures {number} of {' and '.join(words)}."}
    return package(number, **about, tags=[{"name": word} for word in words])


async def _searches(host: Host, chance: random.Random) -> None:
    """New questions by the tool and by `host.search`, one after the other."""
    took: dict[str, list[float]] = {"tool": [], "search": [], "grouped": []}
    for number in range(WARMING + ROUNDS):
        question = " ".join([*chance.sample(WORDS, 3), str(number)])
        request = {"type": "kb", "query": question, "collections": ["datasets"], "limit": 10}
        for name in chance.sample(list(took), len(took)):
            began = time.perf_counter()
            if name == "tool":
                outcome = await host.tool("catalogue.searchDatasets", {"query": question})
                assert outcome.error is None
            else:
                grouped = {"groups": 1} if name == "grouped" else {}
                assert not (await host.search({**request, **grouped})).error
            if number >= WARMING:
                took[name].append((time.perf_counter() - began) * 1000)
    tool, search, grouped_search = (statistics.median(each) for each in took.values())
    about = f"searchDatasets, {DATASETS:,} datasets, p50"
    figure(about, tool, "ms", search, "host.search of the same question")
    figure(
        f"{about}, against the same work",
        tool,
        "ms",
        grouped_search,
        "host.search with one passage of each document",
    )


async def _unchanged(root: Path, portal: Ckan) -> None:
    """A complete listing without a change, against adding the documents again."""
    process = psutil.Process(os.getpid())
    async with open_host(root, environment={}) as host:
        before = process.memory_info().rss
        began = time.perf_counter()
        report = await host.syncs.run("catalogue", force=True)
        took = time.perf_counter() - began
        grown = (process.memory_info().rss - before) / 2**20
        assert (report.mode, report.unchanged) == ("full", DATASETS)
        feed = await _feed(root, portal)
        began = time.perf_counter()
        for collection, rows in feed.items():
            added = await host.kb.add(collection, feed=io.BytesIO(rows), prune=False)
            assert added.counts.get("unchanged", 0) > 0.99 * DATASETS
        floor = time.perf_counter() - began
    about = f"sync of {DATASETS:,} unchanged datasets"
    figure(about, took, "s", floor, "adding their documents again as a feed")
    figure(f"{about}, memory of the process", grown, "MB")


async def _feed(root: Path, portal: Ckan) -> dict[str, bytes]:
    """The documents of all packages, as feeds."""
    from groundhook.toolkits.catalogue.packages import PackageReader
    from groundhook.toolkits.catalogue.settings import CatalogueCollections

    reader = PackageReader(collections=CatalogueCollections(), portal=portal.url)
    lines: dict[str, list[str]] = {}
    for each in portal.packages.values():
        for collection, documents in reader.documents(each).items():
            lines.setdefault(collection, []).extend(
                json.dumps(
                    {
                        **document.fields,
                        "id": document.id,
                        "content": document.text,
                        "title": document.title,
                        "url": document.url,
                    }
                )
                for document in documents
            )
    return {collection: "\n".join(each).encode() for collection, each in lines.items()}


def _write_app(root: Path, source: Mapping[str, str], *, embedding: str) -> None:
    """Write an app with a catalogue of a source, in the collections of the sample."""
    (root / "agent").mkdir(parents=True)
    (root / "agent/agent.yml").write_text("connector: extractive\n", encoding="utf-8")
    (root / "kb").mkdir()
    for name in ("datasets", "resources"):
        text = (REPOSITORY / f"assistants/catalogue/kb/{name}.kb.yao").read_text(encoding="utf-8")
        text = text.replace('"builtin"', f'"{embedding}"')
        (root / f"kb/{name}.kb.yao").write_text(text, encoding="utf-8")
    (root / "toolkits").mkdir()
    kit = {"type": "catalogue", "source": source}
    (root / "toolkits/catalogue.toolkit.yao").write_text(json.dumps(kit), encoding="utf-8")
