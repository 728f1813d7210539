"""A collection's graph on disk: which passages mention which entities, and how they relate them.

One SQLite file for each collection, shared by the processes of an app. A row belongs to a version
of a document, and a version to a tenant. A version is entered before its document is stored, and
the previous one is removed afterwards, each in one transaction, so that every document that can be
found has its graph. Every tenant has entities of its own.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from groundhook.core.errors import StorageError

if TYPE_CHECKING:
    from groundhook.handlers.kb.graph.rules import PassageEntities

_SCHEMA = """
create table if not exists versions (
    id integer primary key, tenant text not null, document text not null, fingerprint text not null,
    title text not null
);
create unique index if not exists one_version on versions (tenant, document, fingerprint);
create table if not exists passages (
    id integer primary key, version integer not null, ordinal integer not null, passage text not
    null
);
create index if not exists passages_of on passages (version);
create table if not exists entities (
    id integer primary key, tenant text not null, key text not null, name text not null, kind text
    not null,
    description text not null
);
create unique index if not exists one_entity on entities (tenant, key);
create table if not exists mentions (
    passage integer not null, entity integer not null, count integer not null, about integer not
    null
);
create index if not exists mentions_in on mentions (passage);
create index if not exists mentions_of on mentions (entity);
create table if not exists relations (
    passage integer not null, source integer not null, target integer not null, words text not null
);
create index if not exists relations_in on relations (passage);
create table if not exists changes (tenant text primary key, count integer not null);
"""
_BUSY_S = 10.0


@dataclass(frozen=True, kw_only=True)
class GraphPassage:
    """A passage to enter: its position and its entities."""

    ordinal: int
    passage: str
    extracted: PassageEntities


@dataclass(frozen=True, kw_only=True)
class Rows:
    """One tenant's graph. `entities`: (id, key, name, kind, description); `passages`: (id,
    document, ordinal, passage); `mentions`: (passage, entity, count, about); `relations`: (source,
    target, words, count)."""

    entities: list[tuple[int, str, str, str, str]]
    passages: list[tuple[int, str, int, str]]
    mentions: list[tuple[int, int, int, int]]
    relations: list[tuple[int, int, str, int]]


class GraphFile:
    """A graph file. Usable from any thread; opened at the first use. Its methods raise
    StorageError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None

    def exists(self) -> bool:
        return self._db is not None or self._path.exists()

    def enter(
        self,
        tenant: str,
        document: str,
        fingerprint: str,
        title: str,
        pieces: Sequence[GraphPassage],
    ) -> None:
        """Enter a version of a document beside its others; one with the same fingerprint is
        replaced."""
        with self._transaction(tenant) as db:
            self._drop(db, tenant, "document = ? and fingerprint = ?", [document, fingerprint])
            sql = "insert into versions (tenant, document, fingerprint, title) values (?, ?, ?, ?)"
            version = db.execute(sql, [tenant, document, fingerprint, title]).lastrowid
            for piece in pieces:
                sql = "insert into passages (version, ordinal, passage) values (?, ?, ?)"
                passage = db.execute(sql, [version, piece.ordinal, piece.passage]).lastrowid
                assert passage is not None
                self._enter_piece(db, tenant, passage, piece.extracted)

    def retire(self, tenant: str, document: str, *, keep: str) -> None:
        """Remove all versions of a document except the one with this fingerprint."""
        with self._transaction(tenant) as db:
            self._drop(db, tenant, "document = ? and fingerprint != ?", [document, keep])

    def remove(self, tenant: str | None, documents: Sequence[str] | None) -> None:
        """Remove documents, or all (None), of one tenant or of all (None)."""
        if not self.exists():
            return
        with self._connection() as db:
            tenants = (
                [row[0] for row in db.execute("select distinct tenant from versions")]
                if tenant is None
                else [tenant]
            )
        for each in tenants:
            with self._transaction(each) as db:
                if documents is None:
                    self._drop(db, each, "true", [])
                for document in documents or ():
                    self._drop(db, each, "document = ?", [document])

    def versions(
        self, tenant: str | None, documents: Sequence[str] | None = None
    ) -> set[tuple[str, str, str]]:
        """Return (tenant, document, fingerprint) of the versions of these documents, or of all."""
        with self._connection() as db:
            sql = (
                "select tenant, document, fingerprint from versions where (:tenant is null or"
                " tenant = :tenant) and (:documents is null or document in (select value from"
                " json_each(:documents)))"
            )
            wanted = None if documents is None else json.dumps(list(documents))
            return set(db.execute(sql, {"tenant": tenant, "documents": wanted}).fetchall())

    def changes(self, tenant: str) -> int:
        """Return a number that grows with every change of a tenant's graph."""
        with self._connection() as db:
            row = db.execute("select count from changes where tenant = ?", [tenant]).fetchone()
        return row[0] if row else 0

    def names(self, tenant: str) -> list[tuple[str, str, str]]:
        """Return (key, name, kind) of the subjects of documents, which are looked up in texts."""
        with self._connection() as db:
            mentioned = (
                "from mentions m join entities e on e.id = m.entity where m.about and e.tenant = ?"
            )
            sql = f"select distinct e.key, e.name, e.kind {mentioned}"
            return db.execute(sql, [tenant]).fetchall()

    def rows(self, tenant: str) -> Rows:
        """Return the whole graph of a tenant."""
        with self._connection() as db:
            db.execute("begin")  # all four queries read one state of the file
            try:
                of_tenant = "from passages p join versions v on v.id = p.version where v.tenant = ?"
                return Rows(
                    entities=db.execute(
                        "select id, key, name, kind, description from entities where tenant = ?",
                        [tenant],
                    ).fetchall(),
                    passages=db.execute(
                        f"select p.id, v.document, p.ordinal, p.passage {of_tenant}", [tenant]
                    ).fetchall(),
                    mentions=db.execute(
                        "select m.passage, m.entity, m.count, m.about from mentions m where"
                        f" m.passage in (select p.id {of_tenant})",
                        [tenant],
                    ).fetchall(),
                    relations=db.execute(
                        "select r.source, r.target, r.words, count(*) from relations r where"
                        f" r.passage in (select p.id {of_tenant}) group by 1, 2, 3 order by 4 desc",
                        [tenant],
                    ).fetchall(),
                )
            finally:
                db.execute("rollback")

    def close(self) -> None:
        with self._lock, suppress(sqlite3.Error):
            if self._db is not None:
                self._db.close()
            self._db = None

    def _enter_piece(
        self, db: sqlite3.Connection, tenant: str, passage: int, extracted: PassageEntities
    ) -> None:
        ids: dict[str, int] = {}
        for mention in extracted.mentions:
            ids[mention.key] = entity = self._entity(
                db, tenant, mention.key, mention.name, mention.kind, mention.description
            )
            about = int(mention.key == extracted.about)
            db.execute(
                "insert into mentions values (?, ?, ?, ?)", [passage, entity, mention.count, about]
            )
        related = [
            (passage, ids[link.source], ids[link.target], link.words)
            for link in extracted.relations
            if {link.source, link.target} <= ids.keys()
        ]
        db.executemany("insert into relations values (?, ?, ?, ?)", related)

    def _entity(
        self, db: sqlite3.Connection, tenant: str, key: str, name: str, kind: str, description: str
    ) -> int:
        """Return the id of an entity, which is inserted if it is new. A kind or description
        replaces a missing one."""
        row = db.execute(
            "select id, kind, description from entities where tenant = ? and key = ?", [tenant, key]
        ).fetchone()
        if row is None:
            sql = (
                "insert into entities (tenant, key, name, kind, description) values (?, ?, ?, ?, ?)"
            )
            id = db.execute(sql, [tenant, key, name, kind, description]).lastrowid
            assert id is not None
            return id
        better = kind if row[1] == "term" else row[1]
        if (better, row[2] or description) != (row[1], row[2]):
            db.execute(
                "update entities set kind = ?, description = ? where id = ?",
                [better, row[2] or description, row[0]],
            )
        return int(row[0])

    def _drop(self, db: sqlite3.Connection, tenant: str, where: str, values: Sequence[str]) -> None:
        """Remove versions of a tenant, and the entities that no passage mentions any more."""
        gone = (
            "select p.id from passages p join versions v on v.id = p.version where v.tenant = ?"
            f" and {where}"
        )
        passages = [row[0] for row in db.execute(gone, [tenant, *values])]
        entities = set()
        for passage in passages:
            entities |= {
                row[0]
                for row in db.execute("select entity from mentions where passage = ?", [passage])
            }
            for table in ("mentions", "relations"):
                db.execute(f"delete from {table} where passage = ?", [passage])
            db.execute("delete from passages where id = ?", [passage])
        db.execute(f"delete from versions where tenant = ? and {where}", [tenant, *values])
        db.executemany(
            "delete from entities where id = :id and not exists (select 1 from mentions where"
            " entity = :id)",
            [{"id": id} for id in entities],
        )

    @contextmanager
    def _transaction(self, tenant: str) -> Iterator[sqlite3.Connection]:
        """Open a transaction that also increases the tenant's counter of changes."""
        with self._connection() as db, db:
            db.execute("begin immediate")
            yield db
            db.execute(
                "insert into changes values (?, 1) on conflict (tenant) do update set count ="
                " count + 1",
                [tenant],
            )

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection to one thread at a time; translate errors to StorageError."""
        with self._lock:
            try:
                yield self._open()
            except (sqlite3.Error, OSError) as exc:
                raise StorageError(f"the graph {str(self._path)!r} cannot be used: {exc}") from exc

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.touch(mode=0o600)  # SQLite gives its other files the same mode
            db = sqlite3.connect(
                self._path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
            )
            try:
                db.executescript(
                    f"pragma journal_mode = wal; pragma synchronous = normal; {_SCHEMA}"
                )
            except BaseException:
                db.close()
                raise
            self._db = db
        return self._db
