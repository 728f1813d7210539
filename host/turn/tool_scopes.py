"""Makes the `ToolScope` of each tool call, in a turn or outside of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from groundhook.core.channel import Channel
from groundhook.core.ports import Scope
from groundhook.core.settings import Settings
from groundhook.core.tool_ports import ToolScope
from groundhook.core.types.events import (
    DocumentsSearchCompleted,
    DocumentsSearchStarted,
    ToolProgress,
)
from groundhook.host.tools.offers import ToolOffer
from groundhook.host.turn.completions import AppModels
from groundhook.host.turn.context import Runtime

_EVENTS: dict[str, type[ToolProgress | DocumentsSearchStarted | DocumentsSearchCompleted]] = {
    "tool_progress": ToolProgress,
    "search_documents.started": DocumentsSearchStarted,
    "search_documents.completed": DocumentsSearchCompleted,
}
_SET_BY_HOST = {"type", "turn_id", "at_ms", "call_id", "name"}


@dataclass(frozen=True)
class CallProgress:
    """The progress of one call, as events of a channel: `core.tool_ports.Progress`."""

    channel: Channel
    call_id: str
    name: str

    async def __call__(self, kind: str = "tool_progress", /, **data: Any) -> None:
        if kind not in _EVENTS:
            raise ValueError(f"no event {kind!r} of tools (known: {', '.join(_EVENTS)})")
        event = _EVENTS[kind]
        if strange := (data.keys() - event.model_fields.keys()) | (data.keys() & _SET_BY_HOST):
            raise ValueError(f"the event {kind!r} has no key {sorted(strange)[0]!r}")
        name = {"name": self.name} if event is ToolProgress else {}
        await self.channel.send(event(call_id=self.call_id, **name, **data))


@dataclass(frozen=True)
class ToolScopes:
    """Makes the scopes of the calls of one request: `host.tools.offers.ScopeOf`. Warnings of a call
    go into its outcome and to `scope.warn`."""

    runtime: Runtime
    scope: Scope
    settings: Settings
    channel: Channel
    metadata: Mapping[str, Any]
    locale: str

    def __call__(self, offer: ToolOffer, call_id: str, warnings: list[str]) -> ToolScope:
        # A toolkit's names are those of its own folder, for every assistant that lists it.
        owner = offer.assistant if offer.toolkit else self.scope.assistant_id
        runtime = self.runtime

        async def warn(code: str, message: str) -> None:
            warnings.append(message)
            await self.scope.warn(code, message)

        common = {each.name: getattr(self.scope, each.name) for each in fields(Scope)}
        common["warn"] = warn
        within = Scope(**common)
        return ToolScope(
            **common,
            metadata=self.metadata,
            locale=self.locale,
            call_id=call_id,
            progress=CallProgress(self.channel, call_id, offer.name),
            collections=runtime.collections(within, owner),
            models=AppModels(runtime.app, owner, runtime.connectors),
            web=runtime.web_clients.of(self.settings.http),
        )
