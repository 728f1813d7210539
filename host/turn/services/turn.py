"""The services of the host for the hooks of one turn, one module for each group of calls:
`core.hook_services.HookServices`."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import anyio

from groundhook.core.errors import HookThrew, HostError, Place
from groundhook.core.hook_engine import (
    HookAsked,
    HookReply,
    HookScript,
    HookTurn,
)
from groundhook.core.trace import span
from groundhook.core.types.events import Warned
from groundhook.core.types.search import SearchRequest, SearchResult
from groundhook.host.turn.run import AssistantRun
from groundhook.host.turn.services.agents import Calls
from groundhook.host.turn.services.http import TurnWeb
from groundhook.host.turn.services.memory import TurnMemory
from groundhook.host.turn.services.output import Output
from groundhook.host.turn.services.process import TurnRecords, TurnScripts
from groundhook.host.turn.services.servers import ServerCalls
from groundhook.host.turn.services.tools import TurnTools
from groundhook.host.turn.services.trace import HookNodes

if TYPE_CHECKING:
    from groundhook.core.types.chats import Decision
    from groundhook.host.turn.services.chat import TurnChat

T = TypeVar("T")


@dataclass(frozen=True)
class TurnServices:
    """The services of one run. Searches of its hooks join the turn's pool."""

    run: AssistantRun
    output: Output
    trace: HookNodes
    calls: Calls
    servers: ServerCalls
    tools: TurnTools
    _unknown: set[str] = field(default_factory=set)  # messages of `unknown_option`

    @staticmethod
    def of(run: AssistantRun) -> TurnServices:
        return TurnServices(
            run,
            Output(run.outbox),
            HookNodes(run.channel),
            Calls(run),
            ServerCalls.of(run),
            TurnTools(run, run.settings.tools),
        )

    def turn(self, script: HookScript) -> HookTurn:
        """Return the turn in the form that the hook engine takes."""
        run, runtime, options = self.run, self.run.runtime, self.run.request.options
        context = {
            "chat_id": options.chat_id,
            "assistant_id": run.package.id,
            "question": run.question,
            "locale": run.locale,
            "theme": run.changed.get("theme") or options.theme,
            "route": run.changed.get("route") or options.route,
            "referer": options.referer,
            "accept": options.accept,
            "client": options.client.model_dump(),
            "metadata": run.request_metadata,
            "authorized": run.request.identity.model_dump(),
        }
        kept = run.request.conversation
        return HookTurn(
            script=script,
            context=context,
            services=self,
            limits=run.settings.hooks.limits,
            now=runtime.now() if runtime.clock_is_fixed else None,
            seed=runtime.randomness.seed,
            trace_id=run.channel.turn_id,
            journal=kept.journal if kept else (),
            reply=_reply(kept.decided) if kept else None,
        )

    def options(self) -> Mapping[str, Any]:
        """Return the request's options for hooks: only those that were set."""
        return self.run.request.options.model_dump(mode="json", exclude_defaults=True)

    @cached_property
    def memory(self) -> TurnMemory:
        return TurnMemory(
            self.run.runtime.memory.of(self.run.request.identity, self.run.request.options.chat_id)
        )

    @cached_property
    def chat(self) -> TurnChat:
        # Imported here because few hooks read the conversation.
        from groundhook.host.turn.services.chat import TurnChat

        answer = self.run.answer
        return TurnChat(self.run.request, lambda: answer.finish_reason == "approval_required")

    @cached_property
    def web(self) -> TurnWeb:
        return TurnWeb(self.run.runtime.web_clients, self.run.settings.http)

    @cached_property
    def records(self) -> TurnRecords:
        return TurnRecords(self.run)

    @cached_property
    def scripts(self) -> TurnScripts:
        return TurnScripts(self.run)

    async def during(self, name: str, hook: Awaitable[T]) -> T:
        """Await a hook in its trace node. Calls and streams that it left open end with it."""
        failed: HostError | HookAsked | None = None
        with span("hook", name) as node, self.trace.under(node):
            try:
                async with anyio.create_task_group() as tasks:
                    self.calls.tasks = tasks
                    try:
                        returned = await hook
                    except (
                        HostError,
                        HookAsked,
                    ) as exc:  # raised below, so that the group does not wrap it
                        failed = exc
                    tasks.cancel_scope.cancel()
            finally:
                self.calls.end()
                self.output.close()
            if isinstance(failed, HookThrew):
                raise self.chat.why(failed)
            if failed is not None:
                raise failed
        return returned

    async def search(self, request: SearchRequest, /) -> SearchResult:
        result = await self.run.searcher.search(request, "hook")
        self.run.results.append(result)
        return result

    async def search_many(
        self, requests: Sequence[SearchRequest], mode: Literal["all", "any", "race"], /
    ) -> list[SearchResult]:
        results = await self.run.searcher.search_many(requests, mode, "hook")
        self.run.results += results
        return results

    async def log(self, level: str, message: str, /) -> None:
        with span("log", message, level=level):
            pass
        # Wait, so that a hook cannot fill the memory with lines that the reader has not read yet.
        await self.run.channel.wait_for_reader()

    async def warn(self, code: str, message: str, place: Place | None = None, /) -> None:
        if code == "unknown_option":  # once for each: a hook may send in a loop
            if message in self._unknown:
                return
            self._unknown.add(message)
        at = place or Place(self.run.package.hook_file)
        await self.run.channel.send(
            Warned(code=code, message=message, file=at.file, line=at.line, column=at.column)
        )


def _reply(decided: Sequence[Decision]) -> HookReply | None:
    """Return the user's answer to the question of a hook; None for decisions about calls."""
    answered = next((each for each in decided if each.question), None)
    if answered is None:
        return None
    return HookReply(answered.reason if answered.approved else None)
