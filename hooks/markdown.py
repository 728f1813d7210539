"""Markdown to HTML, for hooks. A hostile text takes minutes: call it by `core.readers.pool`."""

from __future__ import annotations


def markdown_to_html(text: str) -> str:
    """Return the HTML of CommonMark with tables and strikethrough. HTML in the text is escaped, and
    links that run code stay text."""
    from markdown_it import MarkdownIt  # imported here: it takes 10 ms, and few hooks need it

    return str(MarkdownIt("js-default", {"html": False}).render(text))
