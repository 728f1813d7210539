"""The caller of a request to the MCP server, and what it may use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass

from groundhook.core.errors import HostError
from groundhook.core.settings import Settings
from groundhook.core.types.search import SearchType
from groundhook.core.types.turn import Identity
from groundhook.host.app.host import Host
from groundhook.host.search.plan import plan


@dataclass(frozen=True, kw_only=True)
class McpCaller:
    """The caller of a request. With an `assistant` it uses the tools and sources of that assistant,
    otherwise those of the app. `assistants` lists the assistants that it may use by `ask` and by
    the tools for sources; None: all of them. `admit` is entered around a whole answer, and `count`
    is called before a tool of the app or a web search; both raise HostError above the limits of the
    caller."""

    identity: Identity = Identity()
    assistant: str = ""
    assistants: Sequence[str] | None = None
    admit: Callable[[], AbstractAsyncContextManager[object]] = nullcontext
    count: Callable[[], Awaitable[None]] | None = None

    @property
    def reaches_all(self) -> bool:
        """Whether the caller may use everything of the app."""
        return not self.assistant and self.assistants is None

    def assistants_of(self, host: Host) -> list[str]:
        """Return the assistants that the caller may use."""
        if self.assistant:
            return [self.assistant]
        return host.assistants() if self.assistants is None else list(self.assistants)

    def collections(self, host: Host) -> list[str]:
        """Return the full ids of the collections that the caller may search, in order."""
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
        """Return the full ids of the models that the caller may search."""
        app = host.app
        if self.reaches_all:
            return set(app.models)
        found: set[str] = set()
        for assistant, settings in self._settings(host):
            found |= {id for id in app.models if app.owner_of(id) == assistant}
            for name in settings.search.db.models or settings.db.models:
                found.add(app.model_id(assistant, name))
        return found

    def searches(self, host: Host) -> list[tuple[SearchType, str]]:
        """Return the type and the assistant of each search of databases and the web that the
        assistants run before an answer. Web searches with equal settings are returned once."""
        found: dict[str, tuple[SearchType, str]] = {}
        for id, settings in self._settings(host):
            for type in plan(None, None, settings, 0, ()).types:
                key = repr((settings.search.web, settings.uses)) if type == "web" else id
                if type != "kb":
                    found.setdefault(f"{type} {key}", (type, id))
        return list(found.values())

    def _settings(self, host: Host) -> Iterator[tuple[str, Settings]]:
        """Yield the ids and settings of the assistants that the caller may use, without those whose
        files are invalid."""
        for id in self.assistants_of(host):
            try:
                yield id, host.settings(id)
            except HostError:
                continue

    async def count_call(self) -> None:
        """Count a call against the limits of the caller. Raises HostError."""
        if self.count is not None:
            await self.count()
