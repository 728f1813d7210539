"""One question under two configurations at the same time: as in the files, and with a trial."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from groundhook.core.errors import HostError
from groundhook.core.ports import Connector
from groundhook.core.types.events import Event, Failed, StreamStart, Text, Trace
from groundhook.core.types.turn import Identity, Message
from groundhook.host.app.host import Host
from groundhook.host.config.trial import Trial
from groundhook.host.testing.answer import TurnRequests
from groundhook.host.testing.frozen_web import with_frozen_web
from groundhook.host.testing.stage import WatchedModel

OnText = Callable[[str], Awaitable[None]]


@dataclass
class Side:
    """What one configuration made of a question. `prompt` are the messages of the first call of the
    answering model; `calls` counts its calls."""

    events: list[Event] = field(default_factory=list)
    prompt: list[dict[str, Any]] = field(default_factory=list)
    calls: int = 0

    @property
    def ranking(self) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
        """The entries of the last ranking, best first, and those that it dropped."""
        pools = [
            each.node.data
            for each in self.events
            if isinstance(each, Trace) and each.node.type == "merge" and "entries" in each.node.data
        ]
        last = pools[-1] if pools else {}
        return list(last.get("entries", ())), list(last.get("dropped", ()))


@dataclass(frozen=True, kw_only=True)
class SideBySide:
    """Questions to one assistant, for one caller. The web is asked once for each query."""

    host: Host
    assistant: str
    identity: Identity
    trial: Trial

    @staticmethod
    def of(host: Host, assistant: str, identity: Identity, trial: Trial) -> SideBySide:
        """Return the questions of a host as it is now."""
        frozen = replace(host, runtime=with_frozen_web(host.runtime))
        return SideBySide(host=frozen, assistant=assistant, identity=identity, trial=trial)

    async def ask(
        self, messages: Sequence[Message], column: int, on_text: OnText | None = None
    ) -> Side:
        """Return what the files (column 0) or the trial (1) make of a conversation. Errors are
        events. `on_text` is called with each piece of the answer as it comes."""
        side, requests = Side(), TurnRequests()
        runtime = self.host.runtime

        def connector(id: str) -> Connector:
            return WatchedModel(id, runtime.connectors(id), requests)

        host = replace(self.host, runtime=replace(runtime, connectors=connector))
        try:
            turn = host.stream(
                self.assistant,
                list(messages),
                identity=self.identity,
                trial=self.trial if column else None,
            )
            async with turn as events:
                async for event in events:
                    side.events.append(event)
                    if on_text is not None and isinstance(event, Text):
                        await on_text(event.delta)
        except HostError as exc:
            failed = Failed(code=exc.code, message=exc.message, hint=exc.hint)
            side.events += [StreamStart(assistant_id=self.assistant), failed]
        calls = [call for _, call in requests.models if not call.is_step]
        side.calls = len(calls)
        side.prompt = [each.wire() for each in calls[0].messages] if calls else []
        return side
