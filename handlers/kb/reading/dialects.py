"""Markdown as MkDocs, Docusaurus, GitHub and pandoc write it, as plain Markdown: their marks are no
text, blocks of HTML are Markdown, and footnotes follow the paragraph that refers to them. Line by
line; code stays as it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from groundhook.core.errors import IngestError
from groundhook.handlers.kb.reading.html_markdown import markdown_of

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
_OPTION = re.compile(r"[ \t]{4,}[a-z_]{1,40}: \S[^\n]*")  # of a block, in the lines after its first
_CLOSED = re.compile(r" {0,3}(?::{3,}|/{3,})[ \t]*")
_ALERT = re.compile(r"( {0,3}>[ \t]*)\[!([A-Za-z]+)\][+-]?[ \t]*([^\n]*)")
# Includes, and other statements of a template that have a line of their own.
_STATEMENT = re.compile(
    r"[ \t]*(?:\{%[^\n]*%\}|\{![^\n]*!\}|\{\*[^\n]*\*\}|\{\{[<%][^\n]*[>%]\}\}|-+8<-+[^\n]*"
    r"|\[TOC\]|\[\[toc\]\])[ \t]*",
    re.IGNORECASE,
)
_CODE = re.compile(r"(?<!`)(`+)(?!`)[^`\n]+\1(?!`)")
_TAG = re.compile(
    r"</?(?:a|abbr|b|bdo|big|center|cite|del|details|dfn|div|em|figcaption|figure|font|i|ins|kbd"
    r"|mark|nobr|p|picture|q|s|section|small|source|span|strong|sub|summary|sup|tt|u|var|wbr)"
    r"(?:[ \t\n][^<>]*)?/?>",
    re.IGNORECASE,
)
_BREAK = re.compile(r"<br[ \t]*/?>|</summary>", re.IGNORECASE)
_POWER = re.compile(r"(?<=[\w)])<sup>([+\-−]?\w{1,8})</sup>", re.IGNORECASE)
_IMAGE = re.compile(r"<img\b(?:[^<>]*?\balt=(?:\"([^\"<>]*)\"|'([^'<>]*)'))?[^<>]*>", re.IGNORECASE)
# Pictures of MkDocs Material, which may be the text of a link, and `#!py f()`, code of a language.
_ICON = re.compile(r":(?:octicons|material|fontawesome|simple|lucide)-[\w-]{1,80}+:")
_ICON_LINK = re.compile(rf"\[(?:{_ICON.pattern})\]\[[^\]\n]{{1,80}}\]|{_ICON.pattern}")
_LANGUAGE = re.compile(r"(?<=`)(?:#!|:::)[a-z][\w+-]{0,20}+[ \t]++(?=[^\s`])")
_MOST_LINES = 3000  # of a block of HTML
_SIGNS = re.compile(r"\^|~|==|\{/|:[a-z]{3,}-")
_RAISED = re.compile(r"(?<=[\w)])\^([+\-−]?\w{1,8})\^")
_LOWERED = re.compile(r"(?<=\w)(?<!~)~(\w{1,8})~(?!~)")
_MARKED = re.compile(r"(?<![=\w])==(?=[^\s=])([^=\n]{1,300}+)==(?![=\w])")
_BLOCK = re.compile(r" {0,3}<(table|ul|ol|dl|h[1-6])\b", re.IGNORECASE)
# MDX: modules, and components, whose names have capitals. A generic type has no attributes.
_MODULE = re.compile(
    r"import\s+(?:[^'\"\n]{1,300}\sfrom\s+)?(?:'[^'\n]+'|\"[^\"\n]+\");?[ \t]*"
    r"|export\s+(?:default|const|let|function)\s[^\n]*+"
)
_COMPONENT = re.compile(
    r"^[ \t]*+</?[A-Z][\w.]*+(?:[ \t][^<>\n]*+)?/?>[ \t]*+$|<[A-Z][\w.]*+[ \t][^<>\n]*+>"
    r"|<[A-Z][\w.]*+[ \t]*+/>"
)
_NAMED = re.compile(r"\s(?:label|title|summary)=(?:\"([^\"\n]+)\"|'([^'\n]+)')")
_SCRIPT = re.compile(r"\{/\*[^\n]{0,300}?\*/\}")
# Footnotes: `[^1]`, and `[^1]: text` with the indented lines after it.
_NOTE = re.compile(r" {0,3}\[\^([^\]\s]{1,60})\]:[ \t]*(.*)")
_REFERENCE = re.compile(rf"{_CODE.pattern}|\[\^(?P<label>[^\]\s]{{1,60}})\]")


def plain_markdown(text: str) -> str:
    """Return a Markdown text without the marks of its dialect."""
    lines = list(_lines(_without_blocks(text.split("\n"))))
    return "\n".join(_with_notes(lines) if "[^" in text else (line for line, _ in lines))


def _without_blocks(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines with blocks of HTML as Markdown. One that never ends stays as it is, and so
    do all without the libraries that read HTML."""
    fence, at = "", 0
    endless: set[str] = set()
    while at < len(lines):
        line = lines[at]
        found, block = _FENCE.match(line), None if fence else _BLOCK.match(line)
        if found:
            fence = ("" if _closes(line, fence) else fence) if fence else found[1]
        name = block[1].lower() if block else ""
        end = _end_of(lines, at, name) if name and name not in endless else at
        if end == at:
            endless |= {name}
            yield line
            at += 1
            continue
        try:
            yield from ("", *markdown_of("\n".join(lines[at:end])).split("\n"))
        except IngestError:
            yield from lines[at:end]
        at = end


