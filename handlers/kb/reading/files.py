"""Files to documents, by their endings.

Markdown, HTML and DOCX (as Markdown), PDF and plain text. A block is a range of the document's
text, so nothing is lost on the way and every passage can say which characters it is. It refuses
what it cannot read, with an IngestError that names the file; it knows nothing of chunks. Files
whose rows are documents are read by `rows`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from groundhook.handlers.kb.reading.readers import READERS
from groundhook.handlers.kb.reading.rows import TABLES, has_rows
from groundhook.host.core.errors import HostError, IngestError
from groundhook.host.core.types.documents import Document, Reader

log = logging.getLogger("groundhook")


def read(data: bytes, name: str, readers: Mapping[str, Reader] = READERS) -> Document:
    """The document in the bytes of the file `name`, whose suffix says what it is. Raises
    IngestError."""
    suffix = Path(name).suffix.lower()
    reader = readers.get(suffix)
    if reader is None:
        raise IngestError(
            f"{name!r} was not added: files ending in {suffix or 'nothing'!r} cannot be read",
            hint=f"these can: {', '.join(sorted([*readers, *TABLES]))}",
        )
    document = reader(data, name) if data else None
    if document is None or document.empty:
        said = "; ".join(document.notes) if document else ""
        raise IngestError(
            f"{name!r} was not added: it is empty", hint=said or "nothing to search for in it"
        )
    return document


@contextmanager
def told_as(failure: str) -> Iterator[None]:
    """Whatever a document makes its reader raise becomes an IngestError, "<failure>: <reason>", so
    that it stands in no other document's way. The reason names the class of the error, which may be
    a mistake in the code."""
    try:
        yield
    except HostError:
        raise
    except RecursionError as exc:
        raise IngestError(
            f"{failure}: it is nested too deeply to be read (RecursionError)"
        ) from exc
    except Exception as exc:
        log.info(
            "%s", failure, exc_info=exc
        )  # `--debug` shows where, should it be a mistake of ours
        raise IngestError(f"{failure}: reading it failed with {type(exc).__name__}: {exc}") from exc


def readable(name: str, readers: Mapping[str, Reader] = READERS) -> bool:
    """Whether files that end like this one can be read, as a document or as rows."""
    return Path(name).suffix.lower() in readers or has_rows(name)
