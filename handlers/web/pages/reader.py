"""What is done with a fetched page in a process of its own (`core.readers.pool`): its passage for a
question, and the rules of its site's robots.txt."""

from __future__ import annotations

from typing import Any

from groundhook.core.errors import IngestError
from groundhook.core.extras import extra
from groundhook.handlers.web.pages import extract
from groundhook.handlers.web.pages.passages import best_passage

warm = extract.warm


def read_page(body: bytes, media_type: str, charset: str, query: str | None) -> dict[str, Any]:
    """Return {title, passage, published, characters} of a page; the passage is the whole text if
    `query` is None. Raises IngestError for a page that cannot be read."""
    page = extract.extract_page(body, media_type, charset)
    passage = page.text if query is None else best_passage(page.text, query)
    return {
        "title": page.title,
        "passage": passage,
        "published": page.published,
        "characters": len(page.text),
    }


def is_allowed(rules: str, agent: str, url: str) -> bool:
    """Return whether a robots.txt allows a page."""
    with extra("web", "reading pages", IngestError):
        from protego import Protego

    return bool(Protego.parse(rules).can_fetch(url, agent))
