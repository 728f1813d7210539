"""The parts of a request and an answer that several providers share: search operators, and Google's
list of results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groundhook.core.types.web_providers import WebHit, WebQuery
from groundhook.handlers.web.providers.answers import objects_of, text_of

MAX_BYTES = 4 * 1024 * 1024  # bytes of an answer, decompressed


def with_operators(ask: WebQuery) -> str:
    """Return the query with its sites as search operators: `(site:a.org OR site:b.org) -site:c.org
    words`."""
    wanted = " OR ".join(f"site:{site}" for site in ask.sites)
    parts = [
        f"({wanted})" if len(ask.sites) > 1 else wanted,
        *(f"-site:{site}" for site in ask.exclude_sites),
        ask.query,
    ]
    return " ".join(part for part in parts if part)


def google_pages(name: str, answer: Mapping[str, Any], key: str) -> list[WebHit]:
    """Return Google's results, which a provider lists under `key`. Raises SourceMalformed."""
    return [
        WebHit(
            url=text_of(entry, "link"),
            title=text_of(entry, "title"),
            content=text_of(entry, "snippet"),
            published=text_of(entry, "date"),
        )
        for entry in objects_of(name, answer, key)
    ]
