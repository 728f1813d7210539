"""The file that `kb export` writes and `kb import` reads: JSON lines, so that it can be read
anywhere and no more than a document or a few small ones are in memory at a time.

    {"groundhook": "collection", "version": 1, "collection": "docs", "made": {"provider": …,
    "model": …, "dimensions": …, …}} {"document": "a.md", "tenant": "", "title": …, "url": …,
    "fingerprint": …, "bytes": …, "fields": {…}, "passages": 2} {"passage": …, "content": …, "text":
    …, "heading": …, "page": …, "start": …, "end": …, "gap": …, "vector": …} {"passage": …} {"end":
    1}

A vector is base64 of float32, little-endian. The last line counts the documents: a file without it
was cut. Whatever else a file holds is refused with its line, before any of the document reaches a
store.
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

from groundhook.handlers.kb.store import Incoming, Made, Passage
from groundhook.host.core.errors import HostError, StorageError, UsageError
from groundhook.host.core.types.base import well_formed
from groundhook.host.core.types.fields import LARGEST, FieldType, field_value

_VERSION = 1
# passages that are read in one turn of a thread, which takes longer to come by than to read one
_TOGETHER = 64
_LONGEST_LINE = 64 << 20  # characters
_PASSAGE = tuple(field.name for field in fields(Passage) if field.name != "vector")
_MADE = TypeAdapter(Made)

Counted = Annotated[int, Field(ge=0, le=LARGEST)]
Scalar = str | int | FiniteFloat | bool


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class _Head(_Line):
    """Begins a document."""

    document: str = Field(min_length=1)
    title: str
    fingerprint: str
    passages: int = Field(ge=1)
    tenant: str = ""
    url: str = ""
    bytes: Counted = 0
    fields: dict[str, Scalar | list[Scalar]] = {}
    source: str = ""


class _Piece(_Line):
    """A passage of it."""

    passage: str = Field(min_length=1)
    content: str
    text: str
    vector: str
    heading: str = ""
    page: Counted = 0
    start: Counted = 0
    end: Counted = 0
    gap: str = ""


Kind = TypeVar("Kind", bound=_Line)


def header(collection: str, made: Made) -> str:
    """The file's first line."""
    said = {field.name: getattr(made, field.name) for field in fields(Made)}
    return _json(
        [{"groundhook": "collection", "version": _VERSION, "collection": collection, "made": said}]
    )


def lines_of(document: Incoming) -> str:
    head = {**vars(document), "fields": dict(document.fields), "passages": len(document.passages)}
    return _json([head, *(_passage(each) for each in document.passages)])


def end(documents: int) -> str:
    """The file's last line."""
    return _json([{"end": documents}])


def _passage(passage: Passage) -> dict[str, Any]:
    return {
        **{name: getattr(passage, name) for name in _PASSAGE},
        "vector": base64.b64encode(passage.vector).decode("ascii"),
    }


