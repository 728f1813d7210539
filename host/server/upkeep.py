"""Regular work of a server: it ends the turns of processes that have ended, removes old chats and
logs, and reads saved files of the app again if `--reload` is set."""

from __future__ import annotations

import logging
import time
from contextlib import aclosing
from pathlib import Path

import anyio

from groundhook.core.errors import StorageError
from groundhook.core.exception_groups import errors_in
from groundhook.host.app.host import Host
from groundhook.host.app.reload import Swap
from groundhook.host.app.watching import changes, stamps

log = logging.getLogger("groundhook.server")

LOST_EVERY_S = 5.0
PURGE_EVERY_S = 3600.0
PROBE_S = 2.0
WATCH_AGAIN_S = 5.0


def sync_failed(reason: str) -> None:
    """Log that a scheduled sync failed."""
    log.error("%s", reason)


class StoreHealth:
    """Whether the store works: whether it takes `size` bytes, as many as a turn needs. It is tried
    when `fine` is called, at most every `PROBE_S` seconds."""

    def __init__(self, host: Host, size: int) -> None:
        self._host, self._size, self._lock = host, size, anyio.Lock()
        self._tried, self._fine = float("-inf"), True

    async def fine(self) -> bool:
        """Return whether chats can be read and written."""
        async with self._lock:
            if time.monotonic() - self._tried > PROBE_S:
                try:
                    await self._host.chats.upkeep.probe(self._size)
                    self._fine = True
                except StorageError as exc:
                    log.warning("stored chats cannot be used: %s", exc)
                    self._fine = False
                self._tried = time.monotonic()
            return self._fine


async def keep_up(host: Host) -> None:
    """Do the regular work until cancelled. A store that stops or starts to work is logged."""
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
                log.error("stored chats cannot be used: %s", exc)
            failing = True
        await anyio.sleep(LOST_EVERY_S)


async def reload_saved(host: Host, folder: Path, *, pause_s: float = WATCH_AGAIN_S) -> None:
    """Read the files of the app again when they are saved, until cancelled. Turns under way keep
    the files that they began with, and an invalid file does not replace its last good version. If
    files cannot be watched, that is logged once, and tried again after each pause."""
    seen = stamps(folder)  # read once now, for changes from before the files were watched
    logged = ""
    while True:
        try:
            async with aclosing(changes(folder, seen)) as batches:
                async for paths in batches:
                    _log_swap(await host.reload(paths))
                    logged = ""
        except Exception as exc:  # noqa: BLE001 - the server goes on with the files that it has
            cause = "; ".join(str(error) for error in errors_in(exc))
            if cause != logged:
                message = "saved files cannot be read again: %s; it is tried every %g s"
                log.error(message, cause, pause_s)
            logged = cause
        await anyio.sleep(pause_s)


def _log_swap(swap: Swap) -> None:
    for problem in swap.problems:
        log.error("%s", problem)
    names = ", ".join((*swap.assistants, *swap.removed)) or "the app"
    if not swap.problems:
        log.info("reloaded: %s", names)
    for key in swap.restart:
        log.warning("%r was changed; restart the server to apply it", key)
