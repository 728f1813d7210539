"""Does when the server starts what the first request would otherwise wait for: compiles hooks,
opens the embedding model and the stores, reads the vocabularies of databases, makes the clients of
language models, and builds what turns import and validate with."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import get_args

from groundhook.core.errors import HostError
from groundhook.core.types.events import Event
from groundhook.core.types.turn import (
    Completion,
    CreateReturn,
    NextPayload,
    connector_ids,
)
from groundhook.host.app.host import Host
from groundhook.host.output.dialects.native import Answer
from groundhook.host.server.request_body import TurnRequest

log = logging.getLogger("groundhook.server")

# Validators are built when they are first used, most of a turn's in 30 ms.
VALUES = (TurnRequest, CreateReturn, Completion, NextPayload, Answer, *get_args(get_args(Event)[0]))


async def warm_up(host: Host, assistants: list[str]) -> None:
    """Use every local part once. A part that cannot be used raises its error again where it is
    needed. Sends no request to another machine."""
    for value in VALUES:
        value.model_rebuild()
    done: set[str] = set()
    for id in assistants:
        try:
            package, settings = host.app.package(id), host.settings(id)
        except HostError as exc:
            log.warning("the assistant %s cannot be used: %s", id, exc)
            continue
        for name in connector_ids(settings.connector):
            connector = host.app.connector_id(id, name)
            if f"connector:{connector}" not in done:
                done.add(f"connector:{connector}")
                _make(host, connector)
        if package.hook is not None:
            import_module("groundhook.host.turn.services.turn")
            await _quietly(lambda script=package.hook: host.runtime.hooks.check(script))  # type: ignore[misc]
        for type, names in (("kb", settings.kb.collections), ("db", settings.db.models)):
            fresh = [name for name in names or () if f"{type}:{id}:{name}" not in done]
            done.update(f"{type}:{id}:{name}" for name in fresh)
            if fresh:
                await host.search({"type": type, "query": "hello", "limit": 1}, assistant=id)


def _make(host: Host, connector: str) -> None:
    try:
        host.runtime.connectors(connector)
    except HostError as exc:
        log.warning("%s", exc)


async def _quietly(work: Callable[[], Awaitable[object]]) -> None:
    try:
        await work()
    except HostError as exc:
        log.warning("%s", exc)
