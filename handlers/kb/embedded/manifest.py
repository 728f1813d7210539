"""The list of a collection's documents: a small SQLite file beside the vectors, which decides what
documents are visible.

Each version of a document is a generation: `pending` while its points are written, `live` once it
is committed, `dead` when another took its place and its points are still to be removed. A commit is
one SQLite transaction. Versions that are pending or dead when the file is opened were left by a
process that was killed; their points are removed.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from groundhook.core.errors import StorageError
from groundhook.handlers.kb.balance import Sum, Sums, add_sums, format_sums, parse_sums
from groundhook.handlers.kb.store.points import language_sums
from groundhook.handlers.kb.store.port import DocumentRecord, FullDocument

_SCHEMA = """
create table if not exists generations (
    id integer primary key autoincrement,
    state text not null check (state in ('pending', 'live', 'dead')),
    tenant text not null, document text not null, title text not null, url text not null,
    fingerprint text not null, chunks integer not null, bytes integer not null,
    source text not null default '',
    languages text not null default ''
);
create table if not exists languages (sums text not null);
create unique index if not exists one_live on generations (tenant, document) where state = 'live';
"""
_COLUMNS = "document, tenant, title, url, fingerprint, chunks, bytes, source"
_GIVEN = "tenant, document, title, url, fingerprint, bytes, source, chunks, languages"
# A version that an earlier Groundhook entered, which did not store languages.
_WITHOUT_LANGUAGES = "select 1 from generations where state = 'live' and languages = '' limit 1"
_ENTER = f"insert into generations (state, {_GIVEN}) values ('pending', {', '.join('?' * 9)})"


class ManifestEntry:
    """A document to enter. `languages`: what its passages add to the sums of their languages."""

    def __init__(self, document: FullDocument, usual: str) -> None:
        self.tenant, self.document, self.title, self.url = (
            document.tenant,
            document.document,
            document.title,
            document.url,
        )
        self.chunks = len(document.passages)
        self.languages = language_sums(document, usual)
        self._rest = (document.fingerprint, document.bytes, document.source)

    def values(self) -> tuple[str | int, ...]:
        """Return the values of the row, in the order of `_GIVEN`."""
        return (
            self.tenant,
            self.document,
            self.title,
            self.url,
            *self._rest,
            self.chunks,
            format_sums(self.languages),
        )


def has_languages(path: Path) -> bool:
    """Return whether the languages of all live versions are stored; usable from any process. Raises
    StorageError."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as db:
            return "languages" in _columns(db) and not db.execute(_WITHOUT_LANGUAGES).fetchone()
    except sqlite3.Error as exc:
        raise _unusable(path, exc) from exc


def _columns(db: sqlite3.Connection) -> set[str]:
    return {row[1] for row in db.execute("pragma table_info(generations)")}


def _unusable(path: Path, exc: sqlite3.Error) -> StorageError:
    return StorageError(f"the list of documents {str(path)!r} cannot be used: {exc}")


