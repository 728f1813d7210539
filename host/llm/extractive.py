"""The connector without a language model: it quotes the sentences of the references that answer the
question best.

`host.llm.questions` parses the question, `host.llm.extract` chooses what to quote,
`host.llm.compose` writes the answer. This module streams the text.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager

import anyio.lowlevel

from groundhook.core.ports import Delta, Finished, ModelCall, TextDelta
from groundhook.core.types.search import Item, SourceType
from groundhook.host.llm import extract, passages, questions
from groundhook.host.llm.compose import compose

NAME = "extractive"
LONGEST_QUESTION = 8000  # characters

_PIECE = re.compile(r"\S+\s*|\s+")


class ExtractiveConnector:
    """Answers from `call.references`."""

    @asynccontextmanager
    async def stream(self, call: ModelCall, /) -> AsyncIterator[AsyncIterator[Delta]]:
        async with aclosing(self._deltas(call)) as deltas:
            yield deltas

    async def _deltas(self, call: ModelCall) -> AsyncGenerator[Delta]:
        text = _answer(_question(call), call.references, call.failed_searches)
        for piece in _PIECE.findall(text):
            yield TextDelta(piece)
            # Lets other turns run: nothing else here waits.
            await anyio.lowlevel.checkpoint()
        yield Finished("stop", model=NAME)


def _answer(
    question: str, references: Sequence[Item], failed_searches: Sequence[SourceType]
) -> str:
    candidates = passages.candidates(references)
    if not candidates:  # checked first: parsing a long question takes time
        return compose([], references, direct=False, failed=failed_searches)
    parts = questions.parts(question)
    words = [extract.words(part, candidates, references) for part in parts]
    quotes = extract.choose(parts, candidates, words, references)
    direct = extract.answers(words, references)
    return compose(quotes, references, direct=direct, failed=failed_searches)


def _question(call: ModelCall) -> str:
    """Return the question of a call, else the text of its last user message. Of a longer one than
    LONGEST_QUESTION, which has a text for its question, only the beginning and the end are read."""
    users = (message.text for message in reversed(call.messages) if message.role == "user")
    question = call.question if call.question.strip() else next(users, "")
    if len(question) <= LONGEST_QUESTION:
        return question
    half = LONGEST_QUESTION // 2
    return f"{question[:half]}\n{question[-half:]}"
