"""The step from a question to search words: by the built-in rules, or by the delegate in
`uses.keyword`."""

from __future__ import annotations

from groundhook.core.errors import DelegateError
from groundhook.core.ports import Scope
from groundhook.core.trace import span
from groundhook.core.types.delegation import KeywordAsk
from groundhook.core.types.uses import KEYWORD
from groundhook.handlers.web.keywords import Keywords, extract, from_weighted


async def search_words(question: str, scope: Scope) -> str:
    """Return the query for a search engine. If the delegate fails, the built-in rules replace it
    with a warning."""
    settings = scope.settings.keyword
    with span("keywords", label=scope.uses.keyword) as node:
        keywords = None
        if scope.uses.keyword != "builtin":
            try:
                keywords = await _ask_delegate(question, scope)
            except DelegateError as exc:
                node.fail(str(exc))
                await scope.warn(exc.code, f"{exc}; the built-in keywords were used")
        keywords = keywords or extract(
            question, most=settings.max_keywords, language=settings.language
        )
        node.data |= {
            "query": keywords.query,
            "keywords": list(keywords.phrases),
            "weights": list(keywords.weights),
        }
    return keywords.query


async def _ask_delegate(question: str, scope: Scope) -> Keywords:
    settings = scope.settings.keyword
    arguments = KeywordAsk(
        query=question, max_keywords=settings.max_keywords, language=settings.language
    )
    answer = await scope.delegates.ask(
        KEYWORD,
        scope.uses.keyword,
        arguments,
        timeout_ms=settings.timeout_ms,
        hint="search.keyword.timeout_ms",
    )
    return from_weighted(
        [(keyword.k, keyword.w) for keyword in answer.keywords], most=settings.max_keywords
    )
