"""The connector without a language model: it quotes the sentences of the references that answer the
question best.

What is asked is read by `host.llm.questions`, what to quote is chosen by `host.llm.extract`, how it
reads is up to `host.llm.compose`; here the embedding model is asked and the text is streamed.
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
    """Answers from `call.references`; with an embedder also by meaning, so that other words for the
    same thing count."""

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
            await anyio.lowlevel.checkpoint()
        yield Finished("stop", model=NAME)

    async def _answer(self, question: str, references: Sequence[Item]) -> str:
        found = passages.candidates(references)
        if not found:  # there is nothing to quote, however long the question is
            return compose([], references, direct=False)
        asked = questions.parts(question)
        lexical = [extract.words(part, found, references) for part in asked]
        meaning = await self._meaning(question, asked, found, lexical, references)
        quotes = extract.choose(asked, found, lexical, meaning, references)
        return compose(quotes, references, direct=extract.answers(lexical, meaning))

    async def _meaning(
        self,
        question: str,
        asked: Sequence[Part],
        found: Sequence[Candidate],
        lexical: Sequence[Sequence[float]],
        references: Sequence[Item],
    ) -> list[dict[int, float]] | None:
        """For each part the similarity (0-1) of the candidates on the shortlist; that of a part
        among several is the middle of its own and the whole question's, since a part alone may not
        say what it speaks of."""
        if self._embedder is None or not found or not question.strip():
            return None
        chosen = extract.shortlist(asked, found, lexical, references)
        with span("sentence_embedding", sentences=len(chosen)):
            texts = [question] if len(asked) == 1 else [question, *(part.text for part in asked)]
            queries = [await self._embedder.embed_query(text) for text in texts]
            vectors = await self._embedder.embed_documents(
                [extract.read(found[at], references) for at in chosen]
            )
        near = [
            [self._embedder.similarity(_dot(query, vector)) for vector in vectors]
            for query in queries
        ]
        return [
            {at: (own + whole) / 2 for at, own, whole in zip(chosen, values, near[0], strict=True)}
            for values in (near if len(asked) == 1 else near[1:])
        ]


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def _question(call: ModelCall) -> str:
    """What the answer is sought for: the call's question, else what the user said last."""
    if call.question.strip():
        return call.question
    return next((message.text for message in reversed(call.messages) if message.role == "user"), "")
