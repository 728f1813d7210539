"""Parsers of strangers' texts, run in processes of their own: the host's side.

HTML, Markdown, YAML and PDF files are read by libraries that a hostile text can keep busy for
minutes, or for hundreds of megabytes. A thread cannot be stopped and shares Python's lock; a
process is killed.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

import anyio

from groundhook.core.errors import HostError, IngestError, WorkerDied
from groundhook.core.readers.process import LOAD, name_of
from groundhook.core.workers import Child, start_child

MAX_PROCESSES = 2
MAX_READ_S = 3.0  # seconds to parse one text
MAX_CLOSE_S = 5.0
MAX_START_S = 10.0  # seconds to start a process, and to import a parser

P = ParamSpec("P")
T = TypeVar("T")


@dataclass
class _Reader:
    child: Child
    loaded: set[str] = field(default_factory=set)  # modules


class ReaderPool:
    """At most MAX_PROCESSES processes, with the variables `environment` (None: this process's own).
    One starts on demand, stays for later texts, and is killed when a text takes too long or the
    call for it is cancelled."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = environment
        self._idle: list[_Reader] = []
        self._slots: anyio.CapacityLimiter | None = None

    async def call(
        self,
        parse: Callable[P, T],
        /,
        *arguments: P.args,
        **named: P.kwargs,
    ) -> T:
        """Return `parse(…)` of a process, within MAX_READ_S seconds. Raises as `call_within`."""
        return await self.call_within(MAX_READ_S, parse, *arguments, **named)

    async def call_within(
        self,
        seconds: float,
        parse: Callable[P, T],
        /,
        *arguments: P.args,
        **named: P.kwargs,
    ) -> T:
        """Return `parse(…)` of a process. `parse` is a function of a module; what it takes and
        returns are texts, bytes, numbers, lists and mappings. Raises IngestError if the text cannot
        be read, or not within `seconds`, and the HostError that `parse` raises."""
        self._slots = self._slots or anyio.CapacityLimiter(MAX_PROCESSES)
        async with self._slots:
            reader = self._idle.pop() if self._idle else await self._start()
            reusable = False
            try:
                await self._load(reader, parse.__module__)
                body = {"arguments": list(arguments), "named": named}
                with anyio.fail_after(seconds):
                    answer: T = await reader.child.connection.call(name_of(parse), body)
                reusable = True
            except TimeoutError as exc:
                raise IngestError(f"parsing it took longer than {seconds:g} s") from exc
            except WorkerDied as exc:
                raise IngestError("the process that parsed it died") from exc
            except HostError:
                reusable = True
                raise
            finally:
                if reusable:
                    self._idle.append(reader)
                else:
                    with anyio.CancelScope(shield=True):
                        await reader.child.stop(0)
            return answer

    async def close(self) -> None:
        """End the processes."""
        for reader in self._idle:
            await reader.child.stop()
        self._idle.clear()

    async def _load(self, reader: _Reader, module: str) -> None:
        """Import a parser, which takes longer than a text may."""
        if module in reader.loaded:
            return
        with anyio.fail_after(MAX_START_S):
            await reader.child.connection.call(LOAD, module)
        reader.loaded.add(module)

    async def _start(self) -> _Reader:
        try:
            return _Reader(
                await start_child(
                    "a reader of texts",
                    "groundhook.core.readers.process",
                    environment=self._environment,
                )
            )
        except OSError as exc:
            raise IngestError(f"the process to parse it cannot be started: {exc.strerror}") from exc


@asynccontextmanager
async def open_readers(environment: Mapping[str, str] | None = None) -> AsyncIterator[ReaderPool]:
    """Yield a pool, and end its processes."""
    pool = ReaderPool(environment)
    try:
        yield pool
    finally:
        # Shielded: a host is often closed because its task was cancelled.
        with anyio.move_on_after(MAX_CLOSE_S, shield=True):
            await pool.close()


_Text = TypeVar("_Text", str, bytes)


@dataclass(frozen=True)
class TextReaders:
    """`markdown` converts HTML: a function of a module."""

    pool: ReaderPool
    markdown: Callable[[str], str]

    async def html(self, html: str) -> str:
        """Return HTML as Markdown. Raises IngestError."""
        return await self.parse(self.markdown, html)

    async def pdf(self, data: bytes) -> list[str]:
        """Return the text of each page of a PDF file. Raises IngestError."""
        from groundhook.core.readers.pdf import pdf_pages

        return await self.parse(pdf_pages, data)

    async def parse(self, parser: Callable[[_Text], T], text: _Text) -> T:
        """Return `parser(text)`. It has no deadline but the caller's. Raises IngestError."""
        return await self.pool.call_within(math.inf, parser, text)
