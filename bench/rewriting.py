"""Measure what search words of a model are worth, through turns of an assistant.

    python -m bench.rewriting [--show]

`search_words.jsonl` has questions to this repository's documentation: paraphrases, which share no
word with the section that answers (from `paraphrases.jsonl`), and questions that nothing there
answers (without a section). `words` is what a large language model wrote for each, given the
question and the headings; it is replayed. The questions of `docs_questions.jsonl`, in the
documentation's own words, are asked with `first: always` and the words of another question, which
is what a bad model does.

Prints how often the section is among the first one, three and five, with and without the words, and
how certain the searches are.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from groundhook import Host, open_host
from groundhook.core.ports import Delta, Finished, ModelCall, TextDelta
from groundhook.core.types.events import SearchComplete, SearchFound
from groundhook.core.types.search import Item

HERE = Path(__file__).parent
DOCUMENTS = ("README.md", "ARCHITECTURE.md", "docs")


@dataclass(frozen=True)
class Asked:
    question: str
    document: str
    section: str
    words: str

    def place(self, found: list[Item]) -> int:
        """Return the rank of the section, from 1; 0 if it was not found."""
        for place, item in enumerate(found, 1):
            if item.document_id == self.document and item.title.split(" › ")[-1] == self.section:
                return place
        return 0


class Replayed:
    """A connector that writes the recorded words of a question."""

    def __init__(self, asked: list[Asked]) -> None:
        self._words = {one.question: one.words for one in asked}

    @asynccontextmanager
    async def stream(self, call: ModelCall, /) -> AsyncIterator[AsyncIterator[Delta]]:
        question = json.loads(call.messages[-1].text)["query"]

        async def deltas() -> AsyncIterator[Delta]:
            yield TextDelta(json.dumps({"query": self._words[question]}))
            yield Finished("stop")

        yield deltas()


def read(file: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (HERE / file).read_text(encoding="utf-8").splitlines()]


async def ask(host: Host, assistant: str, one: Asked) -> tuple[int, str]:
    found: list[Item] = []
    certainty = ""
    async with host.stream(assistant, one.question) as events:
        async for event in events:
            if isinstance(event, SearchFound):
                found.append(event.item)
            elif isinstance(event, SearchComplete):
                certainty = event.certainty or ""
    return one.place(found), certainty


async def report(host: Host, name: str, assistant: str, asked: list[Asked], *, show: bool) -> None:
    outcomes = [await ask(host, assistant, one) for one in asked]
    within = {f"in_{most}": sum(1 <= place <= most for place, _ in outcomes) for most in (1, 3, 5)}
    certainties = Counter(certainty for _, certainty in outcomes)
    print(json.dumps({"set": name, "of": len(asked), **within, **certainties}), flush=True)
    if show:
        for one, outcome in zip(asked, outcomes, strict=True):
            print(outcome, one.question, file=sys.stderr)


def write_app(folder: str) -> None:
    for id, uses, first in (
        ("without", "builtin", "never"),
        ("auto", "connector:words", "auto"),
        ("always", "connector:words", "always"),
    ):
        package = Path(folder, "assistants", id, "package.yao")
        package.parent.mkdir(parents=True)
        content = {
            "name": id,
            "connector": "extractive",
            "kb": {"collections": ["docs"]},
            "search": {"kb": True, "rewrite": {"first": first}},
            "uses": {"rewrite": uses},
        }
        package.write_text(json.dumps(content))
    Path(folder, "kb").mkdir()
    Path(folder, "kb", "docs.kb.yao").write_text(
        '{"name": "Groundhook", "description": "The documentation of a chat assistant host"}'
    )
    Path(folder, "agent").mkdir()
    Path(folder, "agent", "agent.yml").write_text("connector: extractive\n")


async def main(*, show: bool) -> None:
    given = [Asked(**each) for each in read("search_words.jsonl")]
    paraphrased = [one for one in given if one.section]
    unanswered = [one for one in given if not one.section]
    own = read("docs_questions.jsonl")
    plain = [
        Asked(each["question"], each["document"], each["section"], words=other["question"])
        for each, other in zip(own, [*own[1:], own[0]], strict=True)
    ]
    with tempfile.TemporaryDirectory(prefix="groundhook-bench-") as folder:
        write_app(folder)
        connector = Replayed([*given, *plain])
        async with open_host(folder, environment={}, connectors={"words": connector}) as host:
            await host.kb.add("docs", [HERE.parent / name for name in DOCUMENTS])
            for name, asked in (("paraphrases", paraphrased), ("not answered", unanswered)):
                for assistant in ("without", "auto"):
                    await report(host, f"{name}, {assistant}", assistant, asked, show=show)
            for assistant in ("without", "auto", "always"):
                title = f"plain, words of another question, {assistant}"
                await report(host, title, assistant, plain, show=show)


if __name__ == "__main__":
    anyio.run(lambda: main(show="--show" in sys.argv[1:]))
