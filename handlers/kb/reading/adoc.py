"""Read AsciiDoc by writing it as Markdown, line by line: what manuals use of it. Other files
(`include`) are not read, and both branches of a condition are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from groundhook.core.types.documents import Document
from groundhook.handlers.kb.reading.adoc_inline import plain, shown
from groundhook.handlers.kb.reading.markdown import from_markdown
from groundhook.handlers.kb.reading.text import decode

_ATTRIBUTE = re.compile(r":(!?[\w-]{1,60}+!?):(?:[ \t]++(.*))?\Z")
_HEADING = re.compile(r"(={1,6}|#{1,6})[ \t]++(\S.*)")
_UNDERLINE = re.compile(r"(?:={4,}+|-{4,}+|~{4,}+|\^{4,}+|\+{4,}+)\Z")
_LEVELS = "=-~^+"  # of underlined headings
_CODE = re.compile(r"(?:-{4,}+|\.{4,}+|`{3})(?:\w{1,20})?\Z")
_UNSHOWN = re.compile(r"(?:/{4,}+|\+{4,}+)\Z")  # comments, and what is passed to one output
_AROUND = re.compile(r"(?:={4,}+|\*{4,}+|_{4,}+|--)\Z")
_OF_BLOCK = re.compile(r"\[([^\n]{0,500})\]\Z")
_MACRO = re.compile(
    r"(image|video|audio|toc|include|ifdef|ifndef|ifeval|endif)::[^\s\[\]]{0,300}+\[(.*)\]\Z"
)
_TITLE = re.compile(r"\.(?![.\s])(\S.*)")
_BULLET = re.compile(r"[ \t]*+(\*{1,6}|-)[ \t]++(\S.*)")
_NUMBER = re.compile(r"[ \t]*+(\.{1,6})[ \t]++(\S.*)")
_CALLOUT = re.compile(r"<(\d{1,3}|\.)>[ \t]++(\S.*)")
_TERM = re.compile(r"[ \t]*+(\S[^\n]{0,200}?)(?::{2,4}|;;)(?:[ \t]++(.*))?\Z")
_BOX = re.compile(r"(NOTE|TIP|IMPORTANT|WARNING|CAUTION):[ \t]++(\S.*)")
_COLUMNS = re.compile(r"cols=(?:\"([^\"]{1,200}+)\"|([^\",]{1,200}+))")
_CELL = re.compile(
    r"(?<![^ \t])(?:[\d.]{1,6}+[+*])?[<^>.]{0,3}[a-z]?\||(?<!\\)\|"  # with its format before it
)
_FENCE = "~" * 8


def adoc(data: bytes, name: str) -> Document:
    """Return the document. Raises IngestError."""
    text, notes = decode(data, name)
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    document = from_markdown("\n".join(_Writer(lines).written()), name, front=False)
    return replace(document, notes=notes)


@dataclass
class _Writer:
    """Writes the lines of a document as Markdown. `_about` are the attributes of the next block."""

    _lines: Sequence[str]
    _at: int = 0
    _about: str = ""
    _attributes: dict[str, str] = field(default_factory=dict)
    _numbers: dict[int, int] = field(default_factory=dict)  # reached in a list, by level
    _code_at: int = 0  # the line after the last indented one that is code

    def written(self) -> Iterator[str]:
        while self._at < len(self._lines):
            line = self._lines[self._at].rstrip()
            self._at += 1
            yield from self._line(line)

    def _line(self, line: str) -> Iterator[str]:
        if _CODE.fullmatch(line):
            self._end_list()
            yield from self._code(line)
        elif _UNSHOWN.fullmatch(line):
            list(self._until(line))
        elif line == "|===":
            yield from self._table()
        elif level := self._underlined(line):
            self._at += 1
            yield from ("", f"{'#' * level} {self._shown(line)}", "")
        elif _AROUND.fullmatch(line) or line in ("+", "<<<", "'''"):
            yield ""
        else:
            yield from self._text(line)

    def _text(self, line: str) -> Iterator[str]:
        if found := _ATTRIBUTE.fullmatch(line):
            self._attributes[found[1].strip("!")] = "" if "!" in found[1] else found[2] or ""
        elif line.startswith("//"):
            return
        elif found := _OF_BLOCK.fullmatch(line):
            self._about = found[1]
            if found[1].isupper() and found[1].isalpha():  # a box: [NOTE]
                yield from ("", f"**{found[1].capitalize()}**", "")
        elif found := _MACRO.fullmatch(line):
            if found[1] in ("image", "ifdef", "ifndef") and found[2]:
                yield self._shown(found[2].partition(",")[0] if found[1] == "image" else found[2])
        elif found := _HEADING.fullmatch(line):
            self._numbers.clear()
            yield from ("", f"{'#' * len(found[1])} {self._shown(found[2])}", "")
        elif found := _TITLE.fullmatch(line):
            yield from ("", f"**{self._shown(found[1])}**", "")
        else:
            yield from self._item(line)

    def _item(self, line: str) -> Iterator[str]:
        if found := _BULLET.fullmatch(line):
            yield f"{'  ' * (len(found[1]) - 1)}* {self._shown(found[2])}"
        elif found := _NUMBER.fullmatch(line):
            level = len(found[1])
            yield f"{'   ' * (level - 1)}{self._number(level)}. {self._shown(found[2])}"
        elif found := _CALLOUT.fullmatch(line):
            yield f"* ({found[1]}) {self._shown(found[2])}"
        elif found := _BOX.fullmatch(line):
            yield f"**{found[1].capitalize()}:** {self._shown(found[2])}"
        elif found := _TERM.fullmatch(line):
            yield from ("", f"**{self._shown(found[1])}**", "", self._shown(found[2] or ""))
        elif line[:1].isspace() and self._begins_code():
            yield from ([""] if self._code_at < self._at - 1 else [])
            self._code_at = self._at
            yield f"    {line.strip()}"
        else:
            if line:
                self._end_list()
            yield self._shown(line.strip())

    def _number(self, level: int) -> int:
        """Return the number of the next item of a level."""
        self._numbers = {each: number for each, number in self._numbers.items() if each <= level}
        self._numbers[level] = self._numbers.get(level, 0) + 1
        return self._numbers[level]

    def _end_list(self) -> None:
        """End the list if a line that is no item follows an empty one, and not a `+`."""
        if not self._before().strip():
            self._numbers.clear()

    def _before(self) -> str:
        return self._lines[self._at - 2].rstrip() if self._at > 1 else ""

    def _begins_code(self) -> bool:
        """Return whether an indented line is code, and not the rest of a paragraph."""
        return self._before() in ("", "+") or self._code_at == self._at - 1

    def _shown(self, text: str) -> str:
        return shown(text, self._attributes)

    def _underlined(self, line: str) -> int:
        """Return the level of a heading that the next line underlines; 0 for other lines."""
        below = self._lines[self._at].rstrip() if self._at < len(self._lines) else ""
        if not _UNDERLINE.fullmatch(below) or abs(len(below) - len(line)) > 2:
            return 0
        before = self._before().strip()
        starts = not before or before.startswith(("[", "//"))
        return _LEVELS.index(below[0]) + 1 if starts and line[:1].isalnum() else 0

    def _until(self, end: str) -> Iterator[str]:
        """Yield the lines up to one that is `end`, and pass it."""
        while self._at < len(self._lines):
            line = self._lines[self._at].rstrip()
            self._at += 1
            if line == end:
                return
            yield line

    def _code(self, line: str) -> Iterator[str]:
        end = "```" if line.startswith("`") else line
        yield from ("", _FENCE, *self._until(end), _FENCE, "")

    def _table(self) -> Iterator[str]:
        """Yield a table. Without `cols` its first line has a cell of each column."""
        columns, cells = _columns(self._about), list[str]()
        self._about = ""
        for line in self._until("|==="):
            found = _CELL.split(line)
            if line.startswith("//") or not line.strip():
                continue
            if cells and found[0].strip():  # the rest of a cell
                cells[-1] += f" {found[0].strip()}"
            cells += [each.strip() for each in found[1:]]
            columns = columns or len(cells)
        cells = [plain(each, self._attributes).replace("|", "\\|") for each in cells]
        columns = max(1, columns)
        rows = [cells[at : at + columns] for at in range(0, len(cells), columns)]
        yield ""
        for number, row in enumerate(rows):
            yield f"| {' | '.join(row)} |"
            if not number:
                yield "|" + " --- |" * columns
        yield ""


def _columns(about: str) -> int:
    """Return how many columns the attributes of a table name; 0 for none."""
    found = _COLUMNS.search(about)
    parts = [each for each in re.split(r"[,;]", found[1] or found[2]) if each] if found else []
    many = [int(each.partition("*")[0]) for each in parts if re.match(r"\d{1,3}\*", each)]
    return min(100, sum(many) + len(parts) - len(many))
