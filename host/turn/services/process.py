"""What hooks call by `Process`: records, HTML conversion and the package's texts
(`core.hook_services.HookRecords`), and functions of scripts (`HookScripts`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from groundhook.core.types.search import RecordQuery
from groundhook.host.config.variables import text_at
from groundhook.host.turn.package_tools import FunctionNames
from groundhook.host.turn.prompt.values import locale_texts
from groundhook.host.turn.run import AssistantRun

T = TypeVar("T")


@dataclass(frozen=True)
class TurnRecords:
    """Reads records under the request's identity, with the model names of the assistant's
    searches."""

    run: AssistantRun

    async def get(self, query: RecordQuery, /) -> list[dict[str, Any]]:
        searcher = self.run.searcher
        resolved = query.model_copy(update={"model": await searcher.model(query.model)})
        return await self.run.runtime.records.records(resolved, searcher.scope)

    async def markdown(self, html: str, /) -> str:
        return await self.run.runtime.texts.html(html)

    async def parse(self, parser: Callable[[str], T], text: str, /) -> T:
        return await self.run.runtime.texts.parse(parser, text)

    def text(self, key: str, /) -> str | None:
        return text_at(locale_texts(self.run), key)


@dataclass(frozen=True)
class TurnScripts:
    """Calls functions of the package that the turn is of, and of the app's scripts."""

    run: AssistantRun

    async def call(self, name: str, arguments: Sequence[Any], /) -> Any:
        run = self.run
        names = FunctionNames(run.runtime.app, run.package, run.runtime.hooks)
        found = await names.find(name)
        return await run.call_script(run, found.script, found.function, arguments)
