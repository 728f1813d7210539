"""What the host does for the hooks of one turn: `host.ports.HookServices`, made of one module for each group of calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from host.ports import HookTurn
from host.run import Run
from host.trace import span
from host.types.events import Warned
from host.types.search import SearchRequest, SearchResult
from host.types.turn import TurnOptions


def hook_turn(run: Run) -> HookTurn | None:
    """The turn as the hook engine takes it; None when the package has no hook."""
    if run.package.hook is None:
        return None
    options = run.request.options
    context = {
        "chat_id": options.chat_id,
        "assistant_id": run.package.id,
        "locale": options.locale or run.settings.locale,
        "theme": options.theme,
        "route": options.route,
        "referer": options.referer,
        "accept": options.accept,
        "client": options.client.model_dump(),
        "metadata": {**options.metadata, **run.metadata},
        "authorized": run.request.identity.model_dump(),
    }
    machinery = run.machinery
    return HookTurn(
        script=run.package.hook,
        context=context,
        services=TurnServices(run),
        limits=run.settings.hooks.limits,
        now=machinery.now() if machinery.fixed.clock else None,
        seed=machinery.fixed.seed,
    )


def hook_options(options: TurnOptions) -> Mapping[str, Any]:
    """The request's options as hooks see them: what was said, nothing more."""
    return options.model_dump(mode="json", exclude_defaults=True)


@dataclass(frozen=True)
class TurnServices:
    """For one run: searches of its hooks join the turn's pool."""

    run: Run

    async def search(self, request: SearchRequest, /) -> SearchResult:
        result = await self.run.searcher.search(request, "hook")
        self.run.results.append(result)
        return result

    async def search_many(self, requests: Sequence[SearchRequest], mode: Literal["all", "any", "race"], /) -> list[SearchResult]:
        results = await self.run.searcher.search_many(requests, mode, "hook")
        self.run.results += results
        return results

    async def log(self, level: str, message: str, /) -> None:
        with span("log", message, level=level):
            pass

    async def warn(self, code: str, message: str, /) -> None:
        await self.run.channel.send(Warned(code=code, message=message, file=self.run.package.shown))
