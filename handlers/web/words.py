"""The words that a question is searched for with: by the built-in rules, or by whoever
`uses.keyword` names."""

from __future__ import annotations

from groundhook.handlers.web.keywords import Keywords, extract, weighed
from groundhook.host.core.errors import DelegateError
from groundhook.host.core.ports import Scope
from groundhook.host.core.trace import span
from groundhook.host.core.types.delegation import KEYWORD, KeywordAsk


async def search_words(question: str, scope: Scope) -> str:
    """What to send to a search engine. An extractor that fails does not stop the search: the
    built-in one serves, and a warning says so."""
    settings = scope.settings.keyword
    with span("keywords", label=scope.uses.keyword) as node:
        keywords = None
        if scope.uses.keyword != "builtin":
            try:
                keywords = await _delegated(question, scope)
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


async def _delegated(question: str, scope: Scope) -> Keywords:
    settings = scope.settings.keyword
    asked = KeywordAsk(
        query=question, max_keywords=settings.max_keywords, language=settings.language
    )
    answer = await scope.delegates.ask(
        KEYWORD,
        scope.uses.keyword,
        asked,
        timeout_ms=settings.timeout_ms,
        hint="search.keyword.timeout_ms",
    )
    return weighed(
        [(keyword.k, keyword.w) for keyword in answer.keywords], most=settings.max_keywords
    )
