"""The state of syncs in a SQLite file: for each toolkit its last syncs, its checkpoint, and its
records with the documents made of them.

A record's documents are entered before they are put into the index, and removed after they were
removed there, so that the file has every document even if the process is killed in between. The
file is readable by its owner only.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from groundhook.core.errors import StorageError
from groundhook.core.types.sync import SyncMode, SyncStatus

VERSION = 1
BUSY_S = 10.0
_SCHEMA = f"""
begin immediate;
create table if not exists syncs (
    toolkit text primary key, source text not null default '',
    watermark text not null default '', listed_at text not null default '',
    listed_run integer not null default 0,
    succeeded_at text not null default '', failed_at text not null default '',
    error text not null default '', run integer not null default 0,
    mode text not null default '', position text not null default '',
    begun_at text not null default '', next_watermark text not null default ''
) without rowid;
create table if not exists records (
    toolkit text not null, id text not null, digest text not null, documents text not null,
    run integer not null, primary key (toolkit, id)
) without rowid;
pragma user_version = {VERSION};
commit;
"""

DocumentPlace = tuple[str, str]  # a collection and a tenant
Places = Mapping[DocumentPlace, Sequence[str]]  # → ids of documents


@dataclass(frozen=True, kw_only=True)
class Known:
    """A record that was read before: its digest ("" while its documents are being put), where its
    documents are, and the number of the sync that read it last."""

    digest: str
    documents: Places
    run: int = 0


@dataclass(frozen=True, kw_only=True)
class SyncRun:
    """A sync that has begun. `watermark` becomes the toolkit's when it ends."""

    number: int
    mode: SyncMode
    position: str
    begun_at: str
    watermark: str


@dataclass(frozen=True, kw_only=True)
class Past:
    """The state that earlier syncs of a toolkit left. `run`: one that was interrupted."""

    source: str
    watermark: str
    listed_at: str
    run: SyncRun | None


