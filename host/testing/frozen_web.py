"""The web as it was when it was first asked, so that two configurations answer from the same
results."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import anyio

from groundhook.core.errors import HostError
from groundhook.core.ports import Handler, Scope, SourceResult
from groundhook.core.registry import Registry
from groundhook.core.types.search import SEARCH_TYPES, SearchRequest
from groundhook.host.search.searcher import SearchPlugins
from groundhook.host.turn.context import Runtime


@dataclass
class _Answer:
    ready: anyio.Event = field(default_factory=anyio.Event)
    result: SourceResult | HostError | None = None


@dataclass
class FrozenSource:
    """A `Handler` that asks another one each question once, and repeats the answer or the error.
    Searches at the same time wait for the first; if that is cancelled, the next one asks."""

    real: Handler
    _answers: dict[str, _Answer] = field(default_factory=dict)

    async def search(self, request: SearchRequest, scope: Scope, /) -> SourceResult:
        key = f"{request.model_dump_json()} {scope.identity.model_dump_json()}"
        while (answer := self._answers.get(key)) is not None:
            await answer.ready.wait()
            if isinstance(answer.result, HostError):
                raise answer.result
            if answer.result is not None:
                return answer.result
        return await self._ask(key, lambda: self.real.search(request, scope))

    async def _ask(self, key: str, real: Callable[[], Awaitable[SourceResult]]) -> SourceResult:
        answer = self._answers[key] = _Answer()
        try:
            answer.result = result = await real()
        except HostError as exc:
            answer.result = exc
            raise
        finally:
            if answer.result is None:
                del self._answers[key]
            answer.ready.set()
        return result


def with_frozen_web(runtime: Runtime) -> Runtime:
    """Return a runtime whose web searches are answered once each."""
    handlers = Registry[Handler]("search type")
    for type in SEARCH_TYPES:
        real = runtime.plugins.handlers.get(type)
        handlers.add(type, FrozenSource(real) if type == "web" else real)
    plugins: SearchPlugins = replace(runtime.plugins, handlers=handlers)
    return replace(runtime, plugins=plugins)
