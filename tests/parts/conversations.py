"""Hosts with kept conversations, and what was read in them."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import anyio

from groundhook import Host, open_host
from groundhook.core.types.events import Event
from groundhook.host.llm.scripted import ScriptedConnector
from groundhook.host.testing.canned import CannedSource
from tests.parts.turns import kb, scripted, web

ADA = {"tenant_id": "acme", "user_id": "ada"}


@asynccontextmanager
async def opened(
    app: Path, *script: Any, model: ScriptedConnector | None = None, **more: Any
) -> AsyncIterator[Host]:
    sources = more.pop("sources", {"kb": kb(), "web": web(), "db": CannedSource({})})
    with anyio.fail_after(more.pop("patience", 20)):
        async with open_host(
            app,
            environment={},
            sources=sources,
            connectors={"script": model or scripted(*script)},
            **more,
        ) as host:
            yield host


def end_leases(app: Path) -> None:
    """Move the leases of turns under way into the past, instead of waiting for their end."""
    with closing(sqlite3.connect(app / ".groundhook/chats.sqlite")) as db, db:
        db.execute("update turns set lease_until = 1 where state = 'running'")


async def read(turn: Any) -> list[Event]:
    async with turn as events:
        return [event async for event in events]
