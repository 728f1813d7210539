"""PDF files as text, page by page: the one door to the library that reads them. What becomes of it is its callers' business."""

from __future__ import annotations

import io
import logging
from dataclasses import dataclass

from host.errors import IngestError


@dataclass(frozen=True)
class Pdf:
    """The text of each page in order, and the title that the file gives itself."""

    title: str
    pages: tuple[str, ...]


def read_pdf(data: bytes) -> Pdf:
    """Raises IngestError, worded to go on with "… was not read: "."""
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it reports what it repairs; failures are raised
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise IngestError("it is encrypted", hint="remove its password first")
        pages = tuple(page.extract_text().replace("\0", " ").strip() for page in reader.pages)
        title = str(reader.metadata.title or "").strip() if reader.metadata else ""
    # The parser meets broken files with whatever its own code raises.
    except (PyPdfError, OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as exc:
        raise IngestError(f"it is not a PDF that can be read: {exc}", hint="print it to a new PDF") from exc
    # What it raises for a cipher that it does not know, and for one that wants a library which is not there.
    except (NotImplementedError, ImportError) as exc:
        raise IngestError(str(exc), hint="remove its password, or print it to a new PDF") from exc
    if not any(pages):
        raise IngestError("it has no text, only images", hint="recognise its text (OCR) first")
    return Pdf(title, pages)
