"""Markdown that hooks want as HTML. Pure; may take a second on the largest texts, so callers that
must not wait use a thread."""

from __future__ import annotations


def markdown_to_html(text: str) -> str:
    """CommonMark with tables and strikethrough. HTML in the text is shown, not kept, and links that
    run code are no links."""
    from markdown_it import MarkdownIt  # 10 ms, and few hooks ask

    return str(MarkdownIt("js-default", {"html": False}).render(text))
