"""`time.Sleep`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio

from groundhook.core.errors import UsageError
from groundhook.core.hook_services import HookServices
from groundhook.hooks.api.row import HostCall, pad, quote

LONGEST_SLEEP_MS = 60_000  # beyond that it is a mistake, such as seconds of another host


async def _sleep(call: HostCall, _services: HookServices, arguments: Sequence[Any]) -> str:
    (ms,) = pad(arguments, 1)
    number = isinstance(ms, (int, float)) and not isinstance(ms, bool)
    if not number or not 0 <= ms <= LONGEST_SLEEP_MS:
        raise UsageError(
            f"{call.js}: milliseconds must be a number of 0-{LONGEST_SLEEP_MS}, not"
            f" {ms if number else quote(ms)}"
        )
    await anyio.sleep(ms / 1000)
    return ""


ROWS: tuple[HostCall, ...] = (
    HostCall(
        js="time.Sleep",
        doc="Wait for a number of milliseconds.",
        ts="(ms: number): void",
        run=_sleep,
    ),
)
