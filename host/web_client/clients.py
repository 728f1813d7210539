"""The guarded clients of an app: one for each set of `http` settings, created by the first use and
closed with the app.

The HTTP library is imported with the first client, since importing it is slow.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from groundhook.core.ports import WebClient
from groundhook.core.settings import HttpSettings

if TYPE_CHECKING:
    from groundhook.host.web_client.client import GuardedClient


class WebClients:
    """Clients by settings."""

    def __init__(self) -> None:
        self._clients: dict[HttpSettings, GuardedClient] = {}

    def of(self, settings: HttpSettings) -> WebClient:
        """Return the client for these settings."""
        if settings not in self._clients:
            # Imported here because most turns send no request.
            from groundhook.host.web_client.client import GuardedClient

            self._clients[settings] = GuardedClient(settings)
        return self._clients[settings]

    async def close(self) -> None:
        # A stack, so that a client that fails to close does not keep the others open.
        async with AsyncExitStack() as stack:
            for client in self._clients.values():
                await stack.enter_async_context(client)
        self._clients.clear()


@asynccontextmanager
async def open_web_clients() -> AsyncIterator[WebClients]:
    """Open the clients of an app; leaving closes all connections."""
    clients = WebClients()
    try:
        yield clients
    finally:
        await clients.close()
