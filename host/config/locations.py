"""The result of parsing, the same for every format: data, the positions of keys and values, and
where parsing failed.

Offsets are in characters. `jsonc` and `yaml12` build the tree of nodes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Path: TypeAlias = tuple[str | int, ...]
KeyOrValue = Literal["key", "value"]

_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass
class Node:
    """A value of a document. `key` and `value` are offsets in characters; without a key of its own
    (an entry of a list, the document itself) both are the value's."""

    key: int
    value: int
    children: dict[str | int, Node] = field(default_factory=dict)

    def offset(self, path: Path, part: KeyOrValue) -> int:
        """Return the offset of the key or value at `path`, or of the nearest value around it where
        `path` does not exist."""
        node: Node = self
        for step in path:
            inner = node.children.get(step)
            if inner is None:
                return node.value
            node = inner
        return node.key if part == "key" else node.value


@dataclass(frozen=True)
class Repeated:
    """A key that an object has more than once: offsets of its first and its last occurrence."""

    path: Path
    first: int
    last: int


class Unreadable(Exception):
    """The text is not of the expected format: what is wrong, at which offset."""

    def __init__(self, message: str, offset: int, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.hint = hint


@dataclass(frozen=True)
class Parsed:
    """Data of a text. `index` builds the tree of places, `repeated` lists keys that occur twice;
    both are computed on demand."""

    data: Any
    index: Callable[[], Node]
    repeated: Callable[[], list[Repeated]]


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Return line and column of an offset in characters, both counted from 1; a line ends with LF,
    CRLF or CR."""
    starts = [0, *(match.end() for match in _LINE_END.finditer(text, 0, offset))]
    line = bisect_right(starts, offset)
    return line, offset - starts[line - 1] + 1
