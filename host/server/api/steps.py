"""An answer that is made of steps: a line of JSON for each, while the work goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectSendStream

from groundhook.core.errors import HostError
from groundhook.core.json_lines import line
from groundhook.host.server.problems import problem_of
from groundhook.host.server.serving import Call

_KEPT = 64  # lines that the reader has not read


@dataclass(frozen=True)
class StepLines:
    """Where work tells its steps."""

    _sending: MemoryObjectSendStream[Mapping[str, Any]]

    async def tell(self, step: Mapping[str, Any]) -> None:
        """Tell a step; waits for a slow reader."""
        await self._sending.send(step)

    def show(self, progress: Mapping[str, Any]) -> None:
        """Show a progress, unless the reader is slow."""
        if self._sending.statistics().current_buffer_used < _KEPT // 2:
            self._sending.send_nowait(progress)


async def lines_of(call: Call, work: Callable[[StepLines], Awaitable[None]]) -> AsyncIterator[str]:
    """Yield a line for each step of the work, and one of type `error` if it fails. The work ends
    when the reader leaves."""
    sending, receiving = anyio.create_memory_object_stream[Mapping[str, Any]](_KEPT)

    async def run() -> None:
        async with sending:
            try:
                await work(StepLines(sending))
            except HostError as exc:
                problem = problem_of(exc)
                await sending.send(
                    {"type": "error", "code": problem.code, "detail": problem.detail}
                )

    with call.stream():
        async with anyio.create_task_group() as tasks, receiving:
            tasks.start_soon(run)
            async for step in receiving:
                yield line(step)
