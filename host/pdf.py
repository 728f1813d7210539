"""PDF files as text, page by page: the one door to the library that reads them. What becomes of it is its callers' business."""

from __future__ import annotations

import io
import logging
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from host.errors import IngestError

if TYPE_CHECKING:
    from pypdf import PageObject


@dataclass(frozen=True)
class Line:
    """A line of a page as it is set: `size` of the type that most of its letters have and where it begins, `left` and `base`,
    from the lower left corner of the page, all in points."""

    text: str
    size: float
    bold: bool
    left: float
    base: float


@dataclass(frozen=True)
class Pdf:
    """The text of each page in order, and the title that the file gives itself. `lines`: the same text as it is set."""

    title: str
    pages: tuple[str, ...]
    lines: tuple[tuple[Line, ...], ...]


def read_pdf(data: bytes) -> Pdf:
    """Raises IngestError, worded to go on with "… was not read: "."""
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it reports what it repairs; failures are raised
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise IngestError("it is encrypted", hint="remove its password first")
        read = [_page(page) for page in reader.pages]
        title = str(reader.metadata.title or "").strip() if reader.metadata else ""
    # The parser meets broken files with whatever its own code raises.
    except (PyPdfError, OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as exc:
        raise IngestError(f"it is not a PDF that can be read: {exc}", hint="print it to a new PDF") from exc
    # What it raises for a cipher that it does not know, and for one that wants a library which is not there.
    except (NotImplementedError, ImportError) as exc:
        raise IngestError(str(exc), hint="remove its password, or print it to a new PDF") from exc
    if not any(text for text, _ in read):
        raise IngestError("it has no text, only images", hint="recognise its text (OCR) first")
    return Pdf(title, tuple(text for text, _ in read), tuple(lines for _, lines in read))


@dataclass
class _Setting:
    """A line under way: (letters, size, bold) of its parts."""

    text: str = ""
    parts: list[tuple[int, float, bool]] = field(default_factory=list)
    left: float = 0.0
    base: float = 0.0

    def line(self) -> Line:
        size = max(self.parts, key=lambda part: part[0])[1]
        return Line(self.text.strip(), size, all(bold for _, _, bold in self.parts), self.left, self.base)


def _page(page: PageObject) -> tuple[str, tuple[Line, ...]]:
    """A page's text, and its lines."""
    lines = [_Setting()]

    def seen(text: str, outer: list[float], inner: list[float], font: Any, size: float) -> None:
        for number, part in enumerate(text.replace("\0", " ").split("\n")):
            if number:
                lines.append(_Setting())
            letters = len(part.strip())
            line = lines[-1]
            line.text += part
            if letters and not line.parts:
                line.left = inner[4] * outer[0] + inner[5] * outer[2] + outer[4]
                line.base = inner[4] * outer[1] + inner[5] * outer[3] + outer[5]
            if letters:
                up = inner[2] * outer[0] + inner[3] * outer[2], inner[2] * outer[1] + inner[3] * outer[3]
                line.parts.append((letters, round(size * math.hypot(*up), 1), _is_bold(font)))

    text = page.extract_text(visitor_text=seen)
    return text.replace("\0", " ").strip(), tuple(line.line() for line in lines if line.parts)


def _is_bold(font: Any) -> bool:
    name = str((font or {}).get("/BaseFont", "")).casefold()
    return any(word in name for word in ("bold", "black", "heavy", "cmbx"))  # the last is TeX's
