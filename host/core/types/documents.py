"""What a reader makes of a file: text, and where its parts begin and end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
class DocumentField:
    """A value that a document gives for a field of its own: front matter, a column. `line` is
    where, 0 if not known."""

    value: Any
    line: int = 0


@dataclass(frozen=True)
class Document:
    """A file, or a row of one, as text, in blocks that follow each other. `url` is its address, or
    empty; `fields` are values it has beside its text, by name; `notes` are shown to the person who
    adds it: what could not be read, or was guessed."""

    title: str
    text: str
    blocks: tuple[Block, ...]
    url: str = ""
    fields: Mapping[str, DocumentField] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        return not any(self.text[block.start : block.end].strip() for block in self.blocks)


# Of the bytes of a file and its name. Raises IngestError for a file that it cannot read.
Reader = Callable[[bytes, str], Document]
