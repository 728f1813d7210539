"""Markdown that hooks want as HTML. Pure; may take a second on the largest texts, so callers that must not wait use a thread."""

from __future__ import annotations

from markdown_it import MarkdownIt


def markdown_to_html(text: str) -> str:
    """CommonMark with tables and strikethrough. HTML in the text is shown, not kept, and links that run code are no links."""
    return str(MarkdownIt("js-default", {"html": False}).render(text))
