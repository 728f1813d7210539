"""Parses JSON with comments and trailing commas, and strict JSON: text to data, with the position
of each key and value.

Comments and trailing commas are blank with spaces, which keeps every offset, and the standard
parser reads the rest: its positions are then those of the file. NaN, Infinity, numbers beyond a
double and halves of surrogate pairs are errors.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from groundhook.host.config.locations import Node, Parsed, Path, Repeated, Unreadable

_STRING = r'"(?:[^"\\\r\n]|\\.)*"'
_COMMENT = re.compile(rf"{_STRING}|//[^\r\n]*|/\*[\s\S]*?\*/|/\*")
# A comma without a value before it (`[,` `,,` `:,`) is matched with the character before it, so
# that it stays and the parser refuses it.
_COMMA = re.compile(rf"{_STRING}|[\[{{:,]\s*,|,(?=\s*[}}\]])")
_TRAILING = re.compile(r",\s*[}\]]")
_TOKEN = re.compile(rf'{_STRING}|[{{}}\[\]:,]|[^\s{{}}\[\]:,"]+')
_NOT_A_LINE_END = re.compile(r"[^\r\n]")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")

_WORDS = {
    "Expecting property name enclosed in double quotes": "expected a key in double quotes",
    "Expecting ':' delimiter": "expected ':' after the key",
    "Expecting ',' delimiter": "expected ',' or the closing bracket",
    "Expecting value": "expected a value",
    "Illegal trailing comma before end of object": (
        "a comma before '}' is not allowed in strict JSON"
    ),
    "Illegal trailing comma before end of array": (
        "a comma before ']' is not allowed in strict JSON"
    ),
    "Extra data": "nothing may follow the end of the document",
    "Unterminated string starting at": "a string without its closing quote",
    "Invalid control character at": "a line break or control character inside a string",
    "Invalid \\escape": "an escape that JSON does not have",
    "Invalid \\uXXXX escape": r"\u needs four hexadecimal digits",
    "Unexpected UTF-8 BOM": "a second byte order mark",
}


def parse_jsonc(text: str) -> Parsed:
    """Return the data of JSON with `//` and `/* */` comments and trailing commas. Raises
    Unreadable."""
    return _parse(blank(text))


def parse_json(text: str) -> Parsed:
    """Return the data of strict JSON. Raises Unreadable."""
    try:
        return _parse(text)
    except Unreadable as exc:
        if text.startswith(("//", "/*"), exc.offset):
            raise Unreadable(
                "a .json file has no comments", exc.offset, "name it .jsonc or .yao to comment it"
            ) from None
        raise


def blank(text: str) -> str:
    """Return the text with comments and trailing commas replaced by spaces: the same length, the
    same line ends."""
    # Most long documents have neither, and each string of a document is looked at for them.
    if "//" in text or "/*" in text:
        text = _COMMENT.sub(_remove_comment, text)
    return _COMMA.sub(_remove_comma, text) if _TRAILING.search(text) else text


def _remove_comment(match: re.Match[str]) -> str:
    found = match.group()
    if found == "/*":
        raise Unreadable("a comment without its closing */", match.start())
    return found if found[0] == '"' else _NOT_A_LINE_END.sub(" ", found)


def _remove_comma(match: re.Match[str]) -> str:
    return " " if match.group() == "," else match.group()


def _parse(text: str) -> Parsed:
    seen_twice = False

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal seen_twice
        made = dict(items)
        seen_twice = seen_twice or len(made) != len(items)
        return made

    try:
        data = json.loads(
            text, object_pairs_hook=pairs, parse_constant=_refuse_constant, parse_float=_parse_float
        )
    except json.JSONDecodeError as exc:
        _reword(text, exc)
    except _NotANumber as exc:
        raise Unreadable(
            f"{exc.literal} is not a number in JSON", _literal_offset(text, exc.literal)
        ) from None
    except RecursionError:
        raise Unreadable("nested too deeply", 0) from None
    except ValueError:
        # The only other ValueError is Python's limit on the digits of an integer.
        raise Unreadable("a number with too many digits", _long_number_offset(text)) from None
    if _SURROGATE.search(text):
        _refuse_half_surrogates(text)
    return Parsed(data, lambda: _index(text)[0], lambda: _index(text)[1] if seen_twice else [])


class _NotANumber(Exception):
    def __init__(self, literal: str) -> None:
        self.literal = literal


def _refuse_constant(literal: str) -> NoReturn:
    raise _NotANumber(literal)


def _parse_float(literal: str) -> float:
    value = float(literal)
    if math.isinf(value):
        raise _NotANumber(literal)
    return value


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    return ((match.group(), match.start()) for match in _TOKEN.finditer(text))


def _literal_offset(text: str, literal: str) -> int:
    return next((offset for token, offset in _tokens(text) if token == literal), 0)


def _long_number_offset(text: str) -> int:
    return next(
        (offset for token, offset in _tokens(text) if len(token) > 4000 and token[0] != '"'), 0
    )


def _refuse_half_surrogates(text: str) -> None:
    for token, offset in _tokens(text):
        if token[0] == '"' and _SURROGATE.search(token):
            try:
                json.loads(token).encode()
            except UnicodeEncodeError:
                raise Unreadable("half of a surrogate pair in a string", offset) from None


def _reword(text: str, exc: json.JSONDecodeError) -> NoReturn:
    if not text[exc.pos :].strip() and not exc.msg.startswith("Unterminated"):
        raise Unreadable("the file ends before the document does", exc.pos) from None
    here = text[exc.pos]
    words = _WORDS.get(exc.msg, exc.msg[:1].lower() + exc.msg[1:])
    if here == "'":
        raise Unreadable(words, exc.pos, "strings need double quotes") from None
    found = f", found {here!r}" if words.startswith("expected") else ""
    raise Unreadable(words + found, exc.pos) from None


@dataclass
class _Open:
    """An object or list that is still open: `step` is the key or index of its next value."""

    node: Node
    path: Path
    is_object: bool
    step: str | int | None
    key_offset: int = 0

    def after_comma(self) -> None:
        self.step = None if self.is_object else int(self.step or 0) + 1

    def hold(self, offset: int) -> Node:
        """Add the value that begins at `offset` under the current step; return its node."""
        assert self.step is not None
        node = Node(self.key_offset if self.is_object else offset, offset)
        self.node.children[self.step] = node
        return node


def _index(text: str) -> tuple[Node, list[Repeated]]:
    """Return the positions in a text that the parser accepted, and the keys that occur twice in an
    object."""
    root = Node(0, 0)
    repeated: list[Repeated] = []
    stack: list[_Open] = []
    for token, offset in _tokens(text):
        top = stack[-1] if stack else None
        if token in ("}", "]"):
            stack.pop()
        elif token == ",":
            stack[-1].after_comma()
        elif token == ":":
            continue
        elif top is not None and top.step is None:
            top.step, top.key_offset = json.loads(token), offset
        else:
            path: Path = ()
            if top is None:
                root = node = Node(offset, offset)
            else:
                path = (*top.path, top.step if top.step is not None else 0)
                earlier = top.node.children.get(path[-1])
                node = top.hold(offset)
                if earlier is not None:
                    repeated.append(Repeated(path, earlier.key, node.key))
            if token in ("{", "["):
                stack.append(_Open(node, path, token == "{", None if token == "{" else 0))
    return root, repeated
