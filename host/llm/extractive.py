"""The connector without a language model: it quotes the sentences of the references that answer the question best.

What to quote and how it reads is decided by `host.llm.extract`; here the embedding model is asked and the text is streamed.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager

import anyio.lowlevel

from host.llm import extract
from host.llm.extract import Candidate
from host.ports import Delta, Embedder, Finished, ModelCall, TextDelta
from host.trace import span
from host.types.search import Item

NAME = "extractive"

_PIECE = re.compile(r"\S+\s*|\s+")


class ExtractiveConnector:
    """Answers from `call.references`; with an embedder also by meaning, so that other words for the same thing count."""

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
        found = extract.candidates(references)
        lexical = extract.words(question, found, references)
        meaning = await self._meaning(question, found, lexical)
        quotes = extract.choose(question, found, lexical, meaning, references)
        return extract.compose(quotes, references, direct=extract.answers(lexical, meaning))

    async def _meaning(self, question: str, found: Sequence[Candidate], lexical: Sequence[float]) -> dict[int, float] | None:
        """The similarity (0-1) of question and candidate, for those on the shortlist."""
        if self._embedder is None or not found or not question.strip():
            return None
        chosen = extract.shortlist(found, lexical)
        with span("sentence_embedding", sentences=len(chosen)):
            asked = await self._embedder.embed_query(question)
            vectors = await self._embedder.embed_documents([found[at].text for at in chosen])
        return {
            at: self._embedder.similarity(sum(a * b for a, b in zip(asked, vector, strict=True)))
            for at, vector in zip(chosen, vectors, strict=True)
        }


def _question(call: ModelCall) -> str:
    """What the answer is sought for: the call's question, else what the user said last."""
    if call.question.strip():
        return call.question
    return next((message.text for message in reversed(call.messages) if message.role == "user"), "")
