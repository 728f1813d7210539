"""Optimises collections in the background: builds HNSW graphs, merges segments, and frees the space
of removed points.

The engine holds the interpreter's lock for as long as it optimises, seconds to minutes. So a copy
of a collection's vectors is optimised in another process (`python -P -m
groundhook.handlers.kb.embedded.optimise PATH`), while searches and writes continue on the original;
then later writes are copied over in steps, and the copy replaces the original. A process that is
killed leaves an unused folder, which is removed when the collection is opened again.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.abc
import anyio.lowlevel
import anyio.to_thread

from groundhook.core.errors import StorageError
from groundhook.core.workers import interpreter
from groundhook.handlers.kb.embedded.collection import Collection
from groundhook.handlers.kb.embedded.edge import Shard
from groundhook.handlers.kb.embedded.folder import read_ahead

_MODULE = "groundhook.handlers.kb.embedded.optimise"
_LOOK_S = 1.0
_QUIET_S = 3.0  # without a write, before a collection is copied
_AGAIN_S = 600.0  # after an attempt that failed
_NICENESS = 10
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)


class Optimiser:
    """Optimises the worker's open collections, one at a time. `locks` are held while a collection
    is written."""

    def __init__(
        self, collections: MutableMapping[str, Collection], locks: Mapping[str, anyio.Lock]
    ) -> None:
        self.busy = False
        self._collections = collections
        self._locks = locks
        self._not_before: dict[str, float] = {}

    async def run(self) -> None:
        """Optimise collections until cancelled. A collection whose optimisation is abandoned stays
        as it is."""
        while True:
            await anyio.sleep(_LOOK_S)
            for name, collection in list(self._collections.items()):
                if self._is_time(name, collection):
                    await self._attempt(name, collection)

    def _is_time(self, name: str, collection: Collection) -> bool:
        now = time.monotonic()
        quiet = now - collection.written_at >= _QUIET_S and not self._locks[name].locked()
        return quiet and now >= self._not_before.get(name, 0) and collection.wants_optimising()

    async def _attempt(self, name: str, collection: Collection) -> None:
        self.busy = True
        try:
            await self._optimise(name, collection)
        except (OSError, StorageError) as exc:
            self._not_before[name] = time.monotonic() + _AGAIN_S
            sys.stderr.write(f"collection {name!r} was not optimised: {exc}\n")
        finally:
            self.busy = False

    async def _optimise(self, name: str, collection: Collection) -> None:
        async with self._locks[name]:  # nothing is written while the copy is made; searches go on
            copy = collection.begin_copy()
            try:
                await anyio.to_thread.run_sync(copy.make)
            except BaseException:
                copy.discard()
                raise
        try:
            done = await anyio.run_process(
                [*interpreter(_MODULE), str(copy.path)],
                check=False,
                stdin=subprocess.DEVNULL,
                stderr=None,
            )
            if done.returncode != 0:
                raise StorageError(f"the process that does it ended with {done.returncode}")
            await anyio.to_thread.run_sync(read_ahead, copy.path)
            async with self._locks[name]:
                if self._collections.get(name) is not collection:
                    raise StorageError("it was removed or opened again meanwhile")
                for _ in collection.catch_up(copy):
                    await anyio.lowlevel.checkpoint()
                collection.adopt(copy)
        finally:
            copy.discard()


def main(path: str) -> int:
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    os.nice(_NICENESS)
    shard = Shard.load(Path(path))
    shard.optimise()
    shard.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