class SyncState:
    """The state in the file `path`, created by the first use. Every call is one transaction and
    raises StorageError. One caller uses it at a time, from any thread, and closes it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    def status(self, toolkit: str) -> SyncStatus:
        """Return the state of a toolkit's syncs; `running` is not set."""
        if not self._path.exists():
            return SyncStatus(toolkit=toolkit)
        with self._transaction() as db:
            found = db.execute(
                "select succeeded_at, listed_at, failed_at, error, mode from syncs where"
                " toolkit = ?",
                [toolkit],
            ).fetchone()
            if found is None:
                return SyncStatus(toolkit=toolkit)
            succeeded, listed, failed, error, mode = found
            return SyncStatus(
                toolkit=toolkit,
                records=_count(db, toolkit),
                succeeded_at=succeeded,
                listed_at=listed,
                failed_at=failed,
                error=error,
                interrupted=bool(mode),
            )

    def past(self, toolkit: str) -> Past:
        """Return the state that the next sync continues from."""
        with self._transaction() as db:
            row = db.execute(
                "select source, watermark, listed_at, run, mode, position, begun_at,"
                " next_watermark from syncs where toolkit = ?",
                [toolkit],
            ).fetchone()
        if row is None:
            return Past(source="", watermark="", listed_at="", run=None)
        source, watermark, listed_at, number, mode, position, begun_at, next_watermark = row
        run = SyncRun(
            number=number,
            mode=mode,
            position=position,
            begun_at=begun_at,
            watermark=next_watermark,
        )
        return Past(
            source=source, watermark=watermark, listed_at=listed_at, run=run if mode else None
        )

    def begin(self, toolkit: str, source: str, mode: SyncMode, watermark: str, at: str) -> SyncRun:
        """Enter the beginning of a sync, in place of an interrupted one."""
        with self._transaction() as db:
            db.execute("insert or ignore into syncs (toolkit) values (?)", [toolkit])
            (number,) = db.execute(
                "update syncs set run = run + 1, mode = :mode, position = '', begun_at = :at,"
                " next_watermark = :watermark, source = :source,"
                " watermark = iif(source = :source, watermark, ''),"
                " listed_at = iif(source = :source, listed_at, '')"
                " where toolkit = :toolkit returning run",
                {
                    "source": source,
                    "mode": mode,
                    "at": at,
                    "watermark": watermark,
                    "toolkit": toolkit,
                },
            ).fetchone()
        return SyncRun(number=number, mode=mode, position="", begun_at=at, watermark=watermark)

    def known(self, toolkit: str, ids: Iterable[str]) -> dict[str, Known]:
        """Return those of the records that are known."""
        with self._transaction() as db:
            rows = db.execute(
                "select id, digest, documents, run from records where toolkit = ? and id in (select"
                " value from json_each(?))",
                [toolkit, json.dumps(list(ids))],
            ).fetchall()
        return {
            id: Known(digest=digest, documents=_loaded(documents), run=last)
            for id, digest, documents, last in rows
        }

    def expect(self, toolkit: str, run: SyncRun, records: Mapping[str, Places]) -> None:
        """Enter where documents of records are, or will be in a moment; their digests are unknown
        until `keep`."""
        self._write(
            toolkit, run, {id: Known(digest="", documents=at) for id, at in records.items()}
        )

    def keep(
        self,
        toolkit: str,
        run: SyncRun,
        records: Mapping[str, Known],
        same: Sequence[str],
        position: str,
    ) -> None:
        """Enter a part of the listing as done: its changed records, those that are the `same`, and
        the position of the next part."""
        with self._transaction() as db:
            _enter(db, toolkit, run, records)
            db.execute(
                "update records set run = ? where toolkit = ? and id in (select value from"
                " json_each(?))",
                [run.number, toolkit, json.dumps(list(same))],
            )
            db.execute("update syncs set position = ? where toolkit = ?", [position, toolkit])

    def seen(self, toolkit: str, run: SyncRun) -> int:
        """Return how many records this sync has read."""
        with self._transaction() as db:
            return int(
                db.execute(
                    "select count(*) from records where toolkit = ? and run = ?",
                    [toolkit, run.number],
                ).fetchone()[0]
            )

    def count(self, toolkit: str) -> int:
        """Return how many records are known."""
        with self._transaction() as db:
            return _count(db, toolkit)

    def unseen(self, toolkit: str, run: SyncRun, *, twice: bool = False) -> dict[str, Places]:
        """Return the records that this sync has not read, with their documents. `twice`: those that
        the last complete listing did not have either."""
        before = "(select listed_run from syncs where toolkit = :toolkit)" if twice else ":run"
        with self._transaction() as db:
            rows = db.execute(
                f"select id, documents from records where toolkit = :toolkit and run < {before}",
                {"toolkit": toolkit, "run": run.number},
            ).fetchall()
        return {id: _loaded(documents) for id, documents in rows}

    def shared(
        self, toolkit: str, documents: Places, apart: Sequence[str]
    ) -> set[tuple[DocumentPlace, str]]:
        """Return those of the documents that records other than those `apart` have as well. The
        digests of these records are unknown from now on: which of them was put last is too."""
        wanted = {(place, id) for place, ids in documents.items() for id in ids}
        ids = json.dumps(sorted({id for _, id in wanted}))
        with self._transaction() as db:
            rows = db.execute(
                "select records.id, json_extract(place.value, '$[0]'),"
                " json_extract(place.value, '$[1]'), document.value"
                " from records, json_each(records.documents) place,"
                " json_each(place.value, '$[2]') document"
                " where toolkit = ? and document.value in (select value from json_each(?))"
                " and records.id not in (select value from json_each(?))",
                [toolkit, ids, json.dumps(list(apart))],
            ).fetchall()
            found = [
                (record, document)
                for record, collection, tenant, id in rows
                if (document := ((collection, tenant), id)) in wanted
            ]
            db.execute(
                "update records set digest = '' where toolkit = ? and id in (select value from"
                " json_each(?))",
                [toolkit, json.dumps(sorted({record for record, _ in found}))],
            )
        return {document for _, document in found}

    def forget(self, toolkit: str, ids: Iterable[str]) -> None:
        """Remove records whose documents are gone."""
        with self._transaction() as db:
            db.execute(
                "delete from records where toolkit = ? and id in (select value from json_each(?))",
                [toolkit, json.dumps(list(ids))],
            )

    def succeed(self, toolkit: str, run: SyncRun, at: str) -> None:
        """Enter the successful end of a sync."""
        with self._transaction() as db:
            db.execute(
                "update syncs set succeeded_at = ?, watermark = next_watermark, error = '',"
                " failed_at = '', mode = '', position = '',"
                " listed_at = iif(mode = 'full', begun_at, listed_at),"
                " listed_run = iif(mode = 'full', run, listed_run) where toolkit = ?",
                [at, toolkit],
            )

    def fail(self, toolkit: str, error: str, at: str, *, resumable: bool = True) -> None:
        """Enter the reason of a failed sync; the next one continues where it stopped, if it can."""
        with self._transaction() as db:
            db.execute("insert or ignore into syncs (toolkit) values (?)", [toolkit])
            db.execute(
                "update syncs set error = ?, failed_at = ?, mode = iif(?, mode, '') where"
                " toolkit = ?",
                [error, at, resumable, toolkit],
            )

    def _write(self, toolkit: str, run: SyncRun, records: Mapping[str, Known]) -> None:
        with self._transaction() as db:
            _enter(db, toolkit, run, records)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            if self._db is None:
                self._db = self._connect()
            self._db.execute("begin immediate")
            with self._db:
                yield self._db
        except sqlite3.Error as exc:
            raise StorageError(
                f"the state of syncs {str(self._path)!r} cannot be used: {exc}",
                hint=(
                    "the folder must be writable and the disk not full; without the file, the next"
                    " sync lists everything"
                ),
            ) from exc

    def _connect(self) -> sqlite3.Connection:
        if not self._path.exists():
            try:
                os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
            except OSError as exc:
                raise sqlite3.OperationalError(exc.strerror or str(exc)) from exc
        db = sqlite3.connect(
            self._path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
        )
        try:
            (version,) = db.execute("pragma user_version").fetchone()
            if version > VERSION:
                raise sqlite3.DatabaseError("it was written by a newer version of Groundhook")
            # A power cut may lose the last entries; their records are then read again.
            db.executescript("pragma journal_mode = wal; pragma synchronous = normal;")
            if version < VERSION:
                db.executescript(_SCHEMA)
        except BaseException:
            db.close()
            raise
        return db


def _enter(
    db: sqlite3.Connection, toolkit: str, run: SyncRun, records: Mapping[str, Known]
) -> None:
    db.executemany(
        "insert into records (toolkit, id, digest, documents, run) values (?, ?, ?, ?, ?)"
        " on conflict (toolkit, id) do update set digest = excluded.digest,"
        " documents = excluded.documents, run = excluded.run",
        [
            (toolkit, id, known.digest, _dumped(known.documents), run.number)
            for id, known in records.items()
        ],
    )


def _count(db: sqlite3.Connection, toolkit: str) -> int:
    found = db.execute("select count(*) from records where toolkit = ?", [toolkit]).fetchone()
    return int(found[0])


def _dumped(places: Places) -> str:
    return json.dumps([[*place, list(ids)] for place, ids in places.items()])


def _loaded(text: str) -> dict[DocumentPlace, list[str]]:
    return {(collection, tenant): ids for collection, tenant, ids in json.loads(text)}
