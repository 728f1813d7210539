"""The file that `kb export` writes and `kb import` reads: JSON lines, readable by any program, with
at most a few documents in memory.

    {"groundhook": "collection", "version": 1, "collection": "docs", "made": {"provider": …, …}}
    {"document": "a.md", "tenant": "", "title": …, "url": …, "fingerprint": …, "bytes": …,
     "fields": {…}, "passages": 2}
    {"passage": …, "content": …, "text": …, "heading": …, "page": …, "start": …, "end": …,
     "gap": …, "vector": …}
    {"passage": …}
    {"end": 1}

Each object is one line. A vector is base64 of float32, little-endian. The last line counts the
documents: a file without it is truncated. A line of any other form is an error with its number,
before any part of its document reaches a store.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from array import array
from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from typing import IO, Annotated, Any, TypeVar, cast

import anyio.to_thread
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, TypeAdapter, ValidationError

from groundhook.core.errors import HostError, StorageError, UsageError
from groundhook.core.json_text import NotJson, read_json
from groundhook.core.types.base import well_formed
from groundhook.core.types.fields import LARGEST, FieldType, field_value
from groundhook.handlers.kb.store.port import CollectionSettings, FullDocument, Passage

AGAIN = "export it again; complete documents before that are added"
_VERSION = 1
# passages that one call of a thread reads: the call takes longer than reading a passage
_PASSAGES_READ = 64
_LONGEST_LINE = 64 << 20  # characters
_PASSAGE = tuple(field.name for field in fields(Passage) if field.name != "vector")
_SETTINGS = TypeAdapter(CollectionSettings)

_Counted = Annotated[int, Field(ge=0, le=LARGEST)]
_Scalar = str | int | FiniteFloat | bool


class _Line(BaseModel):
    """A line of the file, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class _Head(_Line):
    """The first line of a document."""

    document: str = Field(min_length=1)
    title: str
    fingerprint: str
    passages: int = Field(ge=1)
    tenant: str = ""
    url: str = ""
    bytes: _Counted = 0
    fields: dict[str, _Scalar | list[_Scalar]] = {}
    source: str = ""


class _Piece(_Line):
    """A passage of the document."""

    passage: str = Field(min_length=1)
    content: str
    text: str
    vector: str
    heading: str = ""
    page: _Counted = 0
    start: _Counted = 0
    end: _Counted = 0
    gap: str = ""


_Kind = TypeVar("_Kind", bound=_Line)


def header(collection: str, settings: CollectionSettings) -> str:
    """Return the first line of the file."""
    values = {field.name: getattr(settings, field.name) for field in fields(CollectionSettings)}
    return _json(
        [
            {
                "groundhook": "collection",
                "version": _VERSION,
                "collection": collection,
                "made": values,
            }
        ]
    )


def document_lines(document: FullDocument) -> str:
    """Return the lines of a document."""
    head = {**vars(document), "fields": dict(document.fields), "passages": len(document.passages)}
    return _json([head, *(_passage(each) for each in document.passages)])


def end(documents: int) -> str:
    """Return the last line of the file."""
    return _json([{"end": documents}])


def _passage(passage: Passage) -> dict[str, Any]:
    return {
        **{name: getattr(passage, name) for name in _PASSAGE},
        "vector": base64.b64encode(passage.vector).decode("ascii"),
    }


