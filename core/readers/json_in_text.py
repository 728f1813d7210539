"""JSON in texts of models, people and hooks: the first value, repaired if its form is slightly
wrong.

A value is read as a whole or not at all: a part of a broken or cut value would look complete.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import anyio

from groundhook.core.json_text import (
    MOST_COMMAS,
    MOST_LISTS,
    NestedTooDeeply,
    NotJson,
    is_deeper,
    read_json,
    read_json_at,
)

LONG = 2000  # characters that take longer than a thread does
LONGEST_REPAIR = 200_000  # characters of a value that is repaired, or read as YAML
LONGEST_WORD = 20_000  # characters of a text in brackets that is not JSON
MOST_SPANS = 300  # brackets of a text that are tried as the beginning of a value
MOST_TRIED = 200_000  # characters, beside as many as the text has, that those tries read in all

_BRACKET = re.compile(r"[\[{]")
_OPENING = re.compile(r" {0,3}(?P<fence>```++|~~~++)[ \t]*+(?P<language>[\w+-]*)")
_CLOSING = re.compile(r" {0,3}(?P<fence>```++|~~~++)\s*+")
_JSON = ("json", "jsonc", "json5")
_YAML = ("yaml", "yml")
# What follows a bracket that begins JSON, and not a word in brackets.
_JSON_LIKE = re.compile(
    r"""\{\s*(?:["'}]|//|/\*|[A-Za-z_$][\w$-]*\s*:)|\[\s*(?:[\[{"'\]]|//|/\*|-?\d+(?:\.\d+)?\s*[,\]])"""
)
# Quotes as word processors write them. Those that stand where JSON has its own are replaced.
_CURLY = "“”„‟‘’‚‛«»"
_CURLY_JSON = re.compile(rf"[\[{{]\s*[{_CURLY}]")
_CURLY_MARK = re.compile(rf"(?<=[\[{{,:])(\s*)[{_CURLY}]|[{_CURLY}](?=\s*[,:\]}}])")
# What a model thinks before it answers, where its server leaves that in the text.
_THOUGHT = re.compile(r"\s*<(think|thinking)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\{\{")  # of a template
_YAML_TEXT = re.compile(r"[a-z_][\w-]*:(?:[ \t][^\n]*)?\n")  # a whole text that may be YAML
# One line of YAML with a key, an entry, or a comment; prose with a colon has words before it.
_YAML_LINE = re.compile(r"\s*(?:- |-$|#|(?:- )?[\w\"'.-]+:(?:\s|$))|\s+\S|$")
_NOT_JSON = re.compile(r"[:\[,]\s*(?:-?(?:NaN|Infinity)|undefined)\s*[,\]}]")
# A text or comment that is not closed extends to the end: a search that went on after its beginning
# would read the rest again and again.
_TEXT = r""""(?>(?:[^"\\]|\\.)*)"?+"""
_REMARK = r"//[^\n]*|/\*.*?(?:\*/|\Z)"
_COMMENT = re.compile(rf"""({_TEXT}|'(?>(?:[^'\\]|\\.)*)'?+)|{_REMARK}""", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)
_WORD = re.compile(r"(?<![^\W_])[^\W\d_]+")
_CONSTANTS = {"True", "False", "None", "true", "false", "null"}
_ALIAS = re.compile(r"(?:^|\s)[&*]\w")  # aliases make a small text expand without end


def extract_json(text: str) -> Any:
    """Return the first JSON value of a text, or None, also for one that is nested so deeply that
    its readers would fail. The whole text may be any value; else an
    object or a list in a fenced block, else anywhere.

    Trailing and missing commas, comments, single and typographic quotes and keys without quotes are
    repaired; a fenced block, or a whole text of several lines, may be YAML. A `<think>` block at
    the beginning is skipped. None for a value that is cut or cannot be repaired, even where a part
    of it could be read, and for a text of more than MOST_LISTS brackets or MOST_COMMAS commas that
    is not JSON. Takes time in proportion to the text: seconds for YAML of LONGEST_REPAIR.
    """
    value = _extract(text)
    return None if is_deeper(value) else value


async def extract_json_aside(text: str) -> Any:
    """Return what `extract_json` does, without holding up the event loop for a long text."""
    if len(text) <= LONG:
        return extract_json(text)
    return await anyio.to_thread.run_sync(extract_json, text, abandon_on_cancel=True)


def _extract(text: str) -> Any:
    if thought := _THOUGHT.match(text):
        text = text[thought.end() :]
    whole = text.strip().removeprefix("\ufeff").strip()
    try:
        return read_json(whole)
    except NestedTooDeeply:
        return None
    except NotJson:
        brackets = whole.count("[") + whole.count("{")
        if brackets > MOST_LISTS or whole.count(",") > MOST_COMMAS:
            return None
    outside, at = [], 0
    for fence in _fences(text):
        body = text[fence.body : fence.end].strip()
        value = _read_yaml(body) if fence.language in _YAML else _find_in_prose(body)
        if value is not None or (fence.language in _JSON and _JSON_LIKE.match(body)):
            return value
        outside.append(text[at : fence.start])
        at = fence.after
    value = _find_in_prose("".join([*outside, text[at:]]))
    return _read_yaml(whole) if value is None and _YAML_TEXT.match(whole) else value


@dataclass(frozen=True)
class _Fence:
    """A fenced block: where it starts, where its body starts and ends, and what is after it."""

    language: str
    start: int
    body: int
    end: int
    after: int


def _fences(text: str) -> Iterator[_Fence]:
    """Yield the fenced blocks of a text; the last is none where nothing closes it."""
    opened: tuple[re.Match[str], int, int] | None = None
    at = 0
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        if opened is None:
            if found := _OPENING.match(text, at, end):
                opened = found, at, end
        elif (found := _CLOSING.fullmatch(text, at, end)) and found["fence"] == opened[0]["fence"]:
            language = opened[0]["language"].lower()
            yield _Fence(language, opened[1], opened[2], at, found.end("fence"))
            opened = None
        at = end


def _find_in_prose(text: str) -> Any:
    """Return the first value in a text; None also where the first is broken."""
    end = 0
    left = len(text) + MOST_TRIED  # characters that may be read once more
    for count, found in enumerate(_BRACKET.finditer(text)):
        start = found.start()
        if start < end or count > MOST_SPANS:
            continue
        if _CURLY_JSON.match(text, start):
            text = text[:start] + _CURLY_MARK.sub(r'\1"', text[start:])
        like = _JSON_LIKE.match(text, start) and not _PLACEHOLDER.match(text, start)
        try:
            return read_json_at(text, start)[0]
        except NotJson as exc:
            left -= max(exc.position - start, 0)
        limit = len(text) if like else min(start + LONGEST_WORD, start + max(left, 0), len(text))
        last = _end_of(text, start, limit)
        if like:
            return None if last is None else _repair(text[start:last])
        left -= (last or limit) - start
        end = last or end  # a word in brackets: what is inside is not a value of its own
        if left <= 0:
            break
    return None


def _end_of(text: str, start: int, limit: int) -> int | None:
    """Return the position after the bracket that closes the one at `start`; None without one before
    `limit`."""
    closing: list[str] = []
    for token, end in _tokens(text, start, limit):
        if token in "[{":
            closing.append("]" if token == "[" else "}")
        elif token in "]}":
            if not closing or closing.pop() != token:
                return None
            if not closing:
                return end
    return None


_TOKEN = re.compile(
    rf"""[\[\]{{}}]|{_TEXT}|(?<=[\[{{,:\s])'(?>(?:[^'\\]|\\.)*)'(?=\s*[,:\]}}])|{_REMARK}""",
    re.DOTALL,
)


def _tokens(text: str, start: int, limit: int) -> Iterator[tuple[str, int]]:
    """Yield the brackets outside of strings and comments, each with the position after it."""
    for found in _TOKEN.finditer(text, start, limit):
        if found[0] in ("[", "]", "{", "}"):
            yield found[0], found.end()


def _repair(text: str) -> Any:
    """Return the value of a text that begins and ends as one; None where it cannot be repaired."""
    if len(text) > LONGEST_REPAIR or _NOT_JSON.search(text):
        return None
    import json_repair  # few answers need it

    try:
        value = json_repair.loads(text, skip_json_loads=True, strict=True)
    except (ValueError, RecursionError, IndexError, TypeError):
        return None
    kind = dict if text[0] == "{" else list
    whole = isinstance(value, kind) and _is_json(value) and _has_every_word(text, value)
    return value if whole else None


def _has_every_word(text: str, value: Any) -> bool:
    """Return whether a repaired value has all words of its text, outside of comments: a repair that
    drops something has read a part of the value."""
    written = _ESCAPE.sub(" ", _COMMENT.sub(lambda found: found[1] or " ", text))
    kept = json.dumps(value, ensure_ascii=False)
    return all(word in kept for word in _WORD.findall(written) if word not in _CONSTANTS)


def _is_json(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(entry) for key, entry in value.items())
    if isinstance(value, list):
        return all(_is_json(entry) for entry in value)
    return not (isinstance(value, float) and not math.isfinite(value))


def _read_yaml(text: str) -> Any:
    """Return the object or list of a text in YAML; None for any other text."""
    if len(text) > LONGEST_REPAIR or _ALIAS.search(text):
        return None
    if not all(_YAML_LINE.match(line) for line in text.splitlines()):
        return None
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        value = YAML(typ="safe", pure=True).load(text)
        if not isinstance(value, (dict, list)):
            return None
        return read_json(json.dumps(value, default=str, allow_nan=False))
    except (YAMLError, ValueError, TypeError, RecursionError):
        return None
