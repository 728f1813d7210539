"""Documents: whether the built-in ranks the right summary first, how many the built-in must choose
for a model to see it, and how long a thousand summaries take with a model that needs 200 ms.

The sample's 300 summaries, 40 questions in five languages, 15 of them in another language than
the summaries. Ten summaries are about each subject, so half of a question is the kind of document.
Half of the questions are kept aside: what can be chosen is chosen by the others.
"""

from __future__ import annotations

import json
import re
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from bench.figures import figure
from groundhook import Host, open_host
from groundhook.handlers.tools.documents.builtin import word_shares
from groundhook.plugins import Delta, Finished, ModelCall, TextDelta

REPOSITORY = Path(__file__).parents[2]
SUMMARIES = REPOSITORY / "assistants/documents/data/summaries.jsonl"
QUESTIONS = Path(__file__).with_name("documents_questions.jsonl")
IDENTITY = {"user_id": "m1", "tenant_id": "p1"}
THOUSAND, PAGE, AT_ONCE, MODEL_S = 1000, 50, 4, 0.2
CHOSEN = 50
ROUNDS = 5
_ID = re.compile(r"^id: (.+)$", re.MULTILINE)


async def measure(_: Path | None) -> None:
    """Print the figures of documents."""
    lines = [json.loads(line) for line in SUMMARIES.read_text(encoding="utf-8").splitlines()]
    cases = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        root = _app(Path(folder), lines)
        async with open_host(root, environment={}, connectors={"slow": _Slow()}) as host:
            found = [await _found(host, "ranked", case["question"]) for case in cases]
            own, model = await _seconds(host, "ranked"), await _seconds(host, "thousand")
    words = [_by_words(case["question"], lines) for case in cases]
    for aside, about in ((False, ""), (True, " kept aside")):
        some = [place for place, case in enumerate(cases) if case["aside"] is aside]
        chosen = [cases[place] for place in some]
        by_tool, by_words = ([each[place] for place in some] for each in (found, words))
        for most, name in (
            (1, "first"),
            (5, "in the first five"),
            (CHOSEN, f"in the first {CHOSEN}"),
        ):
            figure(
                f"right document {name}, of {len(chosen)} questions{about}",
                _hits(chosen, by_tool, most),
                "",
                _hits(chosen, by_words, most),
                "words alone",
            )
    figure("300 summaries, built-in, embedded before, p50", own * 1000, "ms")
    ideal = THOUSAND / PAGE / AT_ONCE * MODEL_S * 1000
    figure(f"{THOUSAND} summaries, model of 200 ms, p50", model * 1000, "ms", ideal, "4 at a time")


class _Slow:
    """A model that takes 200 ms and names what it was sent."""

    @asynccontextmanager
    async def stream(self, call: ModelCall, /) -> AsyncIterator[AsyncIterator[Delta]]:
        yield self._deltas(call)

    async def _deltas(self, call: ModelCall) -> AsyncIterator[Delta]:
        await anyio.sleep(MODEL_S)
        ids = _ID.findall(call.messages[-1].text)[:10]
        yield TextDelta(json.dumps({"documents": [{"id": id, "score": 0.5} for id in ids]}))
        yield Finished("stop")


def _app(root: Path, lines: Sequence[Mapping[str, Any]]) -> Path:
    folder = root / "assistants/d"
    (folder / "toolkits").mkdir(parents=True)
    (folder / "package.yao").write_text("{}", encoding="utf-8")
    thousand = [{**lines[place % len(lines)], "id": place} for place in range(THOUSAND)]
    for name, each in (("ranked", lines), ("thousand", thousand)):
        text = "\n".join(json.dumps(line) for line in each)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    _toolkit(folder, "ranked", {"top": CHOSEN, "least": 0}, keep=CHOSEN)
    _toolkit(folder, "thousand", {"by": "connector:slow"})
    return root


def _toolkit(folder: Path, name: str, ranker: Mapping[str, Any], **more: Any) -> None:
    keys = {"type": "documents", "source": {"file": f"{name}.jsonl"}, "ranker": ranker, **more}
    (folder / f"toolkits/{name}.toolkit.yao").write_text(json.dumps(keys), encoding="utf-8")


async def _found(host: Host, toolkit: str, question: str) -> list[int]:
    outcome = await host.tool(
        f"{toolkit}.search_documents", {"query": question}, identity=IDENTITY, assistant=None
    )
    assert outcome.error is None, outcome.error
    assert not outcome.warnings, outcome.warnings
    return [one["id"] for one in outcome.result["documents"]]


async def _seconds(host: Host, toolkit: str) -> float:
    taken = []
    for round in range(ROUNDS):
        began = time.perf_counter()
        await _found(host, toolkit, f"Who repairs the lift? {round}")
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def _by_words(question: str, lines: Sequence[Mapping[str, Any]]) -> list[int]:
    texts = [" ".join(str(value) for value in line.values()) for line in lines]
    shares = word_shares(question, texts)
    order = sorted(range(len(lines)), key=lambda place: -shares[place])
    return [lines[place]["id"] for place in order]


def _hits(cases: Sequence[Mapping[str, Any]], found: Sequence[Sequence[int]], most: int) -> int:
    return sum(case["id"] in ids[:most] for case, ids in zip(cases, found, strict=True))
