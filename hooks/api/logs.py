"""`console` and `log`, which write lines to the turn's trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groundhook.core.hook_services import HookServices
from groundhook.hooks.api.row import HostCall, RunCall
from groundhook.hooks.printf import printf


def _log(level: str) -> RunCall:
    async def run(_call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
        await services.log(level, printf(arguments))
        return ""

    return run


# The levels of the trace; `dir` and `table` print their value as one line, like `log`.
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
            again=True,
        )
        for name, level in CONSOLE.items()
    ),
    *(
        HostCall(
            js=f"log.{name}",
            doc=f"Write a line to the log ({level}), printf style.",
            run=_log(level),
            prints=True,
            again=True,
        )
        for name, level in LOG.items()
    ),
)
