"""Turns with a hook."""

from __future__ import annotations

from typing import Any

from groundhook.core.types.events import Event
from tests.conftest import MakeApp
from tests.parts.turns import ASSISTANT, app_with, run


async def hooked(
    make_app: MakeApp, hook: str, package: str = ASSISTANT, **requested: Any
) -> list[Event]:
    return await run(app_with(make_app, package, index_ts=hook), **requested)
