"""What a reader makes of a file: text, and where its parts begin and end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["heading", "paragraph", "list", "table", "code"]


@dataclass(frozen=True)
class Block:
    """A part of a document: characters `start` to `end` of its text. Headings have a `level` of 1-6
    and their `name`; `page` counts from 1 where there are pages."""

    kind: Kind
    start: int
    end: int
    level: int = 0
    name: str = ""
    page: int = 0


@dataclass(frozen=True)
class Said:
    """A value that a document gives for a field of its own: front matter, a column. `line` is
    where, 0 if not known."""

    value: Any
    line: int = 0


@dataclass(frozen=True)
class Document:
    """A file, or a row of one, as text. `url` is the address it gives for itself, or empty; `said`
    what it says of itself beside its text, by name; `notes` what whoever adds it should know: what
    of it could not be read, or was guessed."""

    title: str
    text: str
    blocks: tuple[Block, ...]
    url: str = ""
    said: Mapping[str, Said] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        return not any(self.text[block.start : block.end].strip() for block in self.blocks)


def hidden_words(count: int) -> tuple[str, ...]:
    """What to say of a document whose hidden text was left out: nobody who reads the file sees it,
    and a model might obey it."""
    words = (
        "1 word that it hides from its readers was"
        if count == 1
        else f"{count} words that it hides from its readers were"
    )
    return (f"{words} left out",) if count else ()
