"""PDF files as text, page by page: the one door to the library that reads them. What becomes of it
is its callers' business."""

from __future__ import annotations

import io
import logging
import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from groundhook.host.core.errors import IngestError

if TYPE_CHECKING:
    from pypdf import PageObject


WIDEST = (
    1.4  # times what letters are wide by rule of thumb, half their size: hardly any text is wider
)
CELLS_APART = (
    2.0  # times the size: what begins so far behind the end of a text is another cell of a table
)
# times the size: what ends so far before a text that runs from right to left is another word
WORDS_APART = 0.3
# No text has a NUL; the bullets of Word and LibreOffice are set in a font of symbols.
_SIGNS = {0: " ", 0xF0B7: "•", 0xF0A7: "▪", 0xF0D8: "➢", 0xF0FC: "✓", 0xF02D: "–"}


@dataclass(frozen=True)
class Line:
    """A line of a page as it is set, or a cell of a table's row: `size` of the type that most of
    its letters have and where it begins, `left` and `base`, from the lower left corner of the page,
    all in points."""

    text: str
    size: float
    bold: bool
    left: float
    base: float


@dataclass(frozen=True)
class Pdf:
    """The text of each page in order, and the title that the file gives itself. `lines`: the same
    text as it is set; `scanned` are the numbers of pages that have images and no text."""

    title: str
    pages: tuple[str, ...]
    lines: tuple[tuple[Line, ...], ...]
    scanned: tuple[int, ...] = ()


