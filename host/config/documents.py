"""Files of an app as documents: data, and the exact place of every key and value.

The format follows from the file's ending: `.yao`, `.jsonc` and `tsconfig.json` (JSON with comments
and trailing commas), `.json` (strict), `.yml` and `.yaml` (YAML 1.2). It does not know what a
document means.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path as FilePath
from typing import Any, Literal

from groundhook.core.errors import ConfigError, Place
from groundhook.core.problems import Problem
from groundhook.core.types.base import dotted
from groundhook.host.config.jsonc import parse_json, parse_jsonc
from groundhook.host.config.locations import (
    KeyOrValue,
    Node,
    Parsed,
    Path,
    Unreadable,
    line_and_column,
)
from groundhook.host.config.yaml12 import parse_yaml

Top = Literal["object", "list", "any"]

_PARSERS: dict[str, Callable[[str], Parsed]] = {
    ".yao": parse_jsonc,
    ".jsonc": parse_jsonc,
    ".json": parse_json,
    ".yml": parse_yaml,
    ".yaml": parse_yaml,
}
_NAMED: dict[str, Callable[[str], Parsed]] = {"tsconfig.json": parse_jsonc}
_TOPS: dict[Top, tuple[type, ...]] = {"object": (dict,), "list": (list,), "any": (dict, list)}
_SHOULD_BE: dict[Top, str] = {"object": "an object", "list": "a list", "any": "an object or a list"}


@dataclass(frozen=True)
class ConfigDocument:
    """The content of a file. `file` is its name in messages."""

    file: str
    data: Any
    text: str = field(repr=False)
    parsed: Parsed = field(repr=False)

    @cached_property
    def _index(self) -> Node:
        return self.parsed.index()

    def place(self, path: Path = (), *, of: KeyOrValue = "value") -> Place:
        """Return line and column of the value (or key) at `path`, or of the nearest value around it
        where `path` does not exist."""
        return self._place(self._index.offset(path, of))

    def place_of_match(self, path: Path, match: re.Match[str]) -> Place:
        """Return the place of a match in the text at `path`; if it is written with escapes, the
        place of the whole text."""
        start = self._index.offset(path, "value")
        # Matched again, because the same characters may be the beginning of a longer name.
        again = match.re.finditer(self.text, start)
        same = (found.start() for found in again if found[0] == match[0])
        return self._place(next(same, start))

    def at(self, path: Path, absent: Any = None) -> Any:
        """Return the value at `path` as it is written, or `absent`."""
        value = self.data
        for step in path:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return absent
        return value

    @cached_property
    def warnings(self) -> tuple[Problem, ...]:
        """Return a warning for each key that occurs twice in an object; the last one counts."""
        return tuple(
            self._make_warning(again.path, again.first, again.last)
            for again in self.parsed.repeated()
        )

    def _make_warning(self, path: Path, first: int, last: int) -> Problem:
        line, _ = line_and_column(self.text, first)
        message = f"the key {dotted(path)!r} occurs twice, first in line {line}; this one counts"
        return Problem("warning", message, self._place(last), code="duplicate_key")

    def _place(self, offset: int) -> Place:
        return Place(self.file, *line_and_column(self.text, offset))


def read_document(path: FilePath, shown: str, *, top: Top = "object") -> ConfigDocument:
    """Return the content of a file, read in the format that its ending names; `top` is the type it
    must hold. Raises ConfigError."""
    try:
        raw = path.read_bytes()
    except OSError as exc:
        raise ConfigError(f"cannot be read: {exc.strerror or exc}", place=Place(shown)) from exc
    return parse_document(raw, shown, top=top)


def parse_document(raw: bytes, shown: str, *, top: Top = "object") -> ConfigDocument:
    """Return the content of bytes, as `read_document` does of a file. Raises ConfigError."""
    name = FilePath(shown)
    parser = _NAMED.get(name.name) or _PARSERS.get(name.suffix.lower())
    if parser is None:
        known = ", ".join(_PARSERS)
        raise ConfigError(
            "this format is not supported", place=Place(shown), hint=f"known endings: {known}"
        )
    text = decode_text(raw, shown)
    if not text.strip() and parser is not parse_yaml:
        raise ConfigError(f"empty, it should hold {_SHOULD_BE[top]}", place=Place(shown, 1, 1))
    try:
        parsed = parser(text)
    except Unreadable as exc:
        place = Place(shown, *line_and_column(text, exc.offset))
        raise ConfigError(exc.message, place=place, hint=exc.hint) from None
    data: Any = parsed.data
    if data is None and parser is parse_yaml:
        data = [] if top == "list" else {}  # an empty file, or one with comments alone, is allowed
    if isinstance(data, dict) and isinstance(data.get("$schema"), str):
        data = {key: value for key, value in data.items() if key != "$schema"}  # is for editors
    document = ConfigDocument(shown, data, text, parsed)
    if not isinstance(data, _TOPS[top]):
        found = _name_type(data)
        raise ConfigError(f"should hold {_SHOULD_BE[top]}, not {found}", place=document.place())
    return document


def decode_text(raw: bytes, shown: str) -> str:
    """Return the text of a file. Raises ConfigError with the line that is not UTF-8."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = raw.count(b"\n", 0, exc.start) + 1
        raise ConfigError(
            f"not UTF-8: byte 0x{raw[exc.start]:02x}",
            place=Place(shown, line),
            hint="save the file as UTF-8",
        ) from None


def _name_type(value: Any) -> str:
    names = {
        dict: "an object",
        list: "a list",
        str: "text",
        bool: "true or false",
        int: "a number",
        float: "a number",
    }
    return names.get(type(value), "nothing")
