"""Sentences of a retrieved text: Markdown, a web snippet or plain prose in any script → passages
that can be quoted.

Words are never changed and never reordered; only marks of layout go (heading signs, list bullets,
table bars, link targets, code fences). Code keeps its lines. Nothing here judges a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from textwrap import dedent
from typing import Literal

from groundhook.host.core.sentences import spans

Kind = Literal["prose", "entry", "row", "code"]

# characters; beyond this a "sentence" is text without punctuation and is cut at a clause or a word
LONGEST = 480

_FENCE = re.compile(r"^\s{0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.*?)\s*#*\s*$")
_BOLD_LINE = re.compile(r"^\s*(\*\*|__)(?P<text>[^*_]{1,80}?)\1\s*:?\s*$")
_INDENTED = re.compile(r"^(?: {4}|\t)")
_RULE = re.compile(r"^\s{0,3}([-*_=])(\s*\1){2,}\s*$")
_TABLE_RULE = re.compile(r"^\s*\|\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*\|?\s*$")
_ENTRY = re.compile(
    r"^\s*(?:[-*+•‣▪–]|\(?\d{1,3}[.)]|\(?[a-zA-Z][)])\s+(?:\[[ xX]\]\s+)?(?P<text>.*)$"
)
_QUOTE = re.compile(r"^\s{0,3}(?:>\s?)+")
_DRAWN = re.compile(r"[\u2500-\u259f]|\S\s{3,}\S.*\S\s{3,}\S")  # a diagram or columns of plain text
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_TAG = re.compile(
    r"</?(?:p|br|hr|div|span|b|i|em|strong|a|ul|ol|li|h[1-6]|table|thead|tbody|tr|td|th|img|sup|sub|pre|details|summary)"
    r"(?:\s[^<>]*)?/?>",
    re.I,
)
_IMAGE = re.compile(r"!\[[^\]]*\]\([^)\s]*(?:\s+\"[^\"]*\")?\)")
_LINK = re.compile(
    r"(?<!!)\[(?P<text>[^\[\]]+)\](?:\([^()\s]*(?:\([^()\s]*\)[^()\s]*)?(?:\s+\"[^\"]*\")?\)|\[[^\[\]]*\])"
)
_SPACE = re.compile(r"\s+")
_CODE_SPAN = re.compile(r"(``*+)[^`\n]++\1")


@dataclass(frozen=True)
class Sentence:
    """A passage as it can be quoted. `block` counts paragraphs, entries, rows and code from 0,
    `heading` is the heading above, `columns` are a row's names of columns. Of `kind` "code" are
    indented and fenced lines, as they stand but for what all are indented by; of a fence that is
    not closed none, since what it holds cannot be told."""

    text: str
    block: int
    heading: str = ""
    kind: Kind = "prose"
    columns: str = ""


def sentences(content: str) -> list[Sentence]:
    """The sentences of a text, in its order."""
    found: list[Sentence] = []
    for number, block in enumerate(_blocks(content)):
        parts = [block.text] if block.kind in ("row", "code") else split(block.text)
        found += [
            Sentence(part, number, block.heading, block.kind, block.columns)
            for part in parts
            if _says_something(part)
        ]
    return found


def split(paragraph: str) -> list[str]:
    """A paragraph's sentences, white space collapsed; one that is longer than LONGEST characters is
    cut at clauses."""
    text = _SPACE.sub(" ", paragraph).strip()
    parts = [text[start:end] for start, end in spans(text)]
    return [_balanced(piece) for part in parts for piece in _cut(part)]


# ------------------------------------------------------------------------------------------- blocks


@dataclass
class _Block:
    kind: Kind
    heading: str
    lines: list[str] = field(default_factory=list)
    columns: str = ""

    @property
    def text(self) -> str:
        if self.kind == "code":
            return dedent("\n".join(self.lines)).strip("\n")
        return _without_marks(" ".join(self.lines))


def _blocks(content: str) -> Iterator[_Block]:
    """Paragraphs, list entries, table rows and code; headings are kept on what stands below."""
    heading, fence, columns = "", "", ""
    block: _Block | None = None
    fenced: list[str] = []
    last: Kind = "prose"
    for line in _COMMENT.sub(" ", _without_front_matter(content)).splitlines():
        if fence:
            if line.strip().startswith(fence):
                fence = ""
                yield _Block("code", heading, fenced)
            else:
                fenced.append(line.rstrip())
            continue
        opened = _FENCE.match(line)
        line = _QUOTE.sub("", line)
        if block is not None and block.kind == "code":
            if not line.strip() or _INDENTED.match(line):
                block.lines.append(line.expandtabs(4).rstrip())
                continue
            last = block.kind
            yield block
            block = None
        title = _title(line)
        entry = _ENTRY.match(line)
        row = line.lstrip().startswith("|")
        below_names = row and _TABLE_RULE.match(line) is not None
        blank = (
            not line.strip()
            or _DRAWN.search(line) is not None
            or _RULE.match(line) is not None
            or below_names
        )
        if below_names and block is not None and block.kind == "row":
            columns, block = block.text, None  # names of columns say nothing by themselves
        if block is not None and (opened or blank or title or entry or row or block.kind == "row"):
            last = block.kind
            yield block
            block = None
        if opened:
            fence, fenced = opened[1], []
        elif title:
            heading = title
        elif row and not blank:
            block = _Block("row", heading, [_row(line)], columns)
        elif entry and not blank:
            block = _Block("entry", heading, [entry["text"]])
        elif not blank:
            code = _INDENTED.match(line) is not None and last != "entry"
            block = block or _Block("code" if code else "prose", heading)
            block.lines.append(line.expandtabs(4).rstrip() if block.kind == "code" else line)
        columns = columns if row else ""
    if block is not None:
        yield block
    elif fence:
        yield _Block("code", heading)


def _title(line: str) -> str:
    found = _HEADING.match(line)
    if found:
        return _without_marks(found[1])
    bold = _BOLD_LINE.match(line)
    return _without_marks(bold["text"]) if bold else ""


def _row(line: str) -> str:
    """`| a | b | c |` → `a – b – c`; bars within code or behind a backslash do not divide cells."""
    shielded = _CODE_SPAN.sub(lambda match: match[0].replace("|", "\0"), line.replace("\\|", "\0"))
    cells = [cell.strip().replace("\0", "|") for cell in shielded.strip().strip("|").split("|")]
    return " – ".join(cell for cell in cells if cell)


def _without_front_matter(content: str) -> str:
    if not content.startswith("---\n"):
        return content
    end = content.find("\n---\n", 3)
    return content if end < 0 else content[end + 5 :]


def _without_marks(text: str) -> str:
    """Inline Markdown as it reads: links become their text; emphasis and code stay, as they read
    well in an answer."""
    text = _TAG.sub(" ", _IMAGE.sub(" ", text))
    return _SPACE.sub(" ", _LINK.sub(lambda match: match["text"], text)).strip()


# ---------------------------------------------------------------------------------------- sentences


def _cut(sentence: str) -> Iterator[str]:
    while len(sentence) > LONGEST:
        at = max(
            sentence.rfind(mark, LONGEST // 2, LONGEST) for mark in ("; ", ", ", "، ", "，", "、")
        )
        if at < 0:
            at = sentence.rfind(" ", LONGEST // 2, LONGEST)
        at = at if at > 0 else LONGEST - 1
        yield sentence[: at + 1].strip()
        sentence = sentence[at + 1 :].strip()
    if sentence:
        yield sentence


def _balanced(text: str) -> str:
    """Without marks whose other half is in another sentence: they would swallow what is written
    behind."""
    for mark in ("**", "__", "`"):
        if text.count(mark) % 2:
            text = text.replace(mark, "")
    return text.strip()


def _says_something(text: str) -> bool:
    return sum(character.isalnum() for character in text) >= 2
