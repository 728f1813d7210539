"""The result of reading a file: its text, and where its parts begin and end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

BlockKind = Literal["heading", "paragraph", "list", "table", "code"]


@dataclass(frozen=True)
class Block:
    """A part of a document: characters `start` to `end` of its text. A heading has a `level` of 1-6
    and its text as `name`; `page` counts from 1, 0 in a format without pages."""

    kind: BlockKind
    start: int
    end: int
    level: int = 0
    name: str = ""
    page: int = 0


@dataclass(frozen=True)
class DocumentField:
    """The value of a field of a document: front matter, a column. `line` counts from 1; 0: not
    known."""

    value: Any
    line: int = 0


@dataclass(frozen=True)
class Document:
    """A file, or a row of one, as text in consecutive blocks. `url` is its address, or empty;
    `fields` are its other values, by name; `about` is what searches find it by beside its title and
    text; `notes` are messages to the person who adds it, such as
    parts that could not be read."""

    title: str
    text: str
    blocks: tuple[Block, ...]
    url: str = ""
    fields: Mapping[str, DocumentField] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    about: str = ""

    @property
    def empty(self) -> bool:
        """Whether no block has text."""
        return not any(self.text[block.start : block.end].strip() for block in self.blocks)


# Reads the bytes of a file; the second argument is its name. Raises IngestError.
Reader = Callable[[bytes, str], Document]
