"""A cache of vectors: a bounded SQLite file that all processes of an app share, and an `Embedder`
that uses it.

The key of a vector is a hash of provider, model, dimensions, kind (question or document) and text;
the text itself is not stored. An error of the file is shown in the trace, and the vector is
computed. The least recently used vectors are removed if space is needed.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from groundhook.core.errors import HostError
from groundhook.core.ports import Embedder
from groundhook.core.trace import span
from groundhook.handlers.kb.embed import (
    Closeable,
    CurveSource,
    FallbackEmbedder,
    TokenCounter,
    curve_source,
    embed_questions,
    embedding_tokens,
    in_context,
)
from groundhook.handlers.kb.store.messages import pack_vector, unpack_vector

_SCHEMA = """
create table if not exists vectors (
    id integer primary key, key blob not null unique, vector blob not null, turn integer not null
);
create index if not exists by_turn on vectors (turn);
"""
_LOOKED_UP = 500  # keys in one statement
_REMOVED = 50  # vectors removed between two checks of the size
# Insertions after which a use of a vector is recorded again. Most reads then need no write.
_STALE = 32
_BUSY_S = 2.0


class VectorCache:
    """The file. Usable from any thread; opened at the first use. Every method raises sqlite3.Error
    and OSError."""

    def __init__(self, path: Path, *, most_bytes: int) -> None:
        self._path = path
        self._most = most_bytes
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the vectors of those keys that are in the file."""
        found: dict[bytes, bytes] = {}
        with self._lock:
            db = self._open()
            turn = self._turn(db)
            old: list[bytes] = []
            for start in range(0, len(keys), _LOOKED_UP):
                some = keys[start : start + _LOOKED_UP]
                marks = ",".join("?" * len(some))
                for key, vector, used in db.execute(
                    f"select key, vector, turn from vectors where key in ({marks})", some
                ):
                    found[key] = vector
                    if used + _STALE < turn:
                        old.append(key)
            if old:  # recently used vectors are removed last
                with db:
                    db.executemany(
                        "update vectors set turn = ? where key = ?", [(turn, key) for key in old]
                    )
        return found

    def put(self, vectors: Mapping[bytes, bytes]) -> None:
        """Store vectors, removing others if space is needed."""
        if sum(len(vector) for vector in vectors.values()) > self._most // 2:
            return  # it would displace everything else
        with self._lock:
            db = self._open()
            with db:
                db.execute("begin immediate")
                rows = [(key, vector, self._turn(db)) for key, vector in vectors.items()]
                db.executemany(
                    "insert or ignore into vectors (key, vector, turn) values (?, ?, ?)", rows
                )
                if self._size(db) > self._most:
                    self._make_room(db)

    def remove(self, keys: Sequence[bytes]) -> None:
        """Remove the vectors of those keys; their bytes are overwritten."""
        with self._lock:
            if self._db is None and not self._path.exists():
                return
            db = self._open()
            db.execute("pragma secure_delete = on")
            with db:
                db.executemany("delete from vectors where key = ?", [(key,) for key in keys])

    def close(self) -> None:
        with self._lock, suppress(sqlite3.Error):
            if self._db is not None:
                self._db.close()
            self._db = None

    def _make_room(self, db: sqlite3.Connection) -> None:
        """Remove the least recently used vectors until a tenth of the file is free."""
        while self._size(db) > self._most * 9 // 10:
            db.execute(
                "delete from vectors where id in (select id from vectors order by turn, id"
                " limit ?)",
                [_REMOVED],
            )

    def _size(self, db: sqlite3.Connection) -> int:
        """Return the bytes in use. SQLite reuses the space of removed vectors and does not shrink
        the file."""
        pages, free, size = (
            int(db.execute(f"pragma {name}").fetchone()[0])
            for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * size

    def _turn(self, db: sqlite3.Connection) -> int:
        """Return the time, counted in insertions."""
        return int(db.execute("select coalesce(max(id), 0) from vectors").fetchone()[0])

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.touch(mode=0o600)  # SQLite gives its other files the same mode
            try:
                self._db = self._connect()
            except sqlite3.DatabaseError as exc:
                if isinstance(exc, sqlite3.OperationalError):
                    raise
                for path in (self._path, *(Path(f"{self._path}{end}") for end in ("-wal", "-shm"))):
                    # The file is not a database; its vectors can be computed again.
                    path.unlink(missing_ok=True)
                self._path.touch(mode=0o600)
                self._db = self._connect()
        return self._db

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(
            self._path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
        )
        try:
            db.executescript(f"pragma journal_mode = wal; pragma synchronous = off; {_SCHEMA}")
        except BaseException:
            db.close()
            raise
        return db


@dataclass
class _Call:
    """A call of the inner embedder that is running. `made` are its vectors, by key."""

    ended: anyio.Event = field(default_factory=anyio.Event)
    made: dict[bytes, bytes] | None = None
    error: HostError | None = None


class CachedEmbedder:
    """An `Embedder` that calls another only for texts that are not in the cache."""

    def __init__(self, inner: Embedder, cache: VectorCache) -> None:
        self.inner = inner
        self.provider, self.model, self.dimensions = inner.provider, inner.model, inner.dimensions
        self.in_context = in_context(inner)
        self._cache = cache
        self._calls: dict[frozenset[bytes], _Call] = {}
        self._model_key = f"{inner.provider}\0{inner.model}\0{inner.dimensions}"

    async def embed_query(self, text: str, /) -> list[float]:
        return (await self.embed_queries([text]))[0]

    async def embed_queries(self, texts: Sequence[str], /) -> list[list[float]]:
        return await self._embed("query", texts, partial(embed_questions, self.inner))

    async def embed_documents(self, texts: Sequence[str], /) -> list[list[float]]:
        return await self._embed("document", texts, self.inner.embed_documents)

    def similarity(self, cosine: float, /) -> float:
        return self.inner.similarity(cosine)

    @property
    def curve_source(self) -> CurveSource:
        return curve_source(self.inner)

    def count_tokens(self, text: str, /) -> int:
        return (
            self.inner.count_tokens(text)
            if isinstance(self.inner, TokenCounter)
            else embedding_tokens(text)
        )

    async def fallback(self) -> str:
        return await self.inner.fallback() if isinstance(self.inner, FallbackEmbedder) else ""

    def forget(self, texts: Sequence[str]) -> None:
        """Remove the vectors of a document's texts, given all of them. Raises sqlite3.Error and
        OSError."""
        around = "\0".join(texts) if self.in_context else ""
        self._cache.remove([self._key("document", text, around) for text in texts])

    async def aclose(self) -> None:
        if isinstance(self.inner, Closeable):
            await self.inner.aclose()

    async def _embed(
        self, kind: str, texts: Sequence[str], embed: Callable[[Sequence[str]], Any]
    ) -> list[list[float]]:
        around = "\0".join(texts) if self.in_context and kind == "document" else ""
        keys = [self._key(kind, text, around) for text in texts]
        found = await self._try_cache(self._cache.get, keys) or {}
        # A vector of another length is damaged, and is computed again.
        known = {key: vector for key, vector in found.items() if len(vector) == 4 * self.dimensions}
        missing = list(
            {key: text for key, text in zip(keys, texts, strict=True) if key not in known}.items()
        )
        if self.in_context and missing:
            # A vector depends on the neighbouring passages: embed all of them or none.
            missing = list(zip(keys, texts, strict=True))
        if missing:
            known = {**known, **await self._embed_missing(missing, embed)}
        return [unpack_vector(known[key]) for key in keys]

    async def _embed_missing(
        self, missing: Sequence[tuple[bytes, str]], embed: Callable[[Sequence[str]], Any]
    ) -> dict[bytes, bytes]:
        """Return the vectors of (key, text), by key. Tasks that want the same ones at the same
        time, such as the searches of several collections, share one call."""
        wanted = frozenset(key for key, _ in missing)
        while (other := self._calls.get(wanted)) is not None:
            await other.ended.wait()
            if other.error is not None:
                raise other.error
            if other.made is not None:
                return other.made
        call = self._calls[wanted] = _Call()
        try:
            made = await embed([text for _, text in missing])
            new = {key: pack_vector(vector) for (key, _), vector in zip(missing, made, strict=True)}
            await self._try_cache(self._cache.put, new)
            call.made = new
        except HostError as exc:
            call.error = exc
            raise
        finally:  # a call that was cancelled has neither: another task makes its own
            del self._calls[wanted]
            call.ended.set()
        return new

    async def _try_cache(self, use: Callable[[Any], Any], given: Any) -> Any:
        """Use the cache in a thread; return None and show the error in the trace if it fails."""
        try:
            return await anyio.to_thread.run_sync(use, given)
        except (sqlite3.Error, OSError) as exc:
            with span("vector_cache", "not used") as node:
                node.fail(str(exc))
            return None

    def _key(self, kind: str, text: str, around: str) -> bytes:
        content = "\0\0".join([self._model_key, kind, text, around]).encode(errors="surrogatepass")
        return hashlib.blake2b(content, digest_size=20).digest()
