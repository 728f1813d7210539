"""All rows of a query, for the caller to whom a search returned a part of them.

The signature of a query proves that: it is of the query, the identity and the day, so the server
stores nothing, and no caller can have a query of its own run. The rows are read anew with the
identity, so a signature gives no access. It ends with the day (UTC) after that on which it was
made; a kept chat signs anew when it is read.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass

from groundhook.core.errors import NotPermitted, SourceNotConfigured, UnknownName
from groundhook.core.json_text import NotJson, read_json
from groundhook.core.types.tables import Exported
from groundhook.core.types.turn import Identity
from groundhook.host.app.host import MOST_EXPORTED, Host
from groundhook.host.server.identity.secret import Secret
from groundhook.host.server.reading import reading_scope

_PURPOSE = "rows"


@dataclass(frozen=True)
class WholeTables:
    """The tables of an app. `now` is the time in seconds since 1970."""

    host: Host
    secret: Secret
    now: Callable[[], float] = time.time

    def signature(self, query: str, identity: Identity) -> str:
        """Return the signature with which an identity gets all rows of a query, until the end of
        the next day."""
        return self.secret.signature(_PURPOSE, _offer(query, identity, self._today()))

    async def read(self, query: str, signature: str, identity: Identity) -> Exported:
        """Return all rows of a query, up to `MOST_EXPORTED`, as the identity may see them. Raises
        UnknownName for a query that was not signed for this identity today or yesterday,
        SourceError."""
        today = self._today()
        offers = (_offer(query, identity, day) for day in (today, today - 1))
        if not any(self.secret.is_signature(_PURPOSE, each, signature) for each in offers):
            raise _missing()
        try:
            value = read_json(query)
            scope = reading_scope(self.host, identity)
            return await self.host.database.export(value, MOST_EXPORTED, scope)
        except (NotJson, NotPermitted, SourceNotConfigured) as exc:
            raise _missing() from exc

    def _today(self) -> int:
        return int(self.now() // 86_400)


def _offer(query: str, identity: Identity, day: int) -> str:
    return json.dumps([day, identity.tenant_id, identity.team_id, identity.user_id, query])


def _missing() -> UnknownName:
    return UnknownName("table", "", [], hint="ask the question again")
