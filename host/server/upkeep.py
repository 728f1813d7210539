"""What a server does from time to time: turns of processes that have ended get their end, old chats
and logs are removed, and saved files of the app are read again where that is wanted."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path

import anyio

from groundhook.host.app.host import Host
from groundhook.host.app.watching import Stamp, changes, stamps
from groundhook.host.core.errors import StorageError

log = logging.getLogger("groundhook.server")

LOST_EVERY_S = 5.0
PURGE_EVERY_S = 3600.0
PROBE_S = 2.0
WATCH_AGAIN_S = 5.0


def sync_failed(reason: str) -> None:
    """Log that a scheduled sync failed."""
    log.error("%s", reason)


class StoreHealth:
    """Whether something can be kept: tried when it is read, at most every `PROBE_S`."""

    def __init__(self, host: Host) -> None:
        self._host, self._lock = host, anyio.Lock()
        self._tried, self._fine = float("-inf"), True

    async def fine(self) -> bool:
        """Return whether chats can be read and written."""
        async with self._lock:
            if time.monotonic() - self._tried > PROBE_S:
                try:
                    await self._host.chats.upkeep.probe()
                    self._fine = True
                except StorageError as exc:
                    log.warning("kept chats cannot be used: %s", exc)
                    self._fine = False
                self._tried = time.monotonic()
            return self._fine


async def keep_up(host: Host) -> None:
    """Run until it is cancelled. A store that cannot be used is logged when that changes."""
    purged, failing = float("-inf"), False
    while True:
        try:
            await host.conversations.end_lost_turns()
            if time.monotonic() - purged > PURGE_EVERY_S:
                await host.conversations.sweep()
                purged = time.monotonic()
            failing = False
        except StorageError as exc:
            if not failing:
                log.error("kept chats cannot be used: %s", exc)
            failing = True
        await anyio.sleep(LOST_EVERY_S)


async def reload_saved(host: Host, folder: Path, *, pause_s: float = WATCH_AGAIN_S) -> None:
    """Read the files of the app again when they are saved, until it is cancelled. Turns under way
    keep theirs, and a broken file does not replace its last good version. Where files cannot be
    watched, that is logged and tried again after a pause."""
    seen = stamps(folder)  # once: what is saved while nothing is watched is read as well
    while True:
        try:
            await _reload_changes(host, folder, seen)
        except Exception as exc:  # noqa: BLE001 - the server goes on with the files that it has
            log.error("saved files cannot be read again: %s; next try in %g s", exc, pause_s)
        await anyio.sleep(pause_s)


async def _reload_changes(host: Host, folder: Path, seen: Mapping[Path, Stamp]) -> None:
    async with aclosing(changes(folder, seen)) as batches:
        async for paths in batches:
            swap = await host.reload(paths)
            for problem in swap.problems:
                log.error("%s", problem)
            names = ", ".join((*swap.assistants, *swap.removed)) or "the app"
            if not swap.problems:
                log.info("reloaded: %s", names)
            for key in swap.restart:
                log.warning("%r was changed; restart the server to apply it", key)
