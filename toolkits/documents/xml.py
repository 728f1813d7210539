"""Writes a result as XML for a model. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.sax.saxutils import escape

# Everything that XML 1.0 allows in a text (https://www.w3.org/TR/xml/#charsets), without the
# carriage return, which a parser would turn into a line feed.
_IMPOSSIBLE = re.compile("[^\t\n\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def results_xml(
    query: str, documents: Sequence[tuple[int | str, str | None, float]], notices: Sequence[str]
) -> str:
    """Return a result as XML: the question, the number of documents listed, and each with id,
    title and a relevance of two decimals; after them a `notice` for each part that is missing."""
    lines = [
        "<searchResults>",
        f"  <query>{_text(query)}</query>",
        f"  <totalDocuments>{len(documents)}</totalDocuments>",
        "  <documentIds>",
    ]
    for id, title, score in documents:
        lines += [
            "    <document>",
            f"      <id>{_text(str(id))}</id>",
            f"      <title>{_text(title or '')}</title>",
            f"      <relevanceScore>{score:.2f}</relevanceScore>",
            "    </document>",
        ]
    lines.append("  </documentIds>")
    lines += [f"  <notice>{_text(notice)}</notice>" for notice in notices]
    return "\n".join([*lines, "</searchResults>"])


def _text(text: str) -> str:
    return escape(_IMPOSSIBLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))
