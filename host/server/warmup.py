"""What the first visitor would wait for, done when the server starts: hooks are compiled, the
embedding model and the stores are opened, vocabularies of databases are read."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from groundhook.host.app.host import Host
from groundhook.host.core.errors import HostError

log = logging.getLogger("groundhook.server")


async def warm_up(host: Host, assistants: list[str]) -> None:
    """Use everything that is local once. What cannot be used fails again, in words, where it is
    asked for; nothing outside is requested."""
    done: set[str] = set()
    for id in assistants:
        try:
            package, settings = host.app.package(id), host.settings(id)
        except HostError as exc:
            log.warning("the assistant %s cannot be used: %s", id, exc)
            continue
        if package.hook is not None:
            await _quietly(lambda script=package.hook: host.runtime.hooks.check(script))  # type: ignore[misc]
        for type, names in (("kb", settings.kb.collections), ("db", settings.db.models)):
            fresh = [name for name in names or () if f"{type}:{id}:{name}" not in done]
            done.update(f"{type}:{id}:{name}" for name in fresh)
            if fresh:
                await host.search({"type": type, "query": "hello", "limit": 1}, assistant=id)


async def _quietly(work: Callable[[], Awaitable[object]]) -> None:
    try:
        await work()
    except HostError as exc:
        log.warning("%s", exc)
