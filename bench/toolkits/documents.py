"""Documents: whether the built-in ranks the right summary first, how many the built-in must choose
for a model to see it, and how long a thousand summaries take with a model that needs 200 ms.

The sample's 300 summaries with its settings, as if all were one member's, and 40 questions in five
languages, 15 of them in another language than the summaries. Ten summaries are about each subject,
so half of a question is the kind of document. Half of the questions are kept aside: what can be
chosen is chosen by the others.
"""

from __future__ import annotations

import json
import re
import shutil
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
from groundhook.plugins import Delta, Finished, ModelCall, TextDelta
from groundhook.toolkits.documents.builtin import word_shares

REPOSITORY = Path(__file__).parents[2]
SUMMARIES = REPOSITORY / "assistants/documents/data/summaries.jsonl"
QUESTIONS = Path(__file__).with_name("documents_questions.jsonl")
IDENTITY = {"user_id": "m1", "tenant_id": "p1"}
THOUSAND, PAGE, AT_ONCE, MODEL_S = 1000, 50, 4, 0.2
CHOSEN = 50
KEPT = 20  # documents of an answer
ROUNDS = 5
_OF_MEMBERS = ("memberCode", "partnerCode")  # here everybody may see everything
_ID = re.compile(r"^id: (.+)$", re.MULTILINE)


async def measure(_: Path | None) -> None:
    """Print the figures of documents."""
    lines = [
        {name: value for name, value in json.loads(line).items() if name not in _OF_MEMBERS}
        for line in SUMMARIES.read_text(encoding="utf-8").splitlines()
    ]
    cases = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        root = _app(Path(folder), lines)
        async with open_host(root, environment={}, connectors={"slow": _Slow()}) as host:
            found = [await _found(host, "documents", case["question"]) for case in cases]
            every = [await _found(host, "every", case["question"]) for case in cases]
            own = await _seconds(host, "documents")
            thousand = await _seconds(host, "thousand_alone")
            model = await _seconds(host, "thousand")
    words = [_by_words(case["question"], lines) for case in cases]
    for aside, about in ((False, ""), (True, " kept aside")):
        some = [place for place, case in enumerate(cases) if case["aside"] is aside]
        of = f"of {len(some)} questions{about}"
        for ids, most, where in (
            (found, 1, "first"),
            (found, 5, "in the first five"),
            (found, KEPT, "in the answer"),
            (every, CHOSEN, f"in the first {CHOSEN}"),
        ):
            hits, least = (
                sum(cases[place]["id"] in each[place][:most] for place in some)
                for each in (ids, words)
            )
            figure(f"right document {where}, {of}", hits, "", least, "words alone")
        figure(f"empty answers, {of}", sum(not found[place] for place in some), "")
    figure("300 summaries, built-in, embedded before, p50", own * 1000, "ms")
    figure(f"{THOUSAND} summaries, built-in, embedded before, p50", thousand * 1000, "ms")
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
    """Make an app with the sample's toolkit as it is, `documents`, and with other settings."""
    folder = root / "assistants/documents"
    shutil.copytree(REPOSITORY / "assistants/documents", folder)
    thousand = [{**lines[place % len(lines)], "id": place} for place in range(THOUSAND)]
    for name, each in (("summaries", lines), ("thousand", thousand)):
        text = "\n".join(json.dumps(line) for line in each)
        (folder / f"data/{name}.jsonl").write_text(text, encoding="utf-8")
    _toolkit(folder, "every", "summaries", {"top": CHOSEN, "least": 0}, keep=CHOSEN)
    _toolkit(folder, "thousand", "thousand", {"by": "connector:slow"})
    _toolkit(folder, "thousand_alone", "thousand", {})
    return root


def _toolkit(folder: Path, name: str, data: str, ranker: Mapping[str, Any], **more: Any) -> None:
    source = {"file": f"data/{data}.jsonl"}
    keys = {"type": "documents", "source": source, "ranker": ranker, **more}
    (folder / f"toolkits/{name}.toolkit.yao").write_text(json.dumps(keys), encoding="utf-8")


async def _found(host: Host, toolkit: str, question: str) -> list[int]:
    outcome = await host.tool(f"{toolkit}.search_documents", {"query": question}, identity=IDENTITY)
    assert outcome.error is None, outcome.error
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
