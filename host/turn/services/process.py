"""Records, HTML conversion and the package's texts for `Process` in the hooks of one turn:
`core.hook_services.HookRecords`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from groundhook.core.types.search import RecordQuery
from groundhook.host.config.variables import text_at
from groundhook.host.turn.prompt.values import locale_texts
from groundhook.host.turn.run import AssistantRun


@dataclass(frozen=True)
class TurnRecords:
    """Reads records under the request's identity, with the model names of the assistant's
    searches."""

    run: AssistantRun

    async def get(self, query: RecordQuery, /) -> list[dict[str, Any]]:
        searcher = self.run.searcher
        resolved = query.model_copy(update={"model": searcher.names.model(query.model)})
        return await self.run.runtime.records.records(resolved, searcher.scope)

    def markdown(self, html: str, /) -> str:
        return self.run.runtime.markdown(html)

    def text(self, key: str, /) -> str | None:
        return text_at(locale_texts(self.run), key)