def read_pdf(data: bytes) -> Pdf:
    """Raises IngestError, worded to go on with "… was not read: "."""
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    logging.getLogger("pypdf").setLevel(
        logging.CRITICAL
    )  # it reports what it repairs; failures are raised
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise IngestError("it is encrypted", hint="remove its password first")
        read = [_page(page) for page in reader.pages]
        scanned = [
            at for at, (text, _) in enumerate(read) if not text and _has_images(reader.pages[at])
        ]
        title = str(reader.metadata.title or "").strip() if reader.metadata else ""
    # The parser meets broken files with whatever its own code raises.
    except (
        PyPdfError,
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as exc:
        raise IngestError(
            f"it is not a PDF that can be read: {exc}", hint="print it to a new PDF"
        ) from exc
    # What it raises for a cipher that it does not know, and for one that wants a library which is
    # not there.
    except (NotImplementedError, ImportError) as exc:
        raise IngestError(str(exc), hint="remove its password, or print it to a new PDF") from exc
    if not any(text for text, _ in read):
        raise IngestError("it has no text, only images", hint="recognise its text (OCR) first")
    return Pdf(
        title,
        tuple(text for text, _ in read),
        tuple(lines for _, lines in read),
        tuple(at + 1 for at in scanned),
    )


@dataclass(frozen=True)
class _Run:
    """Letters that run in one direction, as they are read; or signs that run in none (None), as
    they stand from left to right."""

    text: str
    backward: bool | None


@dataclass
class _Setting:
    """A line under way: (letters, size, bold) of its parts. `end` is about where the last part
    ends; `letter` where it begins if it is a single letter. `runs` were drawn in one go, from
    `last` on, and are not in `text` yet. `backward`: the line runs from right to left."""

    text: str = ""
    parts: list[tuple[int, float, bool]] = field(default_factory=list)
    left: float = 0.0
    base: float = 0.0
    end: float = 0.0
    letter: float = math.nan
    runs: list[_Run] = field(default_factory=list)
    last: float = math.nan
    high: float = 0.0
    blank: float = (
        math.nan
    )  # where a text that stands left of what is told would have to end to be a word of its own
    backward: bool | None = None

    def add(self, run: _Run, left: float, high: float) -> None:
        if left != self.last:
            self.settle()
            self.last = left
        self.runs.append(run)
        self.high = high

    def settle(self) -> None:
        """Tell what was drawn in one go."""
        if not self.runs:
            return
        backward = _direction(self.runs, self.backward)
        said = _as_read(self.runs, backward)
        if self.backward is None:
            self.backward = backward
        if self.backward and not (self.text[-1:].isspace() or said[0].isspace()):
            self.text += " " * (self.last + self.high * sum(map(_wide, said.strip())) <= self.blank)
        self.text += said
        if said.strip():
            self.blank = self.last - WORDS_APART * self.high
        self.runs.clear()

    def line(self) -> Line:
        self.settle()
        size = max(self.parts, key=lambda part: part[0])[1]
        return Line(
            self.text.strip(), size, all(bold for _, _, bold in self.parts), self.left, self.base
        )


def _page(page: PageObject) -> tuple[str, tuple[Line, ...]]:
    """A page's text, and its lines; what stands far behind the rest of a line is one of its own."""
    lines = [_Setting()]
    # the library adds to the left of what it has since it met a letter that runs from right to left
    turned = False

    def seen(text: str, outer: list[float], inner: list[float], font: Any, size: float) -> None:
        nonlocal turned
        for number, part in enumerate(_plain(text).split("\n")):
            if number:
                lines.append(_Setting())
            if not part:
                continue
            letters = len(part.strip())
            up = (
                inner[2] * outer[0] + inner[3] * outer[2],
                inner[2] * outer[1] + inner[3] * outer[3],
            )
            high = round(size * math.hypot(*up), 1)
            left = inner[4] * outer[0] + inner[5] * outer[2] + outer[4]
            base = inner[4] * outer[1] + inner[5] * outer[3] + outer[5]
            if len(lines) > 1 and not lines[-1].parts and _spells_on(lines[-2], left, base, high):
                lines.pop()
            if letters:
                if not lines[-1].parts:
                    lines[-1].left, lines[-1].base = left, base
                elif left > lines[-1].end + CELLS_APART * high:
                    lines.append(_Setting(left=left, base=base))
                lines[-1].parts.append((letters, high, _is_bold(font)))
                lines[-1].end = left + WIDEST * high * sum(
                    1.0 if letter >= "\u2e80" else 0.5 for letter in part.strip()
                )
            backward = _backward(part)
            lines[-1].add(
                _Run(part[::-1] if turned and backward is None else part, backward), left, high
            )
            turned = turned if backward is None else backward
            lines[-1].letter = left if len(part) == 1 else math.nan

    page.extract_text(visitor_text=seen)
    said = tuple(line.line() for line in lines if line.parts)
    return "".join(map(_after, (None, *said), said)), said


def _after(before: Line | None, line: Line) -> str:
    """A line with what parts it from the one before: a cell stands beside another of its row."""
    if before is None:
        return line.text
    beside = line.base == before.base and line.left > before.left
    return f"  {line.text}" if beside else f"\n{line.text}"


def _has_images(page: PageObject) -> bool:
    """Whether the page draws anything from outside its own text: an image, or a form that may hold
    one."""
    resources: Any = page.get("/Resources")
    resources = resources.get_object() if resources is not None else None
    return isinstance(resources, dict) and bool(resources.get("/XObject"))


def _spells_on(line: _Setting, left: float, base: float, high: float) -> bool:
    """Whether a letter goes on with a line that is drawn letter by letter: hardly one is wider than
    its size."""
    return 0 < left - line.letter <= high and abs(base - line.base) < high / 10


def _wide(letter: str) -> float:
    """How wide a letter is by rule of thumb, as a multiple of its size."""
    return _WIDE.get(unicodedata.bidirectional(letter), 0.3) if letter.isalnum() else 0.3


_WIDE = {"R": 0.55, "AL": 0.5, "L": 0.6, "EN": 0.6, "AN": 0.6}


def _backward(text: str) -> bool | None:
    """Whether a text begins to run from right to left; None where it has no letters, and no digits
    but Arabic ones, which the library takes for signs."""
    if text.isascii():
        return False if _ASCII.search(text) else None
    letters = (letter for letter in text if not _ARABIC_DIGITS.match(letter))
    directions = map(_DIRECTIONS.get, map(unicodedata.bidirectional, letters))
    return next((backward for backward in directions if backward is not None), None)


def _direction(runs: Sequence[_Run], line: bool | None) -> bool | None:
    """In which direction a reader takes what was drawn in one go: as at its two ends, or as most
    letters there, else as its line runs."""
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


def _as_read(runs: Sequence[_Run], backward: bool | None) -> str:
    """Runs that stand from left to right as they are read in that direction. The signs at the ends
    of a run have its direction only when it is that of them all."""
    if not backward and not any(run.backward for run in runs):
        return "".join(run.text for run in runs)
    told: list[tuple[str, bool | None]] = []
    for run in runs:
        if run.backward is None:
            told.append((run.text, None))
            continue
        core = run.text.strip(_LOOSE)
        start, end = run.text.split(core, 1)
        left, right = (end[::-1], start[::-1]) if run.backward else (start, end)
        told += [(left, None), (core, run.backward), (right, None)]
    if backward:
        told = [
            (text[::-1] if direction is None else text, True if direction is None else direction)
            for text, direction in told
        ]
        told.reverse()
    return "".join(
        _ARABIC_DIGITS.sub(_turned, text) if direction else text for text, direction in told
    )


def _turned(found: re.Match[str]) -> str:
    return found.group()[::-1]


_DIRECTIONS = {"R": True, "AL": True, "L": False, "EN": False}  # Unicode Standard Annex 9, table 4
_ASCII = re.compile("[0-9A-Za-z]")
_ARABIC_DIGITS = re.compile(
    "[\u0660-\u0669\u06f0-\u06f9]+(?:[.,/:\u066b\u066c][\u0660-\u0669\u06f0-\u06f9]+)*"
)
_LOOSE = " !\"&'()*+,-./:;<=>?@"  # that have no direction beside digits either; the library's signs


def _plain(text: str) -> str:
    return text.translate(_SIGNS)


def _is_bold(font: Any) -> bool:
    name = str((font or {}).get("/BaseFont", "")).casefold()
    return any(word in name for word in ("bold", "black", "heavy", "cmbx"))  # the last is TeX's
