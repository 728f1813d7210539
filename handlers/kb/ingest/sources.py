"""Turn the input of an add (files, folders, files of rows, a feed) into documents to build, a few
at a time.

The plain name of a document is its path below the given folder, with `/` between the parts, or
the name of a file that was given itself; its other name begins with the name of its folder.
`handlers.kb.ingest.identity` decides which of them is its id. The names of a row are
`<file>#<row>`; a document of a feed has its own.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import anyio
import anyio.to_thread

from groundhook.core.errors import IngestError
from groundhook.core.types.base import well_formed
from groundhook.core.types.documents import Reader
from groundhook.handlers.kb.reading.columns import Columns, RowDocument
from groundhook.handlers.kb.reading.files import failing_as, readable
from groundhook.handlers.kb.reading.readers import READERS
from groundhook.handlers.kb.reading.rows import FileRow, feed_rows, file_rows, has_rows

FEED = "-"  # in place of a path
UPLOAD = "upload:"  # source of the documents that clients have sent, whose files are not kept
FEED_NAME = "standard input"
MOST_UNREAD = 3  # files without a reader that the report names
_MOST_DOCUMENTS, _MOST_BYTES = 32, 128 << 10  # documents, and bytes, that one `take` returns


@dataclass(frozen=True)
class File:
    """A file that is one document, or many (`rows`). `index` is its position among all files,
    `document` the id for it if it is new, and `other` its other name ("": none), which is its id
    if it was stored with it, and may become so if it is `other_free`. `size` is in bytes, 0 if
    unknown. `uploaded`: a client has sent it."""

    index: int
    path: Path
    document: str
    size: int = 0
    error: str = ""
    other: str = ""
    other_free: bool = False
    uploaded: bool = False

    @property
    def rows(self) -> bool:
        return self.document == FEED or has_rows(self.path.name)

    @property
    def source(self) -> str:
        """The source that its documents are stored with."""
        if self.uploaded:
            return UPLOAD
        return FEED if self.document == FEED else str(make_absolute(self.path))


@dataclass(frozen=True)
class PlannedDocument:
    """A document to build: a file, or a row that was read. `document` and `other` are its names,
    as those of a file, and `error` is the reason if it cannot be built."""

    file: File
    document: str
    size: int
    row: RowDocument | None = None
    error: str = ""
    other: str = ""


@dataclass(frozen=True)
class Inputs:
    """The files of an add. `folders` were walked; `skipped` counts their files without a reader,
    `unread` are the first of them. `closed` are files and folders that could not be read; `linked`
    are links to folders, which are not followed."""

    files: tuple[File, ...]
    folders: tuple[Path, ...]
    skipped: int
    unread: tuple[str, ...] = ()
    closed: tuple[Path, ...] = ()
    linked: tuple[str, ...] = ()

    def as_uploaded(self) -> Inputs:
        """Return the files as those that a client has sent in a folder that is not kept: their only
        name is the path below it."""
        files = (replace(file, other="", other_free=False, uploaded=True) for file in self.files)
        return replace(self, files=tuple(files))


def find_inputs(
    paths: Sequence[Path],
    *,
    feed: bool,
    readers: Mapping[str, Reader] = READERS,
    exclude: Sequence[str] = (),
) -> Inputs:
    """Return the files to add, sorted within each path, and the feed if there is one. From folders
    come the files that `readers` or the reader of rows can read, without those that `exclude`
    names: patterns of a file's or folder's name, or of a path below the folder if they have a
    `/`."""
    files: list[File] = []
    folders: list[Path] = []
    closed: list[Path] = []
    linked: list[str] = []
    skipped = 0
    unread: list[str] = []
    taken: dict[str, Path] = {}
    for given in paths:
        in_folder = os.path.isdir(given)  # noqa: PTH112
        if in_folder and _is_unicode(given):
            folders.append(make_absolute(given))
        for path, document, reason in (
            _walk(given, linked, exclude) if in_folder else _single(given)
        ):
            if reason:
                closed.append(make_absolute(path))
                shown = well_formed(str(path))
                error = f"{shown!r} cannot be read: {reason} (its documents stay in the collection)"
                files.append(File(len(files), Path(shown), well_formed(document), error=error))
            elif in_folder and not readable(path.name, readers):
                skipped += 1
                if len(unread) < MOST_UNREAD:
                    unread.append(well_formed(document))
            elif not _is_unicode(path):
                name = well_formed(str(path))
                error = f"{name!r} was not added: its name is not UTF-8 (rename it)"
                files.append(File(len(files), Path(name), well_formed(document), error=error))
            elif new := _name_of(given if in_folder else given.parent, path, document, taken):
                files.append(_file_of(len(files), path, *new))
    files = [replace(file, other_free=file.other not in taken) for file in files]
    if feed:
        files.append(File(len(files), Path(FEED_NAME), FEED))
    return Inputs(
        tuple(files), tuple(folders), skipped, tuple(unread), tuple(closed), tuple(linked)
    )


def _is_excluded(path: str, patterns: Sequence[str]) -> bool:
    parts = path.split("/")
    above = ["/".join(parts[: at + 1]) for at in range(len(parts))]
    return any(
        fnmatchcase(name, pattern.strip("/"))
        for pattern in patterns
        for name in (above if "/" in pattern.strip("/") else parts)
    )


def same_file(one: str, other: str) -> bool:
    """Return whether two paths are one file, also through a link to its folder. A link to a file is
    a file of its own."""
    return one == other or (
        os.path.basename(one) == os.path.basename(other)  # noqa: PTH119
        and os.path.realpath(os.path.dirname(one)) == os.path.realpath(os.path.dirname(other))  # noqa: PTH120
    )


class SeenIds:
    """The ids of an add. SQLite moves them to a temporary file when there are many."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ids = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._ids.execute("create table seen (id text primary key) without rowid")

    def close(self) -> None:
        self._ids.close()

    def add(self, id: str) -> bool:
        """Add an id; return whether it is new."""
        with self._lock:
            return self._ids.execute("insert or ignore into seen values (?)", [id]).rowcount == 1

    def note(self, tenant: str | None, id: str) -> None:
        """Note that a document exists. Its tenant is unknown (None) if it could not be read."""
        self.add(_key(tenant, id))

    def document(self, tenant: str, id: str) -> bool:
        """Return whether a document of this tenant, or of an unknown one, exists."""
        with self._lock:
            either = [_key(tenant, id), _key(None, id)]
            return (
                self._ids.execute("select 1 from seen where id in (?, ?)", either).fetchone()
                is not None
            )