def _end_of(lines: Sequence[str], at: int, name: str) -> int:
    """Return the line after the end of the element that begins in a line; `at` if it has no end."""
    depth = 0
    for number in range(at, min(len(lines), at + _MOST_LINES)):
        line = lines[number].lower()
        depth += line.count(f"<{name}") - line.count(f"</{name}>")
        if depth <= 0:
            return number + 1
    return at


def _with_notes(lines: Sequence[tuple[str, bool]]) -> Iterator[str]:
    """Yield the lines with each footnote after the paragraph that first refers to it, under its
    number."""
    notes: dict[str, list[str]] = {}
    rest: list[tuple[str, bool]] = []
    open_note = ""
    for line, code in lines:
        if not code and (found := _NOTE.fullmatch(line)):
            open_note = found[1]
            notes[open_note] = [found[2]]
        elif open_note and (
            line.startswith((" ", "\t")) or not line.strip() or (notes[open_note][-1] and not code)
        ):  # its paragraph goes on, or another one begins
            notes[open_note].append(line.strip())
        else:
            open_note = ""
            rest.append((line, code))
    numbers: dict[str, int] = {}
    waiting: list[str] = []

    def numbered(found: re.Match[str]) -> str:
        label = found["label"]
        if label not in notes:  # or code
            return found[0]
        if label not in numbers:
            numbers[label] = len(numbers) + 1
            waiting.append(label)
        return f"[{numbers[label]}]"

    for line, code in [*rest, ("", False)]:
        if waiting and (code or not line.strip()):
            for label in waiting:
                yield from ("", f"[{numbers[label]}] {' '.join(filter(None, notes[label]))}")
            waiting.clear()
            yield ""
        yield line if code else _REFERENCE.sub(numbered, line)


def _lines(lines: Iterator[str]) -> Iterator[tuple[str, bool]]:
    """Yield the lines, and whether each is code."""
    inside: list[int] = []  # the columns at which indented parts begin
    fence = ""
    begun = False  # a block, whose options may follow
    for line in lines:
        indent = len(line) - len(line.lstrip(" "))
        while line.strip() and inside and indent < inside[-1]:
            inside.pop()
            fence = ""
        body = line[inside[-1] :] if inside else line
        if fence:
            fence = "" if _closes(body, fence) else fence
            yield body, True
        elif found := _FENCE.match(body):
            fence = found[1]
            yield body, True
        elif found := _INDENTED.fullmatch(body):
            inside.append((inside[-1] if inside else 0) + len(found["at"]) + 4)
            yield _label(found["title"], found["kind"]), False
        elif not (begun and _OPTION.fullmatch(body)):
            begun = body.lstrip().startswith("///") and bool(_OPENED.fullmatch(body))
            code = body.startswith("    ")
            yield body if code else _shown(body), code


def _shown(line: str) -> str:
    """Return what a page shows of a line that is no code."""
    if _STATEMENT.fullmatch(line) or _CLOSED.fullmatch(line) or _MODULE.fullmatch(line):
        return ""
    if found := _OPENED.fullmatch(line):
        title = "" if found["kind"] == "html" else found["title"] or found["rest"] or None
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
    label = label.lstrip("# ").rstrip()
    return f"**{label}**" if label else ""


def _inline(line: str) -> str:
    """Return a line without attributes and tags, outside of code."""
    if "{" in line:
        line = _OF_HEADING.sub("", line) if line.lstrip().startswith("#") else line
        line = _OF_SPAN.sub("", line)
    line = _LANGUAGE.sub("", line) if "`#!" in line or "`:::" in line else line
    if "<" not in line and not _SIGNS.search(line):
        return line
    parts, reached = [], 0
    for code in _CODE.finditer(line):
        parts += [_without_tags(line[reached : code.start()]), code[0]]
        reached = code.end()
    return "".join([*parts, _without_tags(line[reached:])])


def _without_tags(text: str) -> str:
    text = _POWER.sub(r"^\1", _SCRIPT.sub("", _ICON_LINK.sub("", text)))
    text = _MARKED.sub(r"\1", _LOWERED.sub(r"\1", _RAISED.sub(r"^\1", text)))
    text = _COMPONENT.sub(_named, text) if "<" in text else text
    text = _IMAGE.sub(lambda found: found[1] or found[2] or "", text)
    return _TAG.sub("", _BREAK.sub(" ", text))


def _named(component: re.Match[str]) -> str:
    """Return the words of a component that readers see: its label."""
    found = None if component[0].lstrip().startswith("</") else _NAMED.search(component[0])
    return _label(found[1] or found[2], None) if found else ""