def _json(lines: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


class Lines:
    """What a file holds, a few documents at a time. Raises UsageError for a file that is not one,
    with the line, and StorageError for one that was cut or cannot be read."""

    def __init__(self, file: IO[str]) -> None:
        self.name = str(getattr(file, "name", "the file"))
        self._number = 0
        self._file = file
        self._last: int | HostError | None = (
            None  # what came behind the documents that were handed out
        )

    async def made(self) -> Made:
        """What the collection was made with; to be read first."""
        first = await anyio.to_thread.run_sync(self._next)
        if first.get("groundhook") != "collection" or first.get("version") != _VERSION:
            raise UsageError(f"{self.name!r} is no collection that `groundhook kb export` wrote")
        said = first.get("made")
        known = (
            {field.name: said[field.name] for field in fields(Made) if field.name in said}
            if isinstance(said, dict)
            else said
        )
        try:
            return _MADE.validate_json(json.dumps(known), strict=True)
        except ValidationError as exc:
            raise self._foreign(_told(exc)) from exc

    async def next(self, made: Made, *, vectors: bool) -> list[Incoming] | int:
        """The next documents, for a collection that is made so (`vectors`: with these very ones);
        at the end of the file how many it says that it has. Those before a line that is refused are
        handed out first."""
        return await anyio.to_thread.run_sync(partial(self._documents, made, vectors=vectors))

    def _documents(self, made: Made, *, vectors: bool) -> list[Incoming] | int:
        read: list[Incoming] = []
        while self._last is None and sum(len(document.passages) for document in read) < _TOGETHER:
            try:
                found = self._document(made, vectors=vectors)
            except HostError as exc:
                self._last = exc
            else:
                if isinstance(found, Incoming):
                    read.append(found)
                else:
                    self._last = found
        if read or self._last is None:
            return read
        if isinstance(self._last, HostError):
            raise self._last
        return self._last

    def _document(self, made: Made, *, vectors: bool) -> Incoming | int:
        said = self._next()
        if set(said) == {"end"} and isinstance(said["end"], int):
            self._number += 1
            if self._readline():  # of a compressed file this holds all of it against its checksum
                raise self._foreign("more after its end")
            return int(said["end"])
        head = self._line(_Head, said)
        self._check(head, made)
        bytes_wanted = 4 * made.dimensions if vectors else None
        passages = tuple(self._piece(bytes_wanted) for _ in range(head.passages))
        return Incoming(**{**dict(head), "passages": passages})

    def _check(self, head: _Head, made: Made) -> None:
        """That the collection can have such a document."""
        if bool(head.tenant) != made.tenanted:
            own = (
                f"belongs to the tenant {head.tenant!r}" if head.tenant else "belongs to no tenant"
            )
            others = (
                "those of the collection all do"
                if made.tenanted
                else "the collection has no tenants"
            )
            raise UsageError(
                f"{self.name!r}, line {self._number}: {head.document!r} {own}, and {others}",
                hint="declare `tenant_field` as it was where the file was exported",
            )
        for name, type in made.fields.items():
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
            raise self._foreign(f"'vector': {exc}") from exc
        if bytes_wanted is not None and not _is_vector(vector, bytes_wanted):
            raise self._foreign(f"'vector' should have {bytes_wanted // 4} finite numbers")
        return Passage(**{**dict(piece), "vector": vector})

    def _line(self, kind: type[Kind], said: Mapping[str, Any]) -> Kind:
        try:
            return kind.model_validate(said)
        except ValidationError as exc:
            raise self._foreign(_told(exc)) from exc

    def _next(self) -> Mapping[str, Any]:
        self._number += 1
        line = self._readline()
        if not line.endswith("\n"):
            if len(line) == _LONGEST_LINE:
                raise self._foreign(f"more than {_LONGEST_LINE >> 20} million characters")
            raise StorageError(
                f"{self.name!r} was cut at line {self._number}",
                hint="export it again; what was read so far is added",
            )
        try:
            read: Mapping[str, Any] = json.loads(line)
        except (ValueError, RecursionError) as exc:
            raise self._foreign("no JSON") from exc
        if not isinstance(read, dict):
            raise self._foreign("no object")
        if ("\\ud" in line or "\\uD" in line) and well_formed(read) != read:
            raise self._foreign("half a character, which no text has")
        return read

    def _readline(self) -> str:
        try:
            return self._file.readline(_LONGEST_LINE)
        except (OSError, EOFError, UnicodeDecodeError, zlib.error) as exc:
            raise StorageError(
                f"{self.name!r} cannot be read from line {self._number} on: {exc}"
            ) from exc

    def _foreign(self, why: str) -> UsageError:
        return UsageError(
            f"{self.name!r} is no collection that `groundhook kb export` wrote (line"
            f" {self._number}: {why})"
        )


def _is_vector(vector: bytes, size: int) -> bool:
    if len(vector) != size:
        return False
    numbers = array("f")
    numbers.frombytes(vector)
    return all(map(math.isfinite, numbers))


def _told(exc: ValidationError) -> str:
    """The first thing that is wrong."""
    wrong = exc.errors(include_url=False, include_context=False, include_input=False)[0]
    path = ".".join(map(str, wrong["loc"]))
    return f"{path!r}: {wrong['msg']}" if path else wrong["msg"]
