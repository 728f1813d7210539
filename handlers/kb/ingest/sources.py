"""What an add is given (files, folders, files of rows, a feed) as documents to be made, a few at a
time, however many they are.

A document's id is its path below the folder that was named, with `/` between the parts, or the name
of a file that was named itself; that of a row is `<file>#<row>`; that of a feed's document is its
own. Two documents of one id in one add are told.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import anyio
import anyio.to_thread

from groundhook.handlers.kb.reading.columns import Columns, RowDocument
from groundhook.handlers.kb.reading.files import readable, told_as
from groundhook.handlers.kb.reading.readers import READERS
from groundhook.handlers.kb.reading.rows import Row, feed_rows, file_rows, has_rows
from groundhook.host.core.errors import IngestError
from groundhook.host.core.types.base import well_formed
from groundhook.host.core.types.documents import Reader

FEED = "-"  # in the place of a path
FEED_NAME = "standard input"
MOST_UNREAD = 3  # files of kinds that cannot be read that are named
_TOGETHER, _LARGEST = 32, 128 << 10  # documents, and bytes, that are taken at once


@dataclass(frozen=True)
class File:
    """Something that was found: a document, or many (`rows`). `index` is its place among all;
    `size` in bytes, 0 if not known."""

    index: int
    path: Path
    document: str
    size: int = 0
    error: str = ""

    @property
    def rows(self) -> bool:
        return self.document == FEED or has_rows(self.path.name)

    @property
    def source(self) -> str:
        """Where its documents come from."""
        return FEED if self.document == FEED else str(absolute(self.path))


@dataclass(frozen=True)
class Item:
    """A document to be made: a file, or a row that was read. `error` says why there is none."""

    file: File
    document: str
    size: int
    row: RowDocument | None = None
    error: str = ""


@dataclass(frozen=True)
class Found:
    """`skipped` files of the folders are of kinds that cannot be read, `unread` the first of them;
    `folders` are those that were walked. Of `closed` ones what is in them could not be told;
    `linked` are links to folders, which are not followed."""

    files: tuple[File, ...]
    folders: tuple[Path, ...]
    skipped: int
    unread: tuple[str, ...] = ()
    closed: tuple[Path, ...] = ()
    linked: tuple[str, ...] = ()


def found(paths: Sequence[Path], *, feed: bool, readers: Mapping[str, Reader] = READERS) -> Found:
    """The files to add, sorted within each path, and the feed where there is one. Of folders, files
    that `readers` or rows can read."""
    files: list[File] = []
    folders: list[Path] = []
    closed: list[Path] = []
    linked: list[str] = []
    skipped = 0
    unread: list[str] = []
    taken: dict[str, Path] = {}
    for given in paths:
        in_folder = os.path.isdir(given)  # noqa: PTH112
        if in_folder and _is_text(given):
            folders.append(absolute(given))
        for path, document, reason in _walked(given, linked) if in_folder else _alone(given):
            if reason:
                closed.append(absolute(path))
                shown = well_formed(str(path))
                error = f"{shown!r} cannot be read: {reason} (documents that came from it stay)"
                files.append(File(len(files), Path(shown), well_formed(document), error=error))
            elif in_folder and not readable(path.name, readers):
                skipped += 1
                if len(unread) < MOST_UNREAD:
                    unread.append(well_formed(document))
            elif not _is_text(path):
                name = well_formed(str(path))
                error = f"{name!r} was not added: its name is not UTF-8 (rename it)"
                files.append(File(len(files), Path(name), well_formed(document), error=error))
            elif document not in taken:
                taken[document] = path
                files.append(_sized(len(files), path, document))
            elif os.path.realpath(taken[document]) != os.path.realpath(path):
                other = f"{document!r} is the id of {str(taken[document])!r}"
                error = f"{str(path)!r} was not added: {other} (add the folder that holds both)"
                files.append(File(len(files), path, document, error=error))
    if feed:
        files.append(File(len(files), Path(FEED_NAME), FEED))
    return Found(tuple(files), tuple(folders), skipped, tuple(unread), tuple(closed), tuple(linked))


class Seen:
    """The ids that an add has met, on the disk where they are many."""

    def __init__(self) -> None:
        self._one = threading.Lock()
        self._ids = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._ids.execute("create table seen (id text primary key) without rowid")

    def close(self) -> None:
        self._ids.close()

    def add(self, id: str) -> bool:
        """Whether the id is new."""
        with self._one:
            return self._ids.execute("insert or ignore into seen values (?)", [id]).rowcount == 1

    def note(self, tenant: str | None, id: str) -> None:
        """A document that is there; of which tenant is not known (None) where it could not be
        read."""
        self.add(_key(tenant, id))

    def document(self, tenant: str, id: str) -> bool:
        """Whether a document of this tenant is there, or one of which that is not known."""
        with self._one:
            either = [_key(tenant, id), _key(None, id)]
            return (
                self._ids.execute("select 1 from seen where id in (?, ?)", either).fetchone()
                is not None
            )


class Supply:
    """Hands out what is to be made to any number of takers, each piece once."""

    def __init__(
        self, files: Sequence[File], columns: Columns, seen: Seen, feed: BinaryIO | None
    ) -> None:
        self.broken: dict[
            int, str
        ] = {}  # files of rows that could not be read to their end, and why
        self._columns = columns
        self._seen = seen
        self._feed = feed
        self._items = self._all(files)
        self._taking = anyio.Lock()

    async def take(self) -> list[Item]:
        """The next documents; none when there are no more."""
        async with self._taking:
            return await anyio.to_thread.run_sync(self._next)

    def _next(self) -> list[Item]:
        taken: list[Item] = []
        size = 0
        for item in islice(self._items, _TOGETHER):
            taken.append(item)
            size += item.size
            if size >= _LARGEST:
                break
        return taken

    def _all(self, files: Sequence[File]) -> Iterator[Item]:
        for file in files:
            if file.rows and not file.error:
                yield from self._rows(file)
            else:
                self._seen.add(file.document)
                yield Item(file, file.document, file.size, error=file.error)

    def _rows(self, file: File) -> Iterator[Item]:
        rows = (
            feed_rows(self._feed, FEED_NAME)
            if self._feed and file.document == FEED
            else file_rows(file.path)
        )
        try:
            with told_as(f"{str(file.path)!r} was not added from here on"):
                for row in rows:
                    yield self._row(file, row)
        except IngestError as exc:
            self.broken[file.index] = str(exc)

    def _row(self, file: File, row: Row) -> Item:
        name = str(file.path)
        try:
            with told_as(f"{name}:{row.line}: the row was not added"):
                made = self._columns.document(row, name)
        except IngestError as exc:
            return Item(file, "", row.size, error=str(exc))
        id = made.id if file.document == FEED else f"{file.document}#{made.id}"
        if not self._seen.add(id) and made.own_id:
            return Item(
                file, id, row.size, error=f"{name}:{row.line}: another row has the id {made.id!r}"
            )
        return Item(file, id, row.size, made)


def _key(tenant: str | None, id: str) -> str:
    return f"\0{'?' if tenant is None else f'={tenant}'}\0{id}"


def _is_text(path: Path) -> bool:
    """Whether what a file and its folders are called can be written down."""
    name = str(path.absolute())
    return bool(well_formed(name) == name)


def absolute(path: Path) -> Path:
    """Where a file is, without `..`: a folder is not another one when it is named from
    elsewhere."""
    whole = path.absolute()
    if ".." not in whole.parts:
        return whole
    plain = Path(os.path.normpath(whole))
    try:
        return (
            plain if plain.samefile(whole) else whole
        )  # behind a link, `..` leads elsewhere than it reads
    except OSError:
        return plain


def _sized(index: int, path: Path, document: str) -> File:
    try:
        known = path.stat()
    except OSError as exc:
        return File(
            index, path, document, error=f"{str(path)!r} cannot be read: {exc.strerror or exc}"
        )
    if not stat.S_ISREG(known.st_mode):  # reading a pipe may wait for ever
        error = (
            f"{str(path)!r} was not added: it is no file, but a pipe or a device (JSON may be piped"
            " into `-`)"
        )
        return File(index, path, document, error=error)
    return File(index, path, document, known.st_size)


def _alone(given: Path) -> Iterator[tuple[Path, str, str]]:
    """A file that was named itself."""
    yield given, unicodedata.normalize("NFC", given.name), ""


def _walked(given: Path, linked: list[str]) -> Iterator[tuple[Path, str, str]]:
    """Files of a folder with their ids, and folders that cannot be read with the reason. Hidden
    files and folders are left out; links to folders are, too, and entered in `linked`."""
    failed: list[OSError] = []
    for folder, folders, names in os.walk(given, onerror=failed.append):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        inner = (Path(folder, name) for name in folders)
        linked += [_id(given, path) for path in inner if os.path.islink(path)]  # noqa: PTH114
        for name in sorted(names):
            if not name.startswith("."):
                path = Path(folder, name)
                yield path, _id(given, path), ""
    for error in failed:
        path = Path(error.filename)
        yield path, _id(given, path), error.strerror or str(error)


def _id(given: Path, path: Path) -> str:
    return unicodedata.normalize("NFC", path.relative_to(given).as_posix())