class ItemSupply:
    """Hands out the documents to build to any number of concurrent takers, each document once.
    `tenant_field` is the column that names a row's tenant: each tenant has ids of its own."""

    def __init__(
        self,
        files: Sequence[File],
        columns: Columns,
        seen: SeenIds,
        feed: BinaryIO | None,
        tenant_field: str = "",
    ) -> None:
        # index of a file of rows that could not be read to its end → the reason
        self.broken: dict[int, str] = {}
        self._columns = columns
        self._seen = seen
        self._feed = feed
        self._tenant_field = tenant_field
        self._items = self._iterate(files)
        self._taking = anyio.Lock()

    async def take(self) -> list[PlannedDocument]:
        """Return the next documents; an empty list at the end."""
        async with self._taking:
            return await anyio.to_thread.run_sync(self._next)

    def _next(self) -> list[PlannedDocument]:
        taken: list[PlannedDocument] = []
        size = 0
        for item in islice(self._items, _MOST_DOCUMENTS):
            taken.append(item)
            size += item.size
            if size >= _MOST_BYTES:
                break
        return taken

    def _iterate(self, files: Sequence[File]) -> Iterator[PlannedDocument]:
        for file in files:
            if file.rows and not file.error:
                yield from self._rows(file)
            else:
                self._seen.add(file.document)
                yield PlannedDocument(
                    file, file.document, file.size, error=file.error, other=file.other
                )

    def _rows(self, file: File) -> Iterator[PlannedDocument]:
        rows = (
            feed_rows(self._feed, FEED_NAME)
            if self._feed and file.document == FEED
            else file_rows(file.path)
        )
        try:
            with failing_as(f"{str(file.path)!r} was not added from here on"):
                for row in rows:
                    yield self._row(file, row)
        except IngestError as exc:
            self.broken[file.index] = str(exc)

    def _row(self, file: File, row: FileRow) -> PlannedDocument:
        name = str(file.path)
        try:
            with failing_as(f"{name}:{row.line}: the row was not added"):
                made = self._columns.document(row, name)
        except IngestError as exc:
            return PlannedDocument(file, "", row.size, error=str(exc))
        id = made.id if file.document == FEED else f"{file.document}#{made.id}"
        named = made.document.fields.get(self._tenant_field)
        tenant = "" if named is None or named.value is None else str(named.value).strip()
        if not self._seen.add(_key(tenant, id)) and made.own_id:
            return PlannedDocument(
                file, id, row.size, error=f"{name}:{row.line}: another row has the id {made.id!r}"
            )
        other = f"{file.other}#{made.id}" if file.other else ""
        return PlannedDocument(file, id, row.size, made, other=other)


