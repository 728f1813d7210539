"""Paragraphs and table cells of the generated documents."""

from __future__ import annotations

import textwrap

WIDTH = 100  # columns, as in documents that are written by hand


def paragraph(text: str) -> str:
    """Return a text in lines of at most WIDTH columns; longer words stay whole."""
    return textwrap.fill(
        " ".join(text.split()), WIDTH, break_long_words=False, break_on_hyphens=False
    )


def cell(text: str) -> str:
    """Return a text for a cell of a table: one line, with its bars escaped."""
    return " ".join(text.split()).replace("|", "\\|")
