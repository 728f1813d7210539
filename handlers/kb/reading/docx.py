"""Word documents (DOCX) to documents, by way of HTML: headings, lists and tables as they are styled; images are left out."""

from __future__ import annotations

import io
import zipfile
from typing import Any
from xml.etree import ElementTree

from handlers.kb.reading.document import Document
from handlers.kb.reading.html import markdown_of
from handlers.kb.reading.markdown import from_markdown
from handlers.kb.reading.text import stem
from host.errors import IngestError

_LARGEST = 512 << 20  # bytes in all when unpacked: a small file can hold very much
_TITLE = "{http://purl.org/dc/elements/1.1/}title"


def docx(data: bytes, name: str) -> Document:
    """Raises IngestError for what is no DOCX, or is encrypted."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as parts:
            if sum(part.file_size for part in parts.infolist()) > _LARGEST:
                raise IngestError(f"{name!r} was not added: unpacked it has more than {_LARGEST >> 20} MB")
            title = _title(parts)
        text = markdown_of(_html(data))
    # The converter meets broken files with whatever its own code raises.
    except (zipfile.BadZipFile, ElementTree.ParseError, OSError, LookupError, ValueError, TypeError, AttributeError) as exc:
        encrypted = data.startswith(b"\xd0\xcf\x11\xe0")
        reason = "it is encrypted, or in the format before DOCX" if encrypted else f"it is not a DOCX that can be read: {exc}"
        raise IngestError(f"{name!r} was not added: {reason}", hint="save it anew as DOCX, without a password") from exc
    document = from_markdown(text, name, front=False)
    if title and document.title == stem(name):
        return Document(title, document.text, document.blocks)
    return document


def _html(data: bytes) -> str:
    import mammoth  # with its parser 40 ms, and few folders hold such files

    no_images: Any = mammoth.images.img_element(lambda _: {})
    found: str = mammoth.convert_to_html(io.BytesIO(data), convert_image=no_images).value
    return found


def _title(parts: zipfile.ZipFile) -> str:
    try:
        core = ElementTree.fromstring(parts.read("docProps/core.xml"))
    except KeyError:
        return ""
    return (core.findtext(_TITLE) or "").strip()
