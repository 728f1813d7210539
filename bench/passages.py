"""Measure how often the answer survives when a long chunk is cut to the passage that answers
(`search.kb.passage_tokens`).

    python -m bench.passages [SET [questions]]

Two sets of questions. Those of `bench.answers`, published and kept aside, with this repository's
documents in chunks of 400 and of 800 tokens that end anywhere: the passage must contain the phrase
that answers. And `questions` (by default 300) of SET, a folder in BEIR's layout (by default
../shared/data/xquad-en), three of its documents to a chunk: the passage must contain the sentence
of the right document that is nearest to the question by the bundled embedding, used as the judge.
Nine other chunks are cut with the right one, those that match best by words, as in a search.

Prints JSON lines: how many answers the passages contain, how many the same number of tokens from
the beginning of the chunk contain, and the share of text that is left.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from bench.answers import DOCUMENTS, ROOT, SETS, Question, questions
from bench.figures import figure
from bench.judged_collections import load
from groundhook.core.language.sentences import spans
from groundhook.core.source_settings import KBSettings
from groundhook.handlers.kb.analyse import Analyser
from groundhook.handlers.kb.embed import embedding_tokens
from groundhook.handlers.kb.embedders.builtin import BuiltinEmbedder
from groundhook.handlers.kb.ingest.chunk import chunks
from groundhook.handlers.kb.language import language_of
from groundhook.handlers.kb.ranking import passage
from groundhook.handlers.kb.reading.markdown import from_markdown

BESIDE = 9  # chunks that are cut with the right one
TOGETHER = 3  # documents of SET to a chunk
MOST = KBSettings().passage_tokens


@dataclass(frozen=True)
class Case:
    """A question, the chunk that answers it with others behind it, and what the passage must
    hold."""

    question: str
    chunks: Sequence[str]
    answer: str


def from_documents(size: int) -> list[Case]:
    every: list[tuple[str, str]] = []
    files = [
        path
        for name in DOCUMENTS
        for path in (
            sorted((ROOT / name).glob("*.md")) if (ROOT / name).is_dir() else [ROOT / name]
        )
    ]
    for path in files:
        document = from_markdown(path.read_text(encoding="utf-8"), path.name)
        cut = chunks(document, size=size, overlap=0, count=embedding_tokens, by="size")
        every += [(path.name, chunk.content) for chunk in cut]
    cases = []
    for each in (question for file in SETS.values() for question in questions(file)):
        right = [
            at
            for at, (name, text) in enumerate(every)
            if name == each.document and each.answered(text)
        ]
        headed = [at for at in right if f"# {each.section}\n" in every[at][1]]
        if right:
            cases.append(
                _case(each.question, [text for _, text in every], (headed or right)[0], each.answer)
            )
    return cases


async def from_set(folder: Path, most: int) -> list[Case]:
    collection = load(folder)
    ids = list(collection.documents)
    groups = [
        "\n\n".join(collection.documents[id] for id in ids[at : at + TOGETHER])
        for at in range(0, len(ids), TOGETHER)
    ]
    model = BuiltinEmbedder()
    read: dict[str, tuple[list[str], list[list[float]]]] = {}
    cases = []
    for question, text in list(collection.questions.items())[
        :: max(1, len(collection.questions) // most)
    ]:
        id = next(iter(collection.related[question]))
        if id not in read:
            document = collection.documents[id]
            sentences = [document[start:end] for start, end in spans(document)]
            read[id] = sentences, await model.embed_documents(sentences)
        query = await model.embed_query(text)
        sentences, vectors = read[id]
        near = [sum(a * b for a, b in zip(query, vector, strict=True)) for vector in vectors]
        cases.append(
            _case(text, groups, ids.index(id) // TOGETHER, sentences[near.index(max(near))])
        )
    return cases


def _case(question: str, texts: Sequence[str], right: int, answer: str) -> Case:
    """With the other texts that have most of the question's words."""
    analyser = Analyser(language_of(texts[right]))
    wanted = frozenset(analyser.question(question).indices)
    has = [analyser.indices(text) & wanted for text in texts]
    seen = Counter(word for words in has for word in words)
    worth = [sum(1 / seen[word] for word in words) for words in has]
    others = sorted((at for at in range(len(texts)) if at != right), key=lambda at: -worth[at])
    return Case(question, [texts[at] for at in (right, *others[:BESIDE])], answer)


def measure(name: str, cases: Sequence[Case]) -> None:
    held = began = long = left = all = 0
    for case in cases:
        parts = passage.parts(case.chunks, case.question, language_of(case.chunks[0]), MOST)
        returned = [
            text if part is None else part.text(text)
            for text, part in zip(case.chunks, parts, strict=True)
        ]
        left, all = left + sum(map(len, returned)), all + sum(map(len, case.chunks))
        if embedding_tokens(case.chunks[0]) > passage.SPARE * MOST:
            long += 1
            held += _contains(returned[0], case.answer)
            began += _contains(
                case.chunks[0].encode()[: 4 * MOST].decode(errors="ignore"), case.answer
            )
    figure(
        f"{name}: passages that hold the answer",
        held,
        f"of {long}",
        began,
        f"as many tokens from the beginning, of {long}",
    )
    figure(f"{name}: left of the chunks", 100 * left / all, "%")


def _contains(text: str, answer: str) -> bool:
    return Question(question="", document="", section="", answer=answer).answered(text)


async def main(folder: Path, most: int) -> None:
    for size in (400, 800):
        measure(f"questions about the documents, chunks of {size} tokens", from_documents(size))
    measure(f"{folder.name}, {TOGETHER} documents to a chunk", await from_set(folder, most))


if __name__ == "__main__":
    given = [*sys.argv[1:], *["../shared/data/xquad-en", "300"][len(sys.argv) - 1 :]]
    anyio.run(main, Path(given[0]), int(given[1]))
