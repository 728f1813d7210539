"""`http` for the hooks of one turn: `core.hook_services.HookWeb` over the guarded client,
under the settings of their assistant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from groundhook.core.settings import HttpSettings
from groundhook.core.trace import span
from groundhook.host.web_client.clients import WebClients


@dataclass(frozen=True)
class TurnWeb:
    """Sends the requests of one turn's hooks."""

    clients: WebClients
    settings: HttpSettings

    async def request(
        self,
        method: str,
        url: str,
        /,
        *,
        query: Mapping[str, Any],
        headers: Mapping[str, str],
        body: Any,
    ) -> dict[str, Any]:
        """Send a request; return its answer for JavaScript. The trace shows the URL without its
        query, which may contain a key."""
        with span("http", f"{method.upper()} {url.partition('?')[0]}") as node:
            text, json = (body, None) if isinstance(body, str) else (None, body)
            client = self.clients.of(self.settings)
            answer = await client.request(
                method, url, query=query, headers=headers, body=text, json=json
            )
            node.data.update(status=answer.status, bytes=len(answer.body))
        return {
            "status": answer.status,
            "code": answer.status,
            "message": "" if answer.status < 400 else _describe(answer.status),
            "url": answer.url,
            "headers": dict(answer.headers),
            "data": answer.value,
        }


def _describe(status: int) -> str:
    try:
        return f"HTTP {status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"HTTP {status}"
