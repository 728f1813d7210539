"""The host call of test files: `turn`. Only the engine of `hooks/testing.py` offers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from pydantic_core import to_json

from groundhook.hooks.api.row import HostCall, padded
from groundhook.host.core.errors import Place
from groundhook.host.core.hook_services import HookServices


class Stage(Protocol):
    """The services of a test file, in place of those of a hook. `uncaught` collects errors of
    promises and callbacks that the file does not await."""

    uncaught: list[tuple[str, Place | None]]

    async def turn(self, message: Any, options: Any, /) -> Mapping[str, Any]:
        """Run one turn of the assistant and return its outcome. Raises HostError when the test
        cannot go on."""
        ...

    async def log(self, level: str, message: str, /) -> None: ...

    async def warn(self, code: str, message: str, place: Place | None = None, /) -> None: ...


async def _turn(_call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    message, options = padded(arguments, 2)
    answer = await cast(Stage, services).turn(message, options)
    return to_json(answer, fallback=str, inf_nan_mode="null").decode()


ROWS: tuple[HostCall, ...] = (
    HostCall(
        js="turn",
        doc="One turn of the assistant, from the message to the last event.",
        run=_turn,
        effect=True,
    ),
)