def _json(lines: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


class ExportReader:
    """Reads a file, a few documents at a time. Raises UsageError, with the line, for another kind
    of file, and StorageError for one that is truncated or cannot be read."""

    def __init__(self, file: IO[str]) -> None:
        self.name = str(getattr(file, "name", "the file"))
        self._number = 0
        self._file = file
        # the number of documents, or the error, after the documents that were returned
        self._last: int | HostError | None = None

    async def settings(self) -> CollectionSettings:
        """Return the settings of the exported collection. Call this first."""
        first = await anyio.to_thread.run_sync(self._next)
        if first.get("groundhook") != "collection" or first.get("version") != _VERSION:
            raise UsageError(f"{self.name!r} is not a collection that `groundhook kb export` wrote")
        values = first.get("made")
        # A later version may have written more settings.
        known = (
            {
                field.name: values[field.name]
                for field in fields(CollectionSettings)
                if field.name in values
            }
            if isinstance(values, dict)
            else values
        )
        try:
            return _SETTINGS.validate_json(json.dumps(known), strict=True)
        except ValidationError as exc:
            raise self._not_exported(_first_problem(exc)) from exc

    async def next(
        self, settings: CollectionSettings, *, vectors: bool
    ) -> list[FullDocument] | int:
        """Return the next documents, for a collection with these settings, with or without the
        `vectors` of the file; at the end of the file, its number of documents. Documents before an
        invalid line are returned before its error is raised."""
        return await anyio.to_thread.run_sync(partial(self._documents, settings, vectors=vectors))

    def _documents(
        self, settings: CollectionSettings, *, vectors: bool
    ) -> list[FullDocument] | int:
        read: list[FullDocument] = []
        while (
            self._last is None and sum(len(document.passages) for document in read) < _PASSAGES_READ
        ):
            try:
                found = self._document(settings, vectors=vectors)
            except HostError as exc:
                self._last = exc
            else:
                if isinstance(found, FullDocument):
                    read.append(found)
                else:
                    self._last = found
        if read or self._last is None:
            return read
        if isinstance(self._last, HostError):
            raise self._last
        return self._last

    def _document(self, settings: CollectionSettings, *, vectors: bool) -> FullDocument | int:
        values = self._next()
        if set(values) == {"end"} and isinstance(values["end"], int):
            self._number += 1
            if self._readline():  # also makes a compressed file verify its checksum
                raise self._not_exported("more after its end")
            return int(values["end"])
        head = self._line(_Head, values)
        self._check(head, settings)
        bytes_wanted = 4 * settings.dimensions if vectors else None
        passages = tuple(self._piece(bytes_wanted) for _ in range(head.passages))
        return FullDocument(**{**dict(head), "passages": passages})

    def _check(self, head: _Head, settings: CollectionSettings) -> None:
        """Raise UsageError if the collection cannot have such a document."""
        if bool(head.tenant) != settings.tenanted:
            own = (
                f"belongs to the tenant {head.tenant!r}" if head.tenant else "belongs to no tenant"
            )
            others = (
                "all documents of the collection do"
                if settings.tenanted
                else "the collection has no tenants"
            )
            raise UsageError(
                f"{self.name!r}, line {self._number}: {head.document!r} {own}, and {others}",
                hint="declare `tenant_field` as in the exported collection",
            )
        for name, type in settings.fields.items():
            try:
                field_value(head.fields.get(name), cast(FieldType, type))
            except ValueError as exc:
                raise UsageError(
                    f"{self.name!r}, line {self._number}: {name!r} of {head.document!r} {exc}",
                    hint=f"`fields` declares it as {type}",
                ) from exc

    def _piece(self, bytes_wanted: int | None) -> Passage:
        piece = self._line(_Piece, self._next())
        try:
            vector = base64.b64decode(piece.vector, validate=True)
        except ValueError as exc:
            raise self._not_exported(f"'vector': {exc}") from exc
        if bytes_wanted is not None and not _is_vector(vector, bytes_wanted):
            raise self._not_exported(f"'vector' should have {bytes_wanted // 4} finite numbers")
        return Passage(**{**dict(piece), "vector": vector})

    def _line(self, kind: type[_Kind], values: Mapping[str, Any]) -> _Kind:
        try:
            return kind.model_validate(values)
        except ValidationError as exc:
            raise self._not_exported(_first_problem(exc)) from exc

    def _next(self) -> Mapping[str, Any]:
        self._number += 1
        line = self._readline()
        if not line.endswith("\n"):
            if len(line) == _LONGEST_LINE:
                raise self._not_exported(f"more than {_LONGEST_LINE >> 20} million characters")
            raise StorageError(
                f"{self.name!r} is truncated at line {self._number}"
                if line or self._number > 1
                else f"{self.name!r} is empty",
                hint=AGAIN,
            )
        try:
            read: Mapping[str, Any] = read_json(line)
        except NotJson as exc:
            raise self._not_exported("not JSON") from exc
        if not isinstance(read, dict):
            raise self._not_exported("not an object")
        if ("\\ud" in line or "\\uD" in line) and well_formed(read) != read:
            raise self._not_exported("a lone surrogate, which is not valid text")
        return read

    def _readline(self) -> str:
        try:
            return self._file.readline(_LONGEST_LINE)
        except (OSError, EOFError, UnicodeDecodeError, zlib.error) as exc:
            reason = "it is not UTF-8" if isinstance(exc, UnicodeDecodeError) else exc
            raise StorageError(
                f"{self.name!r} cannot be read from line {self._number} on: {reason}",
                hint=AGAIN,
            ) from exc

    def _not_exported(self, why: str) -> UsageError:
        return UsageError(
            f"{self.name!r} is not a collection that `groundhook kb export` wrote (line"
            f" {self._number}: {why})"
        )


def _is_vector(vector: bytes, size: int) -> bool:
    """Return whether the bytes are a vector of that size with finite numbers."""
    if len(vector) != size:
        return False
    numbers = array("f")
    numbers.frombytes(vector)
    return all(map(math.isfinite, numbers))


def _first_problem(exc: ValidationError) -> str:
    """Return the first problem."""
    wrong = exc.errors(include_url=False, include_context=False, include_input=False)[0]
    path = ".".join(map(str, wrong["loc"]))
    return f"{path!r}: {wrong['msg']}" if path else wrong["msg"]