def _key(tenant: str | None, id: str) -> str:
    return f"\0{'?' if tenant is None else f'={tenant}'}\0{id}"


def _is_unicode(path: Path) -> bool:
    """Return whether the path is valid Unicode, which stored ids have to be."""
    name = str(path.absolute())
    return bool(well_formed(name) == name)


def make_absolute(path: Path) -> Path:
    """Return the absolute path without `..`, so that a folder is the same source from wherever it
    is named."""
    full = path.absolute()
    if ".." not in full.parts:
        return full
    plain = Path(os.path.normpath(full))
    try:
        # After a link, `..` is the parent of the link's target.
        return plain if plain.samefile(full) else full
    except OSError:
        return plain


def _name_of(
    folder: Path, path: Path, plain: str, taken: dict[str, Path]
) -> tuple[str, str, str] | None:
    """Enter a file among those `taken` and return its name, its other name, and the error if other
    files have both; None for a file that is taken already."""
    above = unicodedata.normalize("NFC", make_absolute(folder).name)
    full = f"{above}/{plain}" if above else ""
    own = str(make_absolute(path))
    for name, other in ((plain, full), (full, plain)):
        if name and name not in taken:
            taken[name] = path
            return name, other, ""
        if name and same_file(str(make_absolute(taken[name])), own):
            return None
    error = f"{str(path)!r} was not added: {plain!r} is the id of {str(taken[plain])!r}"
    return plain, "", f"{error} (add the folder that holds both)"


def _file_of(index: int, path: Path, document: str, other: str, error: str) -> File:
    if error:
        return File(index, path, document, error=error)
    try:
        known = path.stat()
    except OSError as exc:
        return File(
            index, path, document, error=f"{str(path)!r} cannot be read: {exc.strerror or exc}"
        )
    if not stat.S_ISREG(known.st_mode):  # reading a pipe may block for ever
        error = (
            f"{str(path)!r} was not added: it is a pipe or a device, not a file (JSON may be piped"
            " into `-`)"
        )
        return File(index, path, document, error=error)
    return File(index, path, document, known.st_size, other=other)


def _single(given: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield a file that was given itself."""
    yield given, unicodedata.normalize("NFC", given.name), ""


def _walk(
    given: Path, linked: list[str], exclude: Sequence[str]
) -> Iterator[tuple[Path, str, str]]:
    """Yield (path, id, "") of the files of a folder, and (path, id, reason) of folders that cannot
    be read. Hidden files and folders are omitted; so are links to folders, which are entered in
    `linked`."""
    failed: list[OSError] = []
    for folder, folders, names in os.walk(given, onerror=failed.append):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        inner = (Path(folder, name) for name in folders)
        linked += [_id(given, path) for path in inner if os.path.islink(path)]  # noqa: PTH114
        for name in sorted(names):
            if not name.startswith("."):
                path = Path(folder, name)
                if not _is_excluded(_id(given, path), exclude):
                    yield path, _id(given, path), ""
    for error in failed:
        path = Path(error.filename)
        yield path, _id(given, path), error.strerror or str(error)


def _id(given: Path, path: Path) -> str:
    return unicodedata.normalize("NFC", path.relative_to(given).as_posix())
