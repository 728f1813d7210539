"""`console` and `log`, which write lines to the turn's trace, and `time.Sleep`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio

from groundhook.hooks.api.row import HostCall, Run, padded, quoted
from groundhook.hooks.printf import printf
from groundhook.host.core.errors import UsageError
from groundhook.host.core.hook_services import HookServices

LONGEST_SLEEP_MS = 60_000


def _log(level: str) -> Run:
    async def run(_call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
        await services.log(level, printf(arguments))
        return ""

    return run


async def _sleep(call: HostCall, _services: HookServices, arguments: Sequence[Any]) -> str:
    (ms,) = padded(arguments, 1)
    number = isinstance(ms, (int, float)) and not isinstance(ms, bool)
    if not number or not 0 <= ms <= LONGEST_SLEEP_MS:
        raise UsageError(
            f"{call.js}: milliseconds must be a number of 0-{LONGEST_SLEEP_MS}, not"
            f" {ms if number else quoted(ms)}"
        )
    await anyio.sleep(ms / 1000)
    return ""


CONSOLE = {
    "log": "info",
    "info": "info",
    "debug": "debug",
    "trace": "debug",
    "warn": "warn",
    "error": "error",
    "dir": "info",
    "table": "info",
}
LOG = {"Trace": "debug", "Debug": "debug", "Info": "info", "Warn": "warn", "Error": "error"}

ROWS: tuple[HostCall, ...] = (
    *(
        HostCall(
            js=f"console.{name}",
            doc=f"Write a line to the log ({level}).",
            run=_log(level),
            prints=True,
        )
        for name, level in CONSOLE.items()
    ),
    *(
        HostCall(
            js=f"log.{name}",
            doc=f"Write a line to the log ({level}), printf style.",
            run=_log(level),
            prints=True,
        )
        for name, level in LOG.items()
    ),
    HostCall(
        js="time.Sleep", doc="Wait a number of milliseconds.", ts="(ms: number): void", run=_sleep
    ),
)
