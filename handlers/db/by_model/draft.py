"""Prepares what a language model is asked: the models that a question may be about, the values in
it, and what the built-in reader understood."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import anyio.to_thread

from groundhook.handlers.db.by_model.offered import Offered, choose, with_rows
from groundhook.handlers.db.by_model.prompt import prompt_for
from groundhook.handlers.db.by_model.reader import ReadingRequest
from groundhook.handlers.db.question.question import TokenizedQuestion
from groundhook.handlers.db.question.reading import Reads
from groundhook.handlers.db.question.scope import OfferedModel, QuestionScope
from groundhook.handlers.db.question.values import known_words, scopes_of
from groundhook.handlers.db.question.vocabulary import Vocabulary

# Returns a few rows of each of these models, as the identity may see them.
ExampleRows = Callable[[Sequence[str]], Awaitable[Mapping[str, Sequence[Mapping[str, Any]]]]]


@dataclass(frozen=True)
class Understood:
    """A question as the built-in reader understands it: its language, the models that it may be
    about, and the readings; `whole`: the models are all, not those that the question names."""

    text: str
    words: Vocabulary
    offers: Sequence[OfferedModel]
    reads: Reads
    now: datetime
    whole: bool


async def draft_of(
    understood: Understood, limit: int, permits: Hashable, example_rows: ExampleRows
) -> ReadingRequest:
    """Return what a model is asked about a question."""
    # In a thread: hundreds of models take a while.
    question, scopes, offered = await anyio.to_thread.run_sync(partial(_choose, understood))
    rows = await example_rows([table.schema.id for table in offered.tables])
    offered = with_rows(offered, rows)
    reads = understood.reads
    # What most words mean together, where all are known, would lead away from the question.
    rest = reads.understood if reads.unread else None
    known = reads.readings[0].query if reads.readings else rest
    prompt = prompt_for(offered, understood.text, understood.now, known, reads.unread)
    scopes = [scope for scope in scopes if offered.table(scope.schema.id) is not None]
    return ReadingRequest(question, scopes, offered, prompt, permits, limit)


def _choose(understood: Understood) -> tuple[TokenizedQuestion, Sequence[QuestionScope], Offered]:
    scopes = scopes_of(understood.text, understood.offers, understood.words)
    question = TokenizedQuestion.of(
        understood.text,
        understood.words,
        understood.now,
        frozenset[str]().union(*map(known_words, scopes)),
    )
    return question, scopes, choose(question, understood.offers, scopes)
