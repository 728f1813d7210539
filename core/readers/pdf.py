"""Extraction of text from PDF files, page by page. The only module that imports pypdf."""

from __future__ import annotations

import io
import logging
import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from groundhook.core.errors import IngestError
from groundhook.core.extras import extra

if TYPE_CHECKING:
    from pypdf import PageObject

# Hardly any text is wider than this times its estimated width (half the font size per letter).
WIDEST = 1.4
# In font sizes: text that starts this far after the end of the previous text is another table cell.
CELLS_APART = 2.0
# In font sizes: text that ends this far before right-to-left text is another word.
WORDS_APART = 0.3
USUAL = 12.0  # points: the size of text in a field of a form
DEEPEST = 8  # fields around a field
# NUL is not text; the bullets of Word and LibreOffice are characters of a symbol font.
_SIGNS = {0: " ", 0x7F: "•", 0xF0B7: "•", 0xF0A7: "▪", 0xF0D8: "➢", 0xF0FC: "✓", 0xF02D: "–"}
# The parser raises errors of many types for broken files.
_WRONG = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
_BEGINNING, _BEFORE = b"%PDF-", 1024  # of every PDF, and the bytes that may precede it


@dataclass(frozen=True)
class PdfLine:
    """A line of a page, or a cell of a table row. `size` is the font size of most of its letters;
    `left` and `base` are its start from the lower left corner of the page; all in points."""

    text: str
    size: float
    bold: bool
    left: float
    base: float


@dataclass(frozen=True)
class Pdf:
    """The text of each page in order, the same text as `lines` with positions, and the title of the
    file's metadata. `scanned` has the numbers (from 1) of pages with images and without text."""

    title: str
    pages: tuple[str, ...]
    lines: tuple[tuple[PdfLine, ...], ...]
    scanned: tuple[int, ...] = ()


def read_pdf(data: bytes) -> Pdf:
    """Return the text of a PDF file by page. Raises IngestError, whose message continues
    "… was not read: "."""
    with extra("documents", "reading PDF files", IngestError):
        from pypdf import PdfReader

    if _BEGINNING not in data[:_BEFORE]:
        raise IngestError(
            f"it is not a PDF: it does not begin with {_BEGINNING.decode()}",
            hint="give it the ending of its content",
        )
    # pypdf logs each repair; what it cannot repair is raised.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    with _translate_errors():
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise IngestError("it is encrypted", hint="remove its password first")
        read = [_PageReader().read(page) for page in reader.pages]
        scanned = [
            at for at, (text, _) in enumerate(read) if not text and _has_images(reader.pages[at])
        ]
        title = str(reader.metadata.title or "").strip() if reader.metadata else ""
    if not any(text for text, _ in read):
        raise _without_text(images=bool(scanned))
    return Pdf(
        title,
        tuple(text for text, _ in read),
        tuple(lines for _, lines in read),
        tuple(at + 1 for at in scanned),
    )


def pdf_pages(data: bytes) -> list[str]:
    """Return the text of each page of a PDF file. Raises IngestError as `read_pdf` does."""
    return list(read_pdf(data).pages)


