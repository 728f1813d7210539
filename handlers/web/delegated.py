"""Web search by an assistant or an MCP tool, as a provider for one search."""

from __future__ import annotations

from groundhook.core.errors import DelegateError, SourceError
from groundhook.core.ports import Scope
from groundhook.core.types.delegation import WebAsk
from groundhook.core.types.uses import WEB
from groundhook.core.types.web_providers import WebHit, WebQuery

MAX_RESULTS = 50  # largest limit that a delegate receives


class DelegateSearch:
    """A provider for one search of one turn. `delegate` is an assistant's id or
    `mcp:<server>[.<tool>]`. Its answers depend on the turn's user and are not cached."""

    def __init__(self, delegate: str, scope: Scope) -> None:
        self._delegate = delegate
        self._scope = scope

    async def search(self, ask: WebQuery, /) -> list[WebHit]:
        """Return the delegate's pages. Raises SourceError if it fails."""
        arguments = WebAsk(
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
                self._delegate,
                arguments,
                timeout_ms=max(int(ask.timeout * 1000), 1),
                hint="search.web.timeout_ms",
            )
        except DelegateError as exc:
            raise SourceError(exc.message, hint=exc.hint) from exc
        return [
            WebHit(
                url=page.url,
                title=page.title,
                content=page.content,
                score=page.score,
                published=page.published,
            )
            for page in answer.results
        ]
