"""Limits of one person and of the process. What exceeds them is refused at once, never queued. This
is the only module that uses the package `limits`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from limits import RateLimitItem, RateLimitItemPerMinute
from limits.aio.strategies import SlidingWindowCounterRateLimiter
from limits.errors import ConfigurationError
from limits.storage import storage_from_string

from groundhook.core.errors import ConfigError
from groundhook.core.server_settings import LimitSettings
from groundhook.host.server.problems import Refused

_Counted = Literal["requests", "turns", "sign-ins"]
SIGN_INS = 10  # a minute and address


class CallerLimits:
    """Counts requests and turns a minute, and open streams."""

    def __init__(self, settings: LimitSettings) -> None:
        self.settings = settings
        shared = settings.storage != "memory"
        address = f"async+{settings.storage}" if shared else "async+memory://"
        try:
            storage = storage_from_string(address)
        except ConfigurationError as exc:
            raise ConfigError(
                f"server.limits.storage {settings.storage!r} cannot be used: {exc}"
            ) from exc
        self._windows = SlidingWindowCounterRateLimiter(storage)
        self._items: dict[_Counted, RateLimitItem] = {
            "requests": RateLimitItemPerMinute(settings.requests_per_minute),
            "turns": RateLimitItemPerMinute(settings.turns_per_minute),
            "sign-ins": RateLimitItemPerMinute(SIGN_INS),
        }
        self.streams = 0
        self._streams_of: Counter[str] = Counter()

    async def count(self, what: _Counted, caller: str) -> None:
        """Count one more request, turn or sign-in of a person. Raises Refused above the limit."""
        item = self._items[what]
        if await self._windows.hit(item, what, caller):
            return
        reset, _ = await self._windows.get_window_stats(item, what, caller)
        seconds = max(1, int(reset - time.time()) + 1)
        raise Refused(
            "rate_limited",
            f"{item.amount} {what} a minute are allowed",
            headers={
                "retry-after": str(seconds),
                "ratelimit-policy": f'"{what}";q={item.amount};w=60',
                "ratelimit": f'"{what}";r=0;t={seconds}',
            },
        )

    async def remaining(self, what: _Counted, caller: str) -> int:
        """Return how many more are allowed in this minute."""
        _, remaining = await self._windows.get_window_stats(self._items[what], what, caller)
        return remaining

    def admit_turn(self, of_person: int, in_all: int) -> None:
        """Raise Refused when a person, or the process, is at its limit of concurrent turns."""
        if of_person >= self.settings.turns_at_once:
            raise Refused(
                "rate_limited",
                f"{self.settings.turns_at_once} turns at once are allowed",
                headers={"retry-after": "2"},
            )
        if in_all >= self.settings.turns_in_all:
            raise Refused(
                "full", "the server's limit of concurrent turns is reached", headers=_SOON
            )

    @contextmanager
    def stream(self, owner: str, address: str = "") -> Iterator[None]:
        """Count an open stream of a person, and of an address unless it is "", while the block
        runs."""
        counted = [name for name in (owner, _at(address)) if name]
        self.streams += 1
        self._streams_of.update(counted)
        try:
            yield
        finally:
            self.streams -= 1
            self._streams_of.subtract(counted)
            for name in counted:  # no row for everybody who was ever here
                if not self._streams_of[name]:
                    del self._streams_of[name]

    def admit_stream(self, owner: str, address: str = "") -> None:
        """Raise Refused when a person, an address or the process is at its limit of open
        streams."""
        of_person = max(self.settings.streams_at_once, self.settings.turns_at_once)
        if self._streams_of[owner] >= of_person:
            raise Refused(
                "rate_limited", f"{of_person} open streams of one person are allowed", headers=_SOON
            )
        if address and self._streams_of[_at(address)] >= self.settings.streams_per_address:
            raise Refused(
                "rate_limited",
                f"{self.settings.streams_per_address} open streams of one address are allowed",
                hint="server.limits.streams_per_address; behind a proxy, server.proxies",
                headers=_SOON,
            )
        if self.streams >= self.settings.streams_in_all:
            raise Refused("full", "the server's limit of open streams is reached", headers=_SOON)


def _at(address: str) -> str:
    return f"at {address}" if address else ""


_SOON = {"retry-after": "2"}
