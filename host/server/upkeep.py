"""What a server does from time to time: turns of processes that have ended get their end, and old
chats and logs are removed."""

from __future__ import annotations

import logging
import time

import anyio

from groundhook.host.app.host import Host
from groundhook.host.core.errors import StorageError

log = logging.getLogger("groundhook.server")

LOST_EVERY_S = 5.0
PURGE_EVERY_S = 3600.0
PROBE_S = 2.0


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
