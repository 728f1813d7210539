"""Scheduled syncs of a host that stays open."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta

import anyio

from groundhook.core.errors import HostError
from groundhook.core.ports import Clock
from groundhook.core.types.sync import SyncStatus


async def keep_synced(
    every_s: Mapping[str, int],
    *,
    last: Callable[[str], Awaitable[SyncStatus]],
    sync: Callable[[str], Awaitable[object]],
    on_failure: Callable[[str], object],
    now: Clock,
) -> None:
    """Sync toolkits, given with the seconds between two syncs (0: never), until it is cancelled.
    `on_failure` is called for a failed sync, which is tried again after the same time."""

    async def runs_elsewhere(toolkit: str) -> bool:
        with suppress(HostError):
            return bool((await last(toolkit)).running)  # in another process of the same server
        return False

    async def keep(toolkit: str, seconds: int) -> None:
        while True:
            try:
                await anyio.sleep(_until_due(await last(toolkit), seconds, now))
                await sync(toolkit)
            # Also a bug in the source of a plug-in: it must not end the server and its other syncs.
            except Exception as exc:  # noqa: BLE001
                if not await runs_elsewhere(toolkit):
                    shown = str(exc) if isinstance(exc, HostError) else repr(exc)
                    on_failure(f"the scheduled sync of {toolkit!r} failed: {shown}")
                await anyio.sleep(seconds)

    async with anyio.create_task_group() as tasks:
        for toolkit, seconds in every_s.items():
            if seconds:
                tasks.start_soon(keep, toolkit, seconds)


def _until_due(status: SyncStatus, seconds: int, now: Clock) -> float:
    """Return the seconds until the next sync."""
    if not status.succeeded_at:
        return 0.0
    due = datetime.fromisoformat(status.succeeded_at) + timedelta(seconds=seconds)
    return max(0.0, (due - now()).total_seconds())
