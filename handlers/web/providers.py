"""Helpers that the clients of web search providers share."""

from __future__ import annotations

from groundhook.host.core.types.web_providers import WebQuery

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
