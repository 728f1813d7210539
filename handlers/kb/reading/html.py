"""HTML to documents, by way of Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from handlers.kb.reading.document import Document
from handlers.kb.reading.markdown import from_markdown

if TYPE_CHECKING:
    from bs4 import BeautifulSoup

NO_TEXT = ("script", "style", "noscript", "template", "svg", "head")


def html(data: bytes, name: str) -> Document:
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(data, "html.parser")
    title = soup.title.get_text(" ", strip=True) if soup.title else ""
    canonical = soup.find("link", rel="canonical")
    address = str(canonical.get("href") or "") if canonical else ""
    document = from_markdown(_markdown_of(soup, drop=(*NO_TEXT, "nav")), name, front=False)
    url = address if address.startswith(("http://", "https://")) else ""
    return Document(title or document.title, document.text, document.blocks, url)


def markdown_of(html: str) -> str:
    """A piece of HTML as Markdown, without what is no text; images are left out."""
    from bs4 import BeautifulSoup

    return _markdown_of(BeautifulSoup(html, "html.parser"), drop=NO_TEXT)


def _markdown_of(soup: BeautifulSoup, drop: Sequence[str]) -> str:
    from markdownify import MarkdownConverter

    for tag in soup(list(drop)):
        tag.decompose()
    text: str = MarkdownConverter(heading_style="ATX", strip=["img"]).convert_soup(soup)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
