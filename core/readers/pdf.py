"""Extraction of text from PDF files, page by page."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from groundhook.core.errors import IngestError
from groundhook.core.extras import extra

if TYPE_CHECKING:
    from groundhook.core.readers.pdf_rows import PdfLine

_BEGINNING, _BEFORE = b"%PDF-", 1024  # of every PDF, and the bytes that may precede it
_MOST_ENTRIES = 5_000  # of an outline


@dataclass(frozen=True)
class Pdf:
    """The text of each page in order, the same text as `lines` with positions, and the title of the
    file's metadata. `scanned` has the numbers (from 1) of pages with images and without text;
    `outline` the titles of chapters with the numbers of their pages."""

    title: str
    pages: tuple[str, ...]
    lines: tuple[tuple[PdfLine, ...], ...]
    scanned: tuple[int, ...] = ()
    outline: frozenset[tuple[str, int]] = frozenset()


def read_pdf(data: bytes) -> Pdf:
    """Return the text of a PDF file by page. Raises IngestError, whose message continues
    "… was not read: "."""
    with extra("documents", "reading PDF files", IngestError):
        import pypdfium2

        from groundhook.core.readers.pdf_glyphs import has_images

    if _BEGINNING not in data[:_BEFORE]:
        raise IngestError(
            f"it is not a PDF: it does not begin with {_BEGINNING.decode()}",
            hint="give it the ending of its content",
        )
    # It logs what it does with forms.
    logging.getLogger("pypdfium2").setLevel(logging.CRITICAL)
    with _opened(data) as file:
        read, scanned = [], []
        stamps: set[str] = set()
        for at in range(len(file)):
            try:
                page = file[at]
            except pypdfium2.PdfiumError as exc:
                raise _broken(f"page {at + 1} cannot be loaded") from exc
            read.append(_lines(page, file.formenv, stamps))
            if not read[-1] and has_images(page):
                scanned.append(at + 1)
            page.close()
        title = file.get_metadata_value("Title").replace("\0", "").strip()
        outline = frozenset(_outline(file))
    if not any(read):
        raise _without_text(images=bool(scanned))
    return Pdf(title, tuple(map(_joined, read)), tuple(read), tuple(scanned), outline)


def pdf_pages(data: bytes) -> list[str]:
    """Return the text of each page of a PDF file. Raises IngestError as `read_pdf` does."""
    return list(read_pdf(data).pages)


def _without_text(*, images: bool) -> IngestError:
    if images:
        return IngestError("it has no text, only images", hint="recognise its text (OCR) first")
    hint = "its pages are blank, or their letters are drawn as shapes"
    return IngestError("it has no text", hint=hint)


def _broken(reason: str) -> IngestError:
    return IngestError(f"it is not a PDF that can be read: {reason}", hint="print it to a new PDF")


@contextmanager
def _opened(data: bytes) -> Iterator[Any]:
    import pypdfium2
    from pypdfium2 import raw

    try:
        file = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as exc:
        if exc.err_code == raw.FPDF_ERR_PASSWORD:
            raise IngestError("it is encrypted", hint="remove its password first") from exc
        if exc.err_code == raw.FPDF_ERR_SECURITY:
            raise IngestError(
                "it is encrypted in an unknown way",
                hint="remove its password, or print it to a new PDF",
            ) from exc
        raise _broken("its structure is damaged") from exc
    try:
        if not len(file):
            raise _broken("it has no pages")
        file.init_forms()
        yield file
    finally:
        file.close()


def _lines(page: Any, form: Any, stamps: set[str]) -> tuple[PdfLine, ...]:
    """Return the lines of a page, without `stamps` that an earlier page has."""
    from groundhook.core.readers.pdf_glyphs import read_page
    from groundhook.core.readers.pdf_rows import lines_of

    drawn = read_page(page, form)
    drawn.stamps = [stamp for stamp in drawn.stamps if stamp not in stamps]
    stamps.update(drawn.stamps)
    return tuple(lines_of(drawn))


def _outline(file: Any) -> Iterator[tuple[str, int]]:
    for number, entry in enumerate(file.get_toc()):
        if number >= _MOST_ENTRIES:
            return
        target = entry.get_dest()
        index = target.get_index() if target else None
        if index is not None:
            yield entry.get_title(), index + 1


def _joined(lines: tuple[PdfLine, ...]) -> str:
    return "".join(map(_separate, (None, *lines), lines))


def _separate(before: PdfLine | None, line: PdfLine) -> str:
    """Return a line with its separator from the previous one: spaces between cells of a row, else a
    line break."""
    if before is None:
        return line.text
    beside = line.base == before.base and line.left > before.left
    return f"  {line.text}" if beside else f"\n{line.text}"
