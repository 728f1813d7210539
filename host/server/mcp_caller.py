"""Who sent a request to the MCP server, and what that reaches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass

from groundhook.host.app.host import Host
from groundhook.host.core.errors import HostError
from groundhook.host.core.settings import Settings
from groundhook.host.core.types.search import SearchType
from groundhook.host.core.types.turn import Identity
from groundhook.host.search.plan import plan


@dataclass(frozen=True, kw_only=True)
class McpCaller:
    """Who calls. With an `assistant` it is that assistant's tools and sources; without, those of
    the app. With `assistants` a caller without a choice reaches only these, by `ask` and by the
    tools for sources (None: everything). `admit` is entered around a whole answer, `count` is
    called before a tool of the app or the web; both raise HostError above the limits of the
    caller."""

    identity: Identity = Identity()
    assistant: str = ""
    assistants: Sequence[str] | None = None
    admit: Callable[[], AbstractAsyncContextManager[object]] = nullcontext
    count: Callable[[], Awaitable[None]] | None = None

    @property
    def reaches_all(self) -> bool:
        """Whether everything of the app is reached."""
        return not self.assistant and self.assistants is None

    def among(self, host: Host) -> list[str]:
        """Return the assistants that are reached."""
        if self.assistant:
            return [self.assistant]
        return host.assistants() if self.assistants is None else list(self.assistants)

    def collections(self, host: Host) -> list[str]:
        """Return the full ids of the collections that are reached, in their order."""
        app = host.app
        if self.reaches_all:
            return sorted(app.collections)
        found: set[str] = set()
        for assistant, settings in self._settings(host):
            found |= {id for id in app.collections if app.owner_of(id) == assistant}
            for name in settings.kb.collections:
                found.add(app.resolve_collection(assistant, name).id)
        return sorted(found)

    def models(self, host: Host) -> set[str]:
        """Return the full ids of the models that are reached."""
        app = host.app
        if self.reaches_all:
            return set(app.models)
        found: set[str] = set()
        for assistant, settings in self._settings(host):
            found |= {id for id in app.models if app.owner_of(id) == assistant}
            for name in settings.search.db.models or settings.db.models:
                found.add(app.resolve_model(assistant, name).id)
        return found

    def searches(self, host: Host) -> list[tuple[SearchType, str]]:
        """Return the searches of databases and the web that the assistants run before each answer,
        with the assistant; equal ones of the web once."""
        found: dict[str, tuple[SearchType, str]] = {}
        for id, settings in self._settings(host):
            for type in plan(None, None, settings, 0, ()).types:
                same = repr((settings.search.web, settings.uses)) if type == "web" else id
                if type != "kb":
                    found.setdefault(f"{type} {same}", (type, id))
        return list(found.values())

    def _settings(self, host: Host) -> Iterator[tuple[str, Settings]]:
        """Yield the assistants that are reached, without those whose files are broken."""
        for id in self.among(host):
            try:
                yield id, host.settings(id)
            except HostError:
                continue

    async def counted(self) -> None:
        """Count a call against the limits of the caller. Raises HostError."""
        if self.count is not None:
            await self.count()