def _without_text(*, images: bool) -> IngestError:
    if images:
        return IngestError("it has no text, only images", hint="recognise its text (OCR) first")
    hint = "its pages are blank, or their letters are drawn as shapes"
    return IngestError("it has no text", hint=hint)


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise errors of the parser as IngestError."""
    from pypdf.errors import PyPdfError

    try:
        yield
    except (PyPdfError, *_WRONG) as exc:
        raise IngestError(
            f"it is not a PDF that can be read: {exc}", hint="print it to a new PDF"
        ) from exc
    # An unknown cipher, or one that needs a library which is not installed.
    except (NotImplementedError, ImportError) as exc:
        raise IngestError(str(exc), hint="remove its password, or print it to a new PDF") from exc


@dataclass(frozen=True)
class _Run:
    """Letters of one direction in reading order; or characters without a direction (None), from
    left to right."""

    text: str
    backward: bool | None


@dataclass
class _LineBuilder:
    """A line being built. `parts` are (letters, size, bold); `end` is the estimated end of the last
    part; `letter` its start if it is a single letter. `runs` were drawn at once, from `last` on,
    and are not in `text` yet. `backward`: the line runs from right to left."""

    text: str = ""
    parts: list[tuple[int, float, bool]] = field(default_factory=list)
    left: float = 0.0
    base: float = 0.0
    end: float = 0.0
    letter: float = math.nan
    runs: list[_Run] = field(default_factory=list)
    last: float = math.nan
    high: float = 0.0
    # Text to the left of the current text is a separate word if it ends before this.
    blank: float = math.nan
    backward: bool | None = None

    def add(self, run: _Run, left: float, high: float) -> None:
        if left != self.last:
            self.flush_runs()
            self.last = left
        self.runs.append(run)
        self.high = high

    def flush_runs(self) -> None:
        """Move the runs that were drawn at once to `text`."""
        if not self.runs:
            return
        backward = _direction(self.runs, self.backward)
        text = _reorder(self.runs, backward)
        if self.backward is None:
            self.backward = backward
        if self.backward and not (self.text[-1:].isspace() or text[0].isspace()):
            self.text += " " * (
                self.last + self.high * sum(map(_width_factor, text.strip())) <= self.blank
            )
        self.text += text
        if text.strip():
            self.blank = self.last - WORDS_APART * self.high
        self.runs.clear()

    def line(self) -> PdfLine:
        self.flush_runs()
        size = max(self.parts, key=lambda part: part[0])[1]
        return PdfLine(
            self.text.strip(), size, all(bold for _, _, bold in self.parts), self.left, self.base
        )


class _PageReader:
    """Reads one page. The library calls `_add_text` for each piece of text that the page draws."""

    def __init__(self) -> None:
        self._lines = [_LineBuilder()]
        # the library has met a right-to-left letter and now prepends to the text
        self._prepending = False

    def read(self, page: PageObject) -> tuple[str, tuple[PdfLine, ...]]:
        """Return the page's text and its lines; text far to the right of the rest of a line is a
        line of its own."""
        page.extract_text(visitor_text=self._add_text)
        finished = tuple(
            _with_values([line.line() for line in self._lines if line.parts], _values(page))
        )
        return "".join(map(_separate, (None, *finished), finished)), finished

    def _add_text(
        self, text: str, outer: list[float], inner: list[float], font: Any, size: float
    ) -> None:
        """Add a piece of text. `outer` and `inner` are transformations (a, b, c, d, e, f) of the
        page and of the text: ISO 32000-1, 8.3.4."""
        up = (
            inner[2] * outer[0] + inner[3] * outer[2],
            inner[2] * outer[1] + inner[3] * outer[3],
        )
        high = round(size * math.hypot(*up), 1)
        left = inner[4] * outer[0] + inner[5] * outer[2] + outer[4]
        base = inner[4] * outer[1] + inner[5] * outer[3] + outer[5]
        for number, part in enumerate(_normalize_symbols(text).split("\n")):
            if number:
                self._lines.append(_LineBuilder())
            if part:
                self._choose_line(part, left, base, high)
                self._add_part(part, left, high, bold=_is_bold(font))

    def _choose_line(self, part: str, left: float, base: float, high: float) -> None:
        """Make the line that the text belongs to the last one."""
        lines = self._lines
        if len(lines) > 1 and not lines[-1].parts and _continues_word(lines[-2], left, base, high):
            lines.pop()
        if not part.strip():
            return
        if not lines[-1].parts:
            lines[-1].left, lines[-1].base = left, base
        elif left > lines[-1].end + CELLS_APART * high:
            lines.append(_LineBuilder(left=left, base=base))

    def _add_part(self, part: str, left: float, high: float, *, bold: bool) -> None:
        line = self._lines[-1]
        if letters := part.strip():
            line.parts.append((len(letters), high, bold))
            line.end = left + WIDEST * high * sum(
                1.0 if letter >= "\u2e80" else 0.5 for letter in letters
            )
        backward = _is_backward(part)
        if backward is None and self._prepending:
            part = part[::-1]
        line.add(_Run(part, backward), left, high)
        if backward is not None:
            self._prepending = backward
        line.letter = left if len(part) == 1 else math.nan


def _values(page: PageObject) -> list[PdfLine]:
    """Return what is filled in into the fields of a page's form."""
    found: list[PdfLine] = []
    with suppress(*_WRONG):  # the text of the page is worth more than a broken form
        for reference in page.get("/Annots") or ():
            widget = reference.get_object()
            if widget.get("/Subtype") == "/Widget" and (text := _value(widget)):
                left, low, _, high = map(float, widget["/Rect"])
                size = min(high - low, USUAL)
                found.append(PdfLine(text, size, bold=False, left=left, base=high - size))
    return found


def _value(widget: Any) -> str:
    field: Any = widget
    for _ in range(DEEPEST):
        if "/V" in field or "/Parent" not in field:
            break
        field = field["/Parent"].get_object()
    value = field.get("/V")
    if widget.get("/FT", field.get("/FT")) == "/Btn":
        state = str(widget.get("/AS", "/Off"))
        return "" if state == "/Off" else f"[{state.strip('/')}]"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return " ".join(str(value).split()) if isinstance(value, str) else ""


