"""Pages of the web that an assistant or an MCP tool finds: a provider like any other, for one
search."""

from __future__ import annotations

from groundhook.handlers.web.providers import Ask, Hit
from groundhook.host.core.errors import DelegateError, SourceError
from groundhook.host.core.ports import Scope
from groundhook.host.core.types.delegation import WEB, WebAsk

MOST = 50  # results that somebody who does the search is asked for


class Delegated:
    """`doer` is an assistant's id or `mcp:<server>[.<tool>]`. What it answers depends on who asks,
    and is not kept."""

    def __init__(self, doer: str, scope: Scope) -> None:
        self._doer = doer
        self._scope = scope

    async def search(self, ask: Ask, /) -> list[Hit]:
        asked = WebAsk(
            query=ask.query,
            limit=ask.limit,
            sites=ask.sites,
            exclude_sites=ask.exclude_sites,
            time_range=ask.time_range,
            language=ask.language,
        )
        try:
            answer = await self._scope.delegates.ask(
                WEB,
                self._doer,
                asked,
                timeout_ms=max(int(ask.timeout * 1000), 1),
                hint="search.web.timeout_ms",
            )
        except DelegateError as exc:
            raise SourceError(exc.message, hint=exc.hint) from exc
        return [
            Hit(
                url=page.url,
                title=page.title,
                content=page.content,
                score=page.score,
                published=page.published,
            )
            for page in answer.results
        ]
