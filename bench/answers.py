"""Measure answers without a language model: questions about this repository's documents to the
sample assistant `docs`.

    python -m bench.answers [--show]

The questions are in `docs_questions.jsonl`: {"question", "document", "section", "answer"}. A
section counts as found if a passage under that heading is among the first results; an answer is
right if it contains the phrase `answer`, ignoring white space and case. These questions were used
while documents and search were developed; those in `docs_questions_aside.jsonl` were not, and show
how results carry over: do not tune to them. The documents are added to a knowledge base in a
temporary folder. `--show` writes every answer to standard error.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import anyio

from bench.figures import figure
from groundhook import Host, open_host
from groundhook.core.types.events import SearchFound, StreamEnd
from groundhook.core.types.search import Item

ROOT = Path(__file__).parent.parent
DOCUMENTS = ("README.md", "ARCHITECTURE.md", "docs")
APP = ("agent", "assistants/docs", *DOCUMENTS)
COLLECTION = "agents.docs.docs"
SETS = {"published": "docs_questions.jsonl", "kept aside": "docs_questions_aside.jsonl"}
HANDED_OVER = 8  # passages that reach the model: `search.rerank.top_n` of the assistant


@dataclass(frozen=True, kw_only=True)
class Question:
    question: str
    document: str
    section: str
    answer: str

    def place(self, found: list[Item]) -> int:
        """Return the rank of the section among the results, from 1; 0 if it is not among them."""
        for place, item in enumerate(found, 1):
            if item.document_id == self.document and item.title.split(" › ")[-1] == self.section:
                return place
        return 0

    def answered(self, text: str) -> bool:
        return _plain(self.answer) in _plain(text)


@dataclass(frozen=True)
class Outcome:
    question: Question
    place: int
    in_prompt: bool
    answered: bool
    milliseconds: float


def questions(file: str) -> list[Question]:
    text = Path(__file__).with_name(file).read_text(encoding="utf-8")
    return [Question(**json.loads(line)) for line in text.splitlines()]


async def ask(host: Host, question: Question, *, show: bool) -> Outcome:
    found: list[Item] = []
    end: StreamEnd | None = None
    async with host.stream("docs", question.question) as events:
        async for event in events:
            if isinstance(event, SearchFound):
                found.append(event.item)
            elif isinstance(event, StreamEnd):
                end = event
    if end is None or not end.content:
        raise SystemExit(f"the turn for {question.question!r} failed")
    in_prompt = any(question.answered(item.content) for item in found[:HANDED_OVER])
    outcome = Outcome(
        question,
        question.place(found),
        in_prompt,
        question.answered(end.content),
        end.timings["model"],
    )
    if show:
        verdict = (
            f"[{'right' if outcome.answered else 'wrong'}, section at {outcome.place},"
            f" {outcome.milliseconds:.0f} ms]"
        )
        print(f"\n=== {question.question} {verdict}\n{end.content}", file=sys.stderr, flush=True)
    return outcome


def report(name: str, outcomes: list[Outcome]) -> None:
    of = f"of {len(outcomes)}"
    figure(f"{name}: section first", sum(outcome.place == 1 for outcome in outcomes), of)
    figure(
        f"{name}: section in the first three",
        sum(1 <= outcome.place <= 3 for outcome in outcomes),
        of,
    )
    figure(
        f"{name}: the phrase among the passages in the prompt",
        sum(outcome.in_prompt for outcome in outcomes),
        of,
    )
    figure(f"{name}: answer holds the phrase", sum(outcome.answered for outcome in outcomes), of)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


async def main(*, show: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="groundhook-bench-") as folder:
        for name in APP:
            target = Path(folder, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, target)
            else:
                shutil.copy(ROOT / name, target)
        async with open_host(folder, environment={}) as host:
            added = await host.kb.add(COLLECTION, [Path(folder, name) for name in DOCUMENTS])
            if added.failed:
                raise SystemExit(f"some documents could not be added: {added.failed}")
            sets = {name: questions(file) for name, file in SETS.items()}
            await ask(host, sets["published"][0], show=False)  # loads the model
            answered = {
                name: [await ask(host, question, show=show) for question in given]
                for name, given in sets.items()
            }
    for name, outcomes in answered.items():
        report(name, outcomes)
    every = [outcome.milliseconds for outcomes in answered.values() for outcome in outcomes]
    figure("the extractive connector, p50", statistics.median(every), "ms")


if __name__ == "__main__":
    anyio.run(lambda: main(show="--show" in sys.argv[1:]))
