"""Markdown as MkDocs, Docusaurus, GitHub and pandoc write it, as plain Markdown: their marks are no
text. Line by line; code stays as it is."""

from __future__ import annotations

import re
from collections.abc import Iterator

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_WORD = r"[\w.:/-]++"
_ATTRIBUTES = (
    rf"\{{:?[ \t]*(?:[#.]{_WORD}|{_WORD}=(?:\"[^\"{{}}]*\"|'[^'{{}}]*'|{_WORD}))[^{{}}\n]*+\}}"
)
_OF_HEADING = re.compile(rf"(?<=\S)[ \t]*{_ATTRIBUTES}[ \t]*+(?=#*+[ \t]*+$)")
_OF_SPAN = re.compile(rf"(?<=[)\]`*])[ \t]?{_ATTRIBUTES}")
# `!!! note "Title"`, `??? tip`, `=== "Tab"`: what follows is indented.
_INDENTED = re.compile(
    r"(?P<at> {0,3})(?:(?:!!!|\?\?\?\+?)[ \t]*(?P<kind>[\w-]++)[^\"\n]*+|===[!+]?[ \t]*(?=\"))"
    r"(?:\"(?P<title>[^\"\n]*)\"[ \t]*)?"
)
# `:::tip[Title]`, `::: {.note}`, `/// note | Title`: what follows ends at `:::`, `///`.
_OPENED = re.compile(
    r" {0,3}(?::{3,}|/{3,})[ \t]*"
    r"(?:\{[^{}.\n]*\.(?P<class>[\w-]++)[^{}\n]*\}|(?P<kind>[A-Za-z][\w-]*))"
    r"[ \t]*(?:\[(?P<title>[^\]\n]*)\]|\|?[ \t]*(?P<rest>[^\n{]*))(?:\{[^{}\n]*\})?[ \t]*"
)
_CLOSED = re.compile(r" {0,3}(?::{3,}|/{3,})[ \t]*")
_ALERT = re.compile(r"( {0,3}>[ \t]*)\[!([A-Za-z]+)\][+-]?[ \t]*([^\n]*)")
# Includes, and other statements of a template that have a line of their own.
_STATEMENT = re.compile(
    r"[ \t]*(?:\{%[^\n]*%\}|\{![^\n]*!\}|\{\*[^\n]*\*\}|-+8<-+[^\n]*|\[TOC\]|\[\[toc\]\])[ \t]*",
    re.IGNORECASE,
)
_CODE = re.compile(r"(?<!`)(`+)(?!`)[^`\n]+\1(?!`)")
_TAG = re.compile(
    r"</?(?:a|abbr|b|bdo|big|center|cite|del|details|dfn|div|em|figcaption|figure|font|i|ins|kbd"
    r"|mark|nobr|p|picture|q|s|section|small|source|span|strong|sub|summary|sup|tt|u|var|wbr)"
    r"(?:[ \t\n][^<>]*)?/?>",
    re.IGNORECASE,
)
_BREAK = re.compile(r"<br[ \t]*/?>", re.IGNORECASE)
_POWER = re.compile(r"(?<=[\w)])<sup>([+\-−]?\w{1,8})</sup>", re.IGNORECASE)
_IMAGE = re.compile(r"<img\b(?:[^<>]*?\balt=(?:\"([^\"<>]*)\"|'([^'<>]*)'))?[^<>]*>", re.IGNORECASE)


def plain_markdown(text: str) -> str:
    """Return a Markdown text without the marks of its dialect."""
    return "\n".join(_lines(text.split("\n")))


def _lines(lines: list[str]) -> Iterator[str]:
    inside: list[int] = []  # the columns at which indented parts begin
    fence = ""
    for line in lines:
        indent = len(line) - len(line.lstrip(" "))
        while line.strip() and inside and indent < inside[-1]:
            inside.pop()
            fence = ""
        body = line[inside[-1] :] if inside else line
        if fence:
            fence = "" if _closes(body, fence) else fence
            yield body
        elif found := _FENCE.match(body):
            fence = found[1]
            yield body
        elif found := _INDENTED.fullmatch(body):
            inside.append((inside[-1] if inside else 0) + len(found["at"]) + 4)
            yield _label(found["title"], found["kind"])
        else:
            yield body if body.startswith("    ") else _shown(body)


def _shown(line: str) -> str:
    """Return what a page shows of a line that is no code."""
    if _STATEMENT.fullmatch(line) or _CLOSED.fullmatch(line):
        return ""
    if found := _OPENED.fullmatch(line):
        title = found["title"] or found["rest"] or None
        return _label(title, found["kind"] or found["class"])
    if found := _ALERT.fullmatch(line):
        return found[1] + _label(found[3] or None, found[2])
    return _inline(line)


def _closes(line: str, fence: str) -> bool:
    return bool(
        (found := _FENCE.match(line)) and found[1].startswith(fence) and line.strip() == found[1]
    )


def _label(title: str | None, kind: str | None) -> str:
    label = (kind or "").replace("-", " ").capitalize() if title is None else title
    return f"**{label.strip()}**" if label.strip() else ""


def _inline(line: str) -> str:
    """Return a line without attributes and tags, outside of code."""
    if "{" in line:
        line = _OF_HEADING.sub("", line) if line.lstrip().startswith("#") else line
        line = _OF_SPAN.sub("", line)
    if "<" not in line:
        return line
    parts, reached = [], 0
    for code in _CODE.finditer(line):
        parts += [_without_tags(line[reached : code.start()]), code[0]]
        reached = code.end()
    return "".join([*parts, _without_tags(line[reached:])])


def _without_tags(text: str) -> str:
    text = _POWER.sub(r"^\1", text)
    text = _IMAGE.sub(lambda found: found[1] or found[2] or "", text)
    return _TAG.sub("", _BREAK.sub(" ", text))
