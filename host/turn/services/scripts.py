"""Calls of functions in a package's own scripts: its tools, and what hooks call by `Process`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from groundhook.core.errors import HookError
from groundhook.core.exception_groups import unwrap_exception_groups
from groundhook.core.hook_engine import HookScript, ScriptFunction
from groundhook.host.turn.run import AssistantRun

MOST_OPEN = 16  # functions of one assistant's turn that run at the same time, or inside each other


async def call_script(
    run: AssistantRun,
    script: HookScript,
    function: ScriptFunction,
    arguments: Mapping[str, Any] | Sequence[Any],
) -> Any:
    """Call a function in an isolate of its own: `host.turn.run.CallScript`. Raises HookError."""
    if run.open_scripts.count >= MOST_OPEN:
        raise HookError(
            f"more than {MOST_OPEN} functions of the package run at the same time",
            place=function.place,
            hint="a function that calls itself through the host never ends",
        )
    # Imported here because most turns call no function of a script.
    from groundhook.host.turn.services.turn import TurnServices

    services = TurnServices.of(run)
    run.open_scripts.count += 1
    try:
        with unwrap_exception_groups():
            async with run.runtime.hooks.open(services.turn(script)) as session:
                called = session.call(function, arguments)
                return await services.during(f"{function.place.file} {function.name}", called)
    finally:
        run.open_scripts.count -= 1
