"""The connector without a language model: it quotes the sentences of the references that answer the
question best.

`host.llm.questions` parses the question, `host.llm.extract` chooses what to quote,
`host.llm.compose` writes the answer. This module calls the embedding model and streams the text.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager

import anyio.lowlevel

from groundhook.host.core.ports import Delta, Embedder, Finished, ModelCall, TextDelta
from groundhook.host.core.trace import span
from groundhook.host.core.types.search import Item
from groundhook.host.llm import extract, passages, questions
from groundhook.host.llm.compose import compose
from groundhook.host.llm.passages import Candidate
from groundhook.host.llm.questions import Part

NAME = "extractive"

_PIECE = re.compile(r"\S+\s*|\s+")


class ExtractiveConnector:
    """Answers from `call.references` by shared words and, with an embedder, also by meaning, so
    that synonyms count."""

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder

    @asynccontextmanager
    async def stream(self, call: ModelCall, /) -> AsyncIterator[AsyncIterator[Delta]]:
        async with aclosing(self._deltas(call)) as deltas:
            yield deltas

    async def _deltas(self, call: ModelCall) -> AsyncGenerator[Delta]:
        text = await self._answer(_question(call), call.references)
        for piece in _PIECE.findall(text):
            yield TextDelta(piece)
            # Lets other turns run: nothing else here waits.
            await anyio.lowlevel.checkpoint()
        yield Finished("stop", model=NAME)

    async def _answer(self, question: str, references: Sequence[Item]) -> str:
        candidates = passages.candidates(references)
        if not candidates:  # checked first: parsing a long question takes time
            return compose([], references, direct=False)
        parts = questions.parts(question)
        by_words = [extract.words(part, candidates, references) for part in parts]
        by_meaning = await self._compare_meaning(question, parts, candidates, by_words, references)
        quotes = extract.choose(parts, candidates, by_words, by_meaning, references)
        return compose(quotes, references, direct=extract.answers(by_words, by_meaning))

    async def _compare_meaning(
        self,
        question: str,
        parts: Sequence[Part],
        candidates: Sequence[Candidate],
        by_words: Sequence[Sequence[float]],
        references: Sequence[Item],
    ) -> list[dict[int, float]] | None:
        """Return for each part of the question the similarity (0-1) of the candidates on the
        shortlist; None without an embedder. For one of several parts it is the mean of its own
        similarity and that of the whole question, since a part alone may lack its subject."""
        if self._embedder is None or not candidates or not question.strip():
            return None
        chosen = extract.shortlist(parts, candidates, by_words, references)
        with span("sentence_embedding", sentences=len(chosen)):
            texts = [question] if len(parts) == 1 else [question, *(part.text for part in parts)]
            queries = [await self._embedder.embed_query(text) for text in texts]
            vectors = await self._embedder.embed_documents(
                [extract.text_for_meaning(candidates[at], references) for at in chosen]
            )
        near = [
            [self._embedder.similarity(_dot(query, vector)) for vector in vectors]
            for query in queries
        ]
        return [
            {at: (own + whole) / 2 for at, own, whole in zip(chosen, values, near[0], strict=True)}
            for values in (near if len(parts) == 1 else near[1:])
        ]


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def _question(call: ModelCall) -> str:
    """Return the question of a call, else the text of its last user message."""
    if call.question.strip():
        return call.question
    return next((message.text for message in reversed(call.messages) if message.role == "user"), "")
