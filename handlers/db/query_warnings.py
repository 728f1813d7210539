"""Warnings about how a question was read and which parts of a request have no effect. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from groundhook.core.types.search import SearchRequest
from groundhook.handlers.db.query.dsl import QueryDSL
from groundhook.handlers.db.query.linter import Problem
from groundhook.handlers.db.query.request_query import ignored_options
from groundhook.handlers.db.question.reading import Reading

MAX_SHOWN_WORD = 60  # characters of a word in a warning


class CheckedQuery(NamedTuple):
    """A query as written, the same query ready for the compiler, and the linter's warnings."""

    query: QueryDSL
    clean: QueryDSL
    warnings: list[Problem]


def query_warnings(
    request: SearchRequest, readings: Sequence[Reading], checked: Sequence[CheckedQuery]
) -> Iterator[tuple[str, str]]:
    """Yield a code and a message for each warning, without repetitions. Readings of models that are
    not searched are ignored."""
    models = {one.query.model for one in checked}
    used = [reading for reading in readings if reading.dsl.model in models]
    notes = (("db_query_read", note) for reading in used for note in reading.notes)
    ignored = (
        ("db_query_read", f"the question asks for figures, so {name!r} has no effect")
        for reading in used
        for name in ignored_options(request, reading.dsl)
    )
    lint = (("db_query_lint", str(problem)) for one in checked for problem in one.warnings)
    yield from dict.fromkeys(chain(notes, ignored, lint, _warn_of_words(used)))


def _warn_of_words(used: Sequence[Reading]) -> Iterator[tuple[str, str]]:
    """Yield a warning for the words that are searched for as text, and one for those omitted."""
    omitted = dict.fromkeys(word for reading in used for word in reading.left_out)
    not_understood = dict.fromkeys(word for reading in used for word in reading.not_understood)
    searched = [word for word in not_understood if word not in omitted]
    for words, done in ((searched, "searched for as text"), (omitted, "omitted")):
        if words:
            shown = ", ".join(map(_quote, words))
            yield "db_query_words", f"words that were not understood and were {done}: {shown}"


def _quote(word: str) -> str:
    return repr(word if len(word) <= MAX_SHOWN_WORD else f"{word[:MAX_SHOWN_WORD]}…")
