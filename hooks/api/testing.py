"""The host call of test files: `turn`. Only the engine of `hooks/testing.py` offers it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from pydantic_core import to_json

from groundhook.core.hook_services import HookServices
from groundhook.core.hook_tests import SuiteServices
from groundhook.hooks.api.row import HostCall, pad


async def _run_turn(_call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    message, options = pad(arguments, 2)
    answer = await cast(SuiteServices, services).turn(message, options)
    # `fallback`: an answer may hold values of a plug-in that have no JSON form.
    return to_json(answer, fallback=str, inf_nan_mode="null").decode()


ROWS: tuple[HostCall, ...] = (
    HostCall(
        js="turn",
        doc=(
            "Run one turn of the assistant, from the message to the last event; return its outcome."
        ),
        run=_run_turn,
        effect=True,
    ),
)
