"""The pool of processes that parse pages, on the host's side. A process starts on demand and is
ended if a page takes too long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio

from groundhook.core.errors import IngestError, WorkerDied
from groundhook.core.workers import Child, start_child

MAX_PROCESSES = 2
MAX_READ_S = 3.0  # seconds to parse one page
MAX_START_S = 10.0  # seconds to start a process


class ReaderPool:
    """At most MAX_PROCESSES reader processes, with the variables `environment` (None: this
    process's own)."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = environment
        self._idle: list[Child] = []
        self._slots: anyio.CapacityLimiter | None = None

    async def call(self, operation: str, body: Mapping[str, Any]) -> Any:
        """Return a reader's answer to one request of `reader_process`. Raises IngestError if the
        page cannot be read."""
        self._slots = self._slots or anyio.CapacityLimiter(MAX_PROCESSES)
        async with self._slots:
            new = not self._idle
            child = await self._start() if new else self._idle.pop()
            reusable = False
            try:
                if new:
                    with anyio.fail_after(MAX_START_S):
                        await child.connection.call("ready", {})
                with anyio.fail_after(MAX_READ_S):
                    answer = await child.connection.call(operation, dict(body))
                reusable = True
            except IngestError:
                reusable = True
                raise
            except TimeoutError as exc:
                raise IngestError(f"parsing it took longer than {MAX_READ_S:g} s") from exc
            except WorkerDied as exc:
                raise IngestError("the process that parsed it died") from exc
            finally:
                if reusable:
                    self._idle.append(child)
                else:
                    with anyio.CancelScope(shield=True):
                        await child.stop(0)
            return answer

    async def close(self) -> None:
        for child in self._idle:
            await child.stop()
        self._idle.clear()

    async def _start(self) -> Child:
        try:
            return await start_child(
                "a reader of pages",
                "groundhook.handlers.web.pages.reader_process",
                environment=self._environment,
            )
        except OSError as exc:
            raise IngestError(f"the process to parse it cannot be started: {exc.strerror}") from exc
