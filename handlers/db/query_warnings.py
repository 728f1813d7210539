"""Warnings about how a question was read and which parts of a request have no effect. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from groundhook.core.types.search import SearchRequest
from groundhook.handlers.db.query.dsl import QueryDSL
from groundhook.handlers.db.query.linter import QueryProblem
from groundhook.handlers.db.query.request_query import ignored_options


class CheckedQuery(NamedTuple):
    """A query as written, the same query ready for the compiler, and the linter's warnings."""

    query: QueryDSL
    clean: QueryDSL
    warnings: list[QueryProblem]


def query_warnings(
    request: SearchRequest, queries: Sequence[QueryDSL], checked: Sequence[CheckedQuery]
) -> Iterator[tuple[str, str]]:
    """Yield a code and a message for each warning, without repetitions. `queries` are those of the
    question, `checked` those that are run."""
    ignored = (
        ("db_query_read", f"the question asks for figures, so {name!r} has no effect")
        for query in queries
        for name in ignored_options(request, query)
    )
    lint = (("db_query_lint", str(problem)) for one in checked for problem in one.warnings)
    yield from dict.fromkeys(chain(ignored, lint))
