"""Random documents written out with random comments, spaces and line ends, and the place of each
key and value in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

Path = tuple[str | int, ...]

# Quotes, slashes and commas are what a careless reader of comments would trip over.
keys = st.text(st.sampled_from('ab/*,"\\:{}[]é😀 '), max_size=6)
scalars = st.none() | st.booleans() | st.integers(-(10**6), 10**6) | keys
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(keys, values, max_size=4)

JSONC_GAPS = [
    "",
    " ",
    "\n",
    "\r\n",
    "\t",
    "// {comment\n",
    "/* [a, */",
    "/* two\nlines */",
    '/*"*/',
    "// \"'\r\n",
    "/**/",
]
JSON_GAPS = ["", " ", "\n", "\r\n", "\t", "\r"]
YAML_GAPS = [" ", "  ", "\n ", "\r\n  "]


class Writer:
    """Writes a value with gaps drawn by `gap`; notes the offset of every key and value."""

    def __init__(
        self, gap: Callable[[], str], *, trailing: Callable[[], bool], before_colon: bool = True
    ) -> None:
        self._gap, self._trailing, self._before_colon = gap, trailing, before_colon
        self.text = ""
        self.keys: dict[Path, int] = {}
        self.values: dict[Path, int] = {}

    def write(self, value: Any, path: Path = ()) -> None:
        self.text += self._gap()
        self.values[path] = len(self.text)
        if isinstance(value, dict):
            self._entries("{}", value, path, self._entry_of_object, list(value))
        elif isinstance(value, list):
            self._entries("[]", value, path, self._entry_of_list, list(range(len(value))))
        else:
            self.text += json.dumps(value, ensure_ascii=False)
        self.text += self._gap() if path else ""

    def _entries(
        self,
        brackets: str,
        value: Any,
        path: Path,
        entry: Callable[[Any, Path, Any], None],
        steps: list[Any],
    ) -> None:
        self.text += brackets[0]
        for n, step in enumerate(steps):
            self.text += "," if n else ""
            entry(value[step], (*path, step), step)
        if steps and self._trailing():
            self.text += "," + self._gap()
        self.text += self._gap() + brackets[1]

    def _entry_of_object(self, value: Any, path: Path, key: str) -> None:
        self.text += self._gap()
        self.keys[path] = len(self.text)
        self.text += (
            json.dumps(key, ensure_ascii=False) + (self._gap() if self._before_colon else "") + ":"
        )
        self.write(value, path)

    def _entry_of_list(self, value: Any, path: Path, _: int) -> None:
        self.write(value, path)
        self.keys[path] = self.values[path]


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """The plain way to count, for comparison."""
    before = text[:offset].replace("\r\n", "\n\n").replace("\r", "\n")
    lines = text[:offset].replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert len(before) == offset
    return len(lines), len(lines[-1]) + 1
