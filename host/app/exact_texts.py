"""The exact texts of the documents of toolkits, stored in a file of their own.

The knowledge base stores passages, which lack the blanks at the ends of a text and some of its line
breaks. A text is valid while it has the same letters as the passages: another program may have
replaced the document meanwhile. If several hosts share a Qdrant server, each has only the texts
that it stored itself.
"""

from __future__ import annotations

import json
import re
import sqlite3
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from anyio import to_thread

from groundhook.core.types.collection_queries import CollectionDocument
from groundhook.host.chats.storage.sqlite_file import SqliteFile

T = TypeVar("T")

FILE = "texts.sqlite"
BUSY_MS = 10_000
_NO_LETTERS = re.compile(r"[\W_]+")
_TABLE = (
    "create table if not exists texts (collection text, tenant text, document text, content blob,"
    " primary key (collection, tenant, document)) without rowid"
)


class ExactTexts:
    """The texts in one state folder. The file is created by the first text. Every call may
    raise StorageError."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._file = SqliteFile(self._path, f"the texts {FILE!r}", self._prepare, busy_ms=BUSY_MS)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    async def put(self, collection: str, documents: Sequence[CollectionDocument]) -> None:
        """Store the texts of documents."""
        rows = [
            (collection, each.tenant, each.id, each.text.encode("utf-8", "surrogatepass"))
            for each in documents
        ]

        def write(db: sqlite3.Connection) -> None:
            db.executemany("insert or replace into texts values (?, ?, ?, ?)", rows)

        await to_thread.run_sync(self._change, write)

    async def get(self, collection: str, tenant: str, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the stored texts, by document."""
        if not self._path.exists():
            return {}

        def read(db: sqlite3.Connection) -> dict[str, str]:
            query = (
                "select document, content from texts where collection = ? and tenant = ?"
                " and document in (select value from json_each(?))"
            )
            found = db.execute(query, (collection, tenant, json.dumps(list(ids))))
            return {id: content.decode("utf-8", "surrogatepass") for id, content in found}

        return await to_thread.run_sync(self._read, read)

    async def remove(self, collection: str, tenant: str, ids: Sequence[str] | None) -> None:
        """Remove the texts of documents, or of all (None) of a tenant ("": of all tenants)."""
        if not self._path.exists():
            return

        def delete(db: sqlite3.Connection) -> None:
            if ids is None:
                query = "delete from texts where collection = ? and (? = '' or tenant = ?)"
                db.execute(query, (collection, tenant, tenant))
                return
            query = "delete from texts where collection = ? and tenant = ? and document = ?"
            db.executemany(query, [(collection, tenant, id) for id in ids])

        await to_thread.run_sync(self._change, delete)
        await to_thread.run_sync(self._empty_log)

    def _read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        with self._file.connection() as db:
            return read(db)

    def _change(self, change: Callable[[sqlite3.Connection], None]) -> None:
        with self._file.writing() as db:
            change(db)

    def _empty_log(self) -> None:
        """Empty the write-ahead log, which still has the texts that were removed."""
        with self._file.connection() as db:
            db.execute("pragma wal_checkpoint(truncate)")

    def _prepare(self, db: sqlite3.Connection) -> None:
        db.execute("pragma secure_delete = on")  # overwrites removed texts in the file
        self._file.enable_wal(db)
        db.execute(_TABLE)


def same_letters(one: str, other: str) -> bool:
    """Return whether two texts have the same letters: they may differ in blanks, punctuation and
    Unicode form."""
    return one == other or _keep_letters(one) == _keep_letters(other)


def _keep_letters(text: str) -> str:
    return _NO_LETTERS.sub("", unicodedata.normalize("NFC", text))