def _with_values(lines: list[PdfLine], values: Sequence[PdfLine]) -> list[PdfLine]:
    """Return the lines with each value after its label, which is to the left of it or above."""
    for value in values:
        beside = [
            at
            for at, line in enumerate(lines)
            if line.left < value.left and abs(line.base - value.base) < 0.8 * USUAL
        ]
        if beside:
            at = max(beside, key=lambda each: lines[each].left)
            lines[at] = replace(lines[at], text=f"{lines[at].text} {value.text}")
        else:
            above = [at for at, line in enumerate(lines) if line.base >= value.base]
            lines.insert(above[-1] + 1 if above else len(lines), value)
    return lines


def _separate(before: PdfLine | None, line: PdfLine) -> str:
    """Return a line with its separator from the previous one: spaces between cells of a row, else a
    line break."""
    if before is None:
        return line.text
    beside = line.base == before.base and line.left > before.left
    return f"  {line.text}" if beside else f"\n{line.text}"


def _has_images(page: PageObject) -> bool:
    """Return whether the page draws an image, or a form that may contain one."""
    resources: Any = page.get("/Resources")
    resources = resources.get_object() if resources is not None else None
    return isinstance(resources, dict) and bool(resources.get("/XObject"))


def _continues_word(line: _LineBuilder, left: float, base: float, high: float) -> bool:
    """Return whether a letter continues a line that is drawn letter by letter: hardly any letter is
    wider than its font size."""
    return 0 < left - line.letter <= high and abs(base - line.base) < high / 10


def _width_factor(letter: str) -> float:
    """Return the estimated width of a letter as a multiple of its font size."""
    return _WIDTHS.get(unicodedata.bidirectional(letter), 0.3) if letter.isalnum() else 0.3


_WIDTHS = {"R": 0.55, "AL": 0.5, "L": 0.6, "EN": 0.6, "AN": 0.6}


def _is_backward(text: str) -> bool | None:
    """Return whether a text starts from right to left; None if it has no letters, and no digits
    except Arabic ones, which the library treats as characters without a direction."""
    if text.isascii():
        return False if _ASCII.search(text) else None
    letters = (letter for letter in text if not _ARABIC_DIGITS.match(letter))
    directions = map(_DIRECTIONS.get, map(unicodedata.bidirectional, letters))
    return next((backward for backward in directions if backward is not None), None)


def _direction(runs: Sequence[_Run], line: bool | None) -> bool | None:
    """Return the reading direction of runs that were drawn at once: that of both ends if they
    agree, else that of most letters; without letters, that of the line."""
    known = [run.backward for run in runs if run.backward is not None]
    if not known:
        return line
    if known[0] == known[-1]:
        return known[0]
    letters = sum(
        letter.isalpha() if run.backward else -letter.isalpha()
        for run in runs
        for letter in run.text
    )
    return letters > 0


def _reorder(runs: Sequence[_Run], backward: bool | None) -> str:
    """Return runs, given from left to right, in reading order. Characters without a direction at
    the ends of a run have its direction only if it is the direction of the whole."""
    if not backward and not any(run.backward for run in runs):
        return "".join(run.text for run in runs)
    ordered: list[tuple[str, bool | None]] = []
    for run in runs:
        if run.backward is None:
            ordered.append((run.text, None))
            continue
        core = run.text.strip(_LOOSE)
        start, end = run.text.split(core, 1)
        left, right = (end[::-1], start[::-1]) if run.backward else (start, end)
        ordered += [(left, None), (core, run.backward), (right, None)]
    if backward:
        ordered = [
            (text[::-1] if direction is None else text, True if direction is None else direction)
            for text, direction in ordered
        ]
        ordered.reverse()
    return "".join(
        _ARABIC_DIGITS.sub(_reversed_match, text) if direction else text
        for text, direction in ordered
    )


def _reversed_match(found: re.Match[str]) -> str:
    return found.group()[::-1]


_DIRECTIONS = {"R": True, "AL": True, "L": False, "EN": False}  # Unicode Standard Annex 9, table 4
_ASCII = re.compile("[0-9A-Za-z]")
_ARABIC_DIGITS = re.compile(
    "[\u0660-\u0669\u06f0-\u06f9]+(?:[.,/:\u066b\u066c][\u0660-\u0669\u06f0-\u06f9]+)*"
)
# Characters without a direction, also next to digits; the same set as the library's.
_LOOSE = " !\"&'()*+,-./:;<=>?@"


def _normalize_symbols(text: str) -> str:
    return text.translate(_SIGNS)


def _is_bold(font: Any) -> bool:
    name = str((font or {}).get("/BaseFont", "")).casefold()
    return any(word in name for word in ("bold", "black", "heavy", "cmbx"))  # the last is TeX's
