"""Splits a retrieved text (Markdown, a web snippet or plain prose in any script) into sentences
that can be quoted.

Words are never changed and never reordered; only marks of layout are removed (heading signs, list
bullets, table bars, link targets, code fences). Code keeps its lines. Sentences are not rated here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from textwrap import dedent
from typing import TYPE_CHECKING, Literal

from groundhook.core.language.sentences import spans
from groundhook.host.llm.plain_text import BOLD_LINE, are_entries, reads_as_prose

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_Kind = Literal["prose", "entry", "row", "code"]

# Characters. A longer "sentence" is text without punctuation; it is cut at a clause or a word.
LONGEST = 480

MOST_DIGITS = 3  # of the number of a list item

_ENTRY = re.compile(r"^\s*(?:[-*+•‣▪–]|\(\d{1,3}\)|\(?[a-zA-Z]\)|\d{1,3}[.)])\s+(?P<text>.*)$")
# The same with the letter that plain text has as a bullet; elsewhere it is a word.
_ENTRY_OR_O = re.compile(_ENTRY.pattern.replace("[-*+", "[-o*+"))
_BLANK_LINES = re.compile(r"\n[ \t]*+\n")
_TASK = re.compile(r"^\[[ xX]\]\s+")
# A diagram, columns of plain text, or a line below a heading.
_DRAWN = re.compile(r"[\u2500-\u259f]|\S\s{3,}\S.*\S\s{3,}\S|^={3,}\s*$")
_TAG = re.compile(
    r"</?(?:p|br|hr|div|span|b|i|em|strong|a|ul|ol|li|h[1-6]|table|thead|tbody|tr|td|th|img|sup|sub|pre|details|summary)"
    r"(?:\s[^<>]*)?/?>",
    re.I,
)
_IMAGE = re.compile(
    r"!\[(?>(?:[^\[\]]|\[[^\[\]]*+\])*)\]\([^()\s]*+(?:\([^()\s]*+\)[^()\s]*+)?(?:\s++\"[^\"]*+\")?\)"
)
_LINK = re.compile(
    r"(?<!!)\[(?P<text>[^\[\]]+)\](?:\([^()\s]*(?:\([^()\s]*\)[^()\s]*)?(?:\s+\"[^\"]*\")?\)|\[[^\[\]]*\])"
)
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True)
class Sentence:
    """A sentence as it can be quoted. `block` numbers paragraphs, entries, rows and code from 0,
    `heading` is the heading above, `columns` has the column names of a row. Text of `kind` "code"
    is an indented or fenced block, without its common indentation; a fence that is not closed has
    no text, since it may contain the rest of the document by mistake. `section` is the nearest
    heading that is marked as one, of `level` 1-6; `heading` may also be a bold line below it.
    `depth` is how many lists an entry is in."""

    text: str
    block: int
    heading: str = ""
    kind: _Kind = "prose"
    columns: str = ""
    section: str = ""
    level: int = 0
    depth: int = 0


def sentences(content: str) -> list[Sentence]:
    """Return the sentences of a text, in its order."""
    found: list[Sentence] = []
    for number, block in enumerate(_blocks(content)):
        parts = [block.text] if block.kind in ("row", "code") else split(block.text)
        found += [
            Sentence(
                part,
                number,
                block.heading,
                block.kind,
                block.columns,
                block.section,
                block.level,
                block.depth,
            )
            for part in parts
            if _has_words(part)
        ]
    return found


def split(paragraph: str) -> list[str]:
    """Return the sentences of a paragraph, with white space collapsed; one that is longer than
    LONGEST characters is cut at clauses."""
    text = _SPACE.sub(" ", paragraph).strip()
    parts = [text[start:end] for start, end in spans(text)]
    return [_drop_unbalanced_marks(piece) for part in parts for piece in _cut(part)]


# ------------------------------------------------------------------------------------------- blocks


@dataclass
class _Block:
    kind: _Kind
    heading: str
    lines: list[str] = field(default_factory=list)
    columns: str = ""
    section: str = ""
    level: int = 0
    depth: int = 0

    @property
    def text(self) -> str:
        if self.kind == "code":
            return dedent("\n".join(line.rstrip() for line in self.lines)).strip("\n")
        return _strip_marks(" ".join(self.lines))


def _blocks(content: str) -> list[_Block]:
    """Return the paragraphs, list entries, table rows and code of a text, each with the heading
    above it."""
    text = _strip_comments(_strip_front_matter(content))
    return _BlockReader(text).read(_parser().parse(text))


@cache
def _parser() -> MarkdownIt:
    # Imported here: it takes 10 ms, and hosts with a language model do not need it.
    from markdown_it import MarkdownIt

    # HTML tags are removed from paragraphs instead; inline marks are handled by `_strip_marks`.
    return MarkdownIt("commonmark").enable("table").disable(["html_block", "inline"])


class _BlockReader:
    """Reads the block tokens of a text in order. Keeps what a later token depends on: the heading
    above, the list item that just opened, and the row and column names of a table."""

    def __init__(self, text: str) -> None:
        self._lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._blocks: list[_Block] = []
        self._heading = self._section = ""
        self._level = 0
        self._item: str | None = None  # the number of a list item whose text comes next
        self._lists = 0  # how many lists are open
        self._cells: list[str] = []
        self._columns = ""

    def read(self, tokens: Sequence[Token]) -> list[_Block]:
        container = ""
        for token in tokens:
            if token.type == "inline":
                self._read_text(container, token.content)
            elif token.type == "heading_open" and not self._is_separated(token):
                container, self._level = token.type, int(token.tag[1])
            else:
                container = token.type if not self._is_separated(token) else "paragraph_open"
                self._read_structure(token)
        return self._blocks

    def _is_separated(self, token: Token) -> bool:
        """Return whether a heading is a paragraph above a line that only separates it from what
        follows: a line that underlines a heading is about as long as its text, which is one
        line."""
        if token.type != "heading_open" or token.markup.startswith("#") or token.map is None:
            return False
        first, end = token.map
        text, line = (self._lines[at].strip(" >\t") for at in (first, end - 1))
        return end - first > 2 or len(line) < 0.75 * len(text)

    def _read_structure(self, token: Token) -> None:
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                self._lists += 1
            case "bullet_list_close" | "ordered_list_close":
                self._lists -= 1
            case "list_item_open":
                self._item = token.info
            case "list_item_close":
                self._item = None
            case "fence":
                # An unclosed fence may contain anything: an empty block keeps its place.
                closed = self._lines[token.map[1] - 1].strip(" >\t") if token.map else ""
                code = token.content if closed.startswith(token.markup) else ""
                self._add("code", *code.split("\n"))
            case "code_block" if not self._lists:
                self._read_indented(token.content.expandtabs(4))
            case "code_block":  # text below a list item that is indented too far
                self._read_paragraph("prose", token.content)
            case "table_open" | "table_close":
                self._columns = ""
            case "tr_open":
                self._cells = []
            case "thead_close":
                self._columns = _join_cells(self._cells)
            case "tr_close" if self._columns:
                self._add("row", _join_cells(self._cells))

    def _read_text(self, container: str, content: str) -> None:
        if container == "heading_open":
            self._heading = self._section = _strip_marks(content)
        elif container in ("th_open", "td_open"):
            self._cells.append(content)
        elif self._item is None:
            self._read_paragraph("prose", content)
        else:
            number, self._item = self._item, None
            if len(number) > MOST_DIGITS:  # a sentence that begins with a year
                self._read_paragraph("prose", f"{number}. {content}")
            else:
                self._read_paragraph("entry", _TASK.sub("", content))

    def _read_indented(self, content: str) -> None:
        """Add an indented block: code, or paragraphs of a plain text that is indented below its
        headings, with what is between them as code."""
        parts = [dedent(part).strip("\n") for part in _BLANK_LINES.split(content) if part.strip()]
        if not any(map(reads_as_prose, parts)):
            self._add("code", *content.split("\n"))
            return
        for is_prose, run in groupby(parts, key=reads_as_prose):
            if is_prose:
                for part in run:
                    self._read_paragraph("prose", part)
            else:
                self._add("code", *"\n\n".join(run).split("\n"))

    def _read_paragraph(self, kind: _Kind, content: str) -> None:
        """Add a paragraph, divided at the marks that plain text uses instead of Markdown: drawings,
        bold lines as headings, other bullets, rows of a table without column names, lines that are
        a list without bullets."""
        block: _Block | None = None
        lines = content.split("\n")
        if kind == "prose" and are_entries(lines):
            for line in lines:
                self._add("entry", line)
            return
        pattern = _ENTRY_OR_O if content.startswith("o ") else _ENTRY
        for line in lines:
            bold = BOLD_LINE.match(line) if kind == "prose" else None
            entry = pattern.match(line)
            if bold:
                self._heading, block = _strip_marks(bold["text"]), None
            elif _DRAWN.search(line):
                block = None
            elif line.startswith("|"):
                self._add("row", _join_cells(line.strip("| ").split("|")))
                block = None
            elif entry:
                block = self._add("entry", entry["text"])
            elif block is not None:
                block.lines.append(line)
            else:
                block = self._add(kind, line)

    def _add(self, kind: _Kind, *lines: str) -> _Block:
        self._blocks.append(
            _Block(
                kind,
                self._heading,
                list(lines),
                self._columns if kind == "row" else "",
                self._section,
                self._level,
                self._lists if kind == "entry" else 0,
            )
        )
        return self._blocks[-1]


def _join_cells(cells: Iterable[str]) -> str:
    return " – ".join(stripped for cell in cells if (stripped := cell.strip()))


def _strip_front_matter(content: str) -> str:
    if not content.startswith("---\n"):
        return content
    end = content.find("\n---\n", 3)
    return content if end < 0 else content[end + 5 :]


def _strip_comments(text: str) -> str:
    """Return the text with a blank in place of each HTML comment. One that is not closed stays."""
    parts, at = [], 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        parts.append(text[at:start])
        at = end + len("-->")
    return " ".join([*parts, text[at:]])


def _strip_marks(text: str) -> str:
    """Return inline Markdown without images, tags and link targets. Emphasis and code spans stay,
    as they read well in an answer."""
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


def _drop_unbalanced_marks(text: str) -> str:
    """Remove marks whose other half is in another sentence: they would format the text that
    follows."""
    for mark in ("**", "__", "`"):
        if text.count(mark) % 2:
            text = text.replace(mark, "")
    return text.strip()


def _has_words(text: str) -> bool:
    return sum(character.isalnum() for character in text) >= 2