class Manifest:
    """The list of one collection's documents. Used by one thread of one process. Raises
    StorageError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._translate_errors():
            self._db = sqlite3.connect(path, isolation_level=None)
            try:
                self._read()
            except BaseException:
                self._db.close()
                raise

    def _read(self) -> None:
        # A power cut may take back the last commits, never a part of one; a killed process takes
        # back none.
        self._db.executescript(f"pragma journal_mode = wal; pragma synchronous = normal; {_SCHEMA}")
        columns = _columns(self._db)
        for column in ("source", "languages"):  # which earlier versions did not have
            if column not in columns:
                self._db.execute(
                    f"alter table generations add column {column} text not null default ''"
                )
        self.hidden = {
            row[0] for row in self._db.execute("select id from generations where state != 'live'")
        }
        live = self._db.execute(
            "select id, document, title, url, chunks from generations where state = 'live'"
        )
        self.chunks = 0
        self.divided = 0  # documents of several passages
        self.languages = self._languages()
        self._pending: dict[int, ManifestEntry] = {}  # of those that this process has begun
        self._shown: dict[int, tuple[str, str, str]] = {}
        for id, document, title, url, chunks in live:
            self._shown[id] = (document, title, url)
            self._count(chunks)

    def close(self) -> None:
        self._db.close()

    def begin(self, documents: Sequence[ManifestEntry]) -> list[int]:
        """Enter versions whose points are about to be written. Returns their generations, which are
        hidden until `commit`."""
        begun: dict[int, ManifestEntry] = {}
        with self._translate_errors(), self._db:
            self._db.execute("begin immediate")
            for entered in documents:
                id = self._db.execute(_ENTER, entered.values()).lastrowid
                assert id is not None
                begun[id] = entered
        self.hidden.update(begun)
        self._pending.update(begun)
        return [*begun]

    def commit(self, generations: Sequence[int]) -> list[bool]:
        """Show versions in place of their predecessors, in one step. Returns for each whether it
        had one."""
        shown = {generation: self._pending[generation] for generation in generations}
        replaced: dict[int, int | None] = {}
        with self._translate_errors(), self._db:
            self._db.execute("begin immediate")
            for generation, entered in shown.items():
                replaced[generation] = old = self._live(entered.tenant, entered.document)
                if old is not None:
                    self._db.execute("update generations set state = 'dead' where id = ?", [old])
                self._db.execute("update generations set state = 'live' where id = ?", [generation])
            now = self._updated_sums([*filter(None, replaced.values())], shown.values())
        self.languages = now
        for generation, entered in shown.items():
            del self._pending[generation]
            self.hidden.discard(generation)
            self._shown[generation] = (entered.document, entered.title, entered.url)
            self._count(entered.chunks)
        for old in filter(None, replaced.values()):
            self._hide(old)
        return [old is not None for old in replaced.values()]

    @property
    def last_synced(self) -> int:
        """The newest version such that its points and those of all earlier ones are on the
        disk."""
        with self._translate_errors():
            found: int = self._db.execute("pragma user_version").fetchone()[0]
        return found

    def sync(self) -> None:
        """Record that the points of all live versions are on the disk."""
        with self._translate_errors():
            self._db.execute(f"pragma user_version = {max(self._shown, default=0)}")

    def unsynced_versions(self) -> dict[int, int]:
        """Return live versions whose points may not have reached the disk before a power failure,
        with their numbers of points."""
        with self._translate_errors():
            rows = self._db.execute(
                "select id, chunks from generations where state = 'live' and id > ?",
                [self.last_synced],
            )
            return dict(rows.fetchall())

    def hide_lost(self, generation: int) -> None:
        """Hide a live version whose points are lost, so that its document counts as missing."""
        with self._translate_errors(), self._db:
            self._db.execute("begin immediate")
            self._db.execute("update generations set state = 'dead' where id = ?", [generation])
            now = self._updated_sums([generation])
        self.languages = now
        self._hide(generation)

    @property
    def generations(self) -> frozenset[int]:
        """The live versions."""
        return frozenset(self._shown)

    def drop(self, documents: Sequence[tuple[str, str]]) -> None:
        """Hide documents, given as (tenant, document)."""
        with self._translate_errors(), self._db:
            self._db.execute("begin immediate")
            gone = [
                id
                for tenant, document in documents
                if (id := self._live(tenant, document)) is not None
            ]
            self._db.executemany(
                "update generations set state = 'dead' where id = ?", [[id] for id in gone]
            )
            now = self._updated_sums(gone)
        self.languages = now
        for id in gone:
            self._hide(id)

    def relocate(self, tenant: str, places: Mapping[str, Sequence[str]]) -> None:
        """Give live documents other urls and sources."""
        for document, (url, source) in places.items():
            id = self._live(tenant, document)
            if id is not None:
                with self._translate_errors():
                    self._db.execute(
                        "update generations set url = ?, source = ? where id = ?", [url, source, id]
                    )
                self._shown[id] = (*self._shown[id][:2], url)

    def forget(self, generations: Sequence[int]) -> None:
        """Delete hidden versions whose points were removed."""
        with self._translate_errors(), self._db:
            self._db.execute("begin immediate")
            self._db.executemany(
                "delete from generations where id = ? and state != 'live'",
                [[id] for id in generations],
            )
        self.hidden.difference_update(generations)
        for generation in generations:
            self._pending.pop(generation, None)

    def document_info(self, generation: int) -> tuple[str, str, str]:
        """Return (document, title, url) of a live version."""
        return self._shown[generation]

    def find_live(self, tenant: str, document: str) -> tuple[int, int] | None:
        """Return (generation, chunks) of a live document."""
        with self._translate_errors():
            row = self._db.execute(
                "select id, chunks from generations where state = 'live' and tenant = ? and"
                " document = ?",
                [tenant, document],
            ).fetchone()
        return (row[0], row[1]) if row else None

    def document(self, generation: int) -> DocumentRecord:
        """Return the document of a version."""
        with self._translate_errors():
            row = self._db.execute(
                f"select {_COLUMNS} from generations where id = ?", [generation]
            ).fetchone()
        return DocumentRecord(**dict(zip(_COLUMNS.split(", "), row, strict=True)))

    def document_records(
        self,
        tenant: str | None,
        *,
        documents: Sequence[str] | None = None,
        source: str = "",
        after: Sequence[str] = ("", ""),
        limit: int = -1,
    ) -> list[DocumentRecord]:
        """Return live documents, ordered by tenant and id: those of a tenant (None: of all), with
        these ids (None: with any), whose source is a file or is in a folder ("": any), that come
        `after` a (tenant, id), and at most `limit` (-1: all)."""
        values: list[Any] = [*after]
        where = ["state = 'live'", "(tenant, document) > (?, ?)"]
        if tenant is not None:
            where.append("tenant = ?")
            values.append(tenant)
        if documents is not None:
            where.append("document in (select value from json_each(?))")
            values.append(json.dumps(list(documents)))
        if source:
            where.append("(source = ? or substr(source, 1, ?) = ?)")
            values += [source, len(source) + 1, f"{source}/"]
        with self._translate_errors():
            sql = (
                f"select {_COLUMNS} from generations where {' and '.join(where)} order by tenant,"
                f" document limit {limit:d}"
            )
            rows: list[tuple[Any, ...]] = self._db.execute(sql, values).fetchall()
        names = _COLUMNS.split(", ")
        return [DocumentRecord(**dict(zip(names, row, strict=True))) for row in rows]

    def _live(self, tenant: str, document: str) -> int | None:
        row = self._db.execute(
            "select id from generations where state = 'live' and tenant = ? and document = ?",
            [tenant, document],
        ).fetchone()
        return row[0] if row else None

    def _hide(self, generation: int) -> None:
        self.hidden.add(generation)
        self._shown.pop(generation, None)
        [chunks] = self._db.execute(
            "select chunks from generations where id = ?", [generation]
        ).fetchone()
        self._count(-chunks)

    def _count(self, chunks: int) -> None:
        self.chunks += chunks
        self.divided += (chunks > 1) - (chunks < -1)

    def _languages(self) -> Sums | None:
        """Return the sums of all live versions; None if the languages of some are unknown."""
        if self._db.execute(_WITHOUT_LANGUAGES).fetchone():
            return None
        kept = self._db.execute("select sums from languages").fetchone()
        return {
            language: Sum(passages, total)
            for language, (passages, total) in (json.loads(kept[0]) if kept else {}).items()
        }

    def _updated_sums(self, gone: Sequence[int], come: Iterable[ManifestEntry] = ()) -> Sums | None:
        """Return and store the sums of all live versions after a change; part of a transaction."""
        if self.languages is None:
            return None
        now = self.languages
        for id in gone:
            row = self._db.execute("select languages from generations where id = ?", [id])
            now = add_sums(now, parse_sums(row.fetchone()[0]), -1)
        for entered in come:
            now = add_sums(now, entered.languages)
        self._db.execute("delete from languages")
        self._db.execute("insert into languages values (?)", [json.dumps(now)])
        return now

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as exc:
            raise _unusable(self._path, exc) from exc
