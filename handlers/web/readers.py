"""The processes that read pages, as the host sees them: started when there is something to read,
ended with a page that takes too long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio

from groundhook.host.core.errors import IngestError, WorkerDied
from groundhook.host.core.workers import Child, start_child

MOST = 2  # at the same time
LONGEST = 3.0  # seconds that one page may take
START = 10.0  # seconds that a process may take to be ready


class Readers:
    """`environment` replaces this process's; none: this process's own."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = environment
        self._idle: list[Child] = []
        self._places: anyio.CapacityLimiter | None = None

    async def call(self, operation: str, body: Mapping[str, Any]) -> Any:
        """Raises IngestError for what cannot be read."""
        self._places = self._places or anyio.CapacityLimiter(MOST)
        async with self._places:
            new = not self._idle
            child = await self._started() if new else self._idle.pop()
            whole = False
            try:
                if new:
                    with anyio.fail_after(START):
                        await child.link.call("ready", {})
                with anyio.fail_after(LONGEST):
                    answer = await child.link.call(operation, dict(body))
                whole = True
            except IngestError:
                whole = True
                raise
            except TimeoutError as exc:
                raise IngestError(f"it took longer than {LONGEST:g} s to read") from exc
            except WorkerDied as exc:
                raise IngestError("the process that read it died") from exc
            finally:
                if whole:
                    self._idle.append(child)
                else:
                    with anyio.CancelScope(shield=True):
                        await child.stop(0)
            return answer

    async def close(self) -> None:
        for child in self._idle:
            await child.stop()
        self._idle.clear()

    async def _started(self) -> Child:
        try:
            return await start_child(
                "a reader of pages", "groundhook.handlers.web.reader", environment=self._environment
            )
        except OSError as exc:
            raise IngestError(f"no process can be started to read it: {exc.strerror}") from exc
