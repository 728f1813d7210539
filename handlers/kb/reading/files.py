"""Read a file as a document, with the reader for its ending.

The formats are Markdown, HTML and DOCX (converted to Markdown), PDF and plain text. A block is a
range of the document's text, so no text is lost and every passage has exact character offsets. A
file that cannot be read is an IngestError that names it. Files whose rows are documents are read by
`rows`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path
from typing import Any

from groundhook.core.errors import HostError, IngestError
from groundhook.core.types.documents import Block, Document, DocumentField, Reader
from groundhook.core.workers import describe
from groundhook.handlers.kb.reading.readers import READERS
from groundhook.handlers.kb.reading.rows import TABLES, has_rows

log = logging.getLogger("groundhook")


def read(data: bytes, name: str, readers: Mapping[str, Reader] = READERS) -> Document:
    """Return the document in the bytes of the file `name`, read by the reader for its suffix.
    Raises IngestError."""
    suffix = Path(name).suffix.lower()
    reader = readers.get(suffix)
    if reader is None:
        kind = f"ending in {suffix!r}" if suffix else "without an ending"
        raise IngestError(
            f"{name!r} was not added: files {kind} cannot be read",
            hint=f"these can: {', '.join(sorted([*readers, *TABLES]))}",
        )
    document = reader(data, name) if data else None
    if document is None or document.empty:
        reasons = "; ".join(document.notes) if document else ""
        raise IngestError(
            f"{name!r} was not added: it is empty", hint=reasons or "it has no text to search"
        )
    return document


def read_files(contents: Sequence[tuple[bytes, str]]) -> list[dict[str, Any]]:
    """Return the documents in files, given as bytes and name, as messages to another process:
    `document_of` reads them, and `error` is that of a file that cannot be read."""
    return [_message(data, name) for data, name in contents]


def _message(data: bytes, name: str) -> dict[str, Any]:
    try:
        with failing_as(f"{name!r} was not added"):
            document = read(data, name)
    except HostError as exc:
        return {"error": describe(exc)}
    return {
        **vars(document),
        "blocks": [astuple(block) for block in document.blocks],
        "fields": {key: astuple(each) for key, each in document.fields.items()},
    }


def document_of(message: dict[str, Any]) -> Document:
    """Return the document of a message of `read_files`."""
    return Document(
        **{
            **message,
            "blocks": tuple(Block(*block) for block in message["blocks"]),
            "fields": {key: DocumentField(*each) for key, each in message["fields"].items()},
            "notes": tuple(message["notes"]),
        }
    )


@contextmanager
def failing_as(failure: str) -> Iterator[None]:
    """Turn every exception of a reader into an IngestError, "<failure>: <reason>", so that one
    document cannot stop the others. The reason names the class of the exception, since it may be a
    bug."""
    try:
        yield
    except HostError:
        raise
    except RecursionError as exc:
        raise IngestError(
            f"{failure}: it is nested too deeply to be read (RecursionError)"
        ) from exc
    except MemoryError as exc:
        raise IngestError(f"{failure}: reading it takes too much memory") from exc
    except Exception as exc:  # parsers and plug-ins' readers raise anything on untrusted input
        # The traceback is shown by `--debug`.
        log.info("%s", failure, exc_info=exc)
        raise IngestError(f"{failure}: reading it failed with {type(exc).__name__}: {exc}") from exc


def readable(name: str, readers: Mapping[str, Reader] = READERS) -> bool:
    """Return whether a file with this ending can be read, as a document or as rows."""
    return Path(name).suffix.lower() in readers or has_rows(name)
