"""Questions to a knowledge base of features."""

from __future__ import annotations

from typing import Any

from groundhook.core.ports import Scope, SourceResult
from groundhook.core.types.search import SearchRequest
from groundhook.handlers.kb.knowledge_base import KnowledgeBase
from tests.kb.conftest import scope


async def ask(
    kb: KnowledgeBase, query: str = "ripe pears", asker: Scope | None = None, **more: Any
) -> SourceResult:
    given = {"collections": ("docs",), "threshold": 0.0, "limit": 10, **more}
    return await kb.search(SearchRequest(type="kb", query=query, **given), asker or scope())
