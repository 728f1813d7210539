"""All rows of a query, for the caller to whom a search returned a part of them.

The caller gets the query sealed, for the identity and the day, so the server stores nothing, no
caller can have a query of its own run, and none reads conditions that a hook has added. The rows
are read anew with the identity, so a token gives no access. It ends with the day (UTC) after that
on which it was made; a kept chat seals anew when it is read.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass

from groundhook.core.errors import NotPermitted, SourceNotConfigured, UnknownName
from groundhook.core.json_text import NotJson, read_json
from groundhook.core.types.search import LongTable
from groundhook.core.types.tables import Exported
from groundhook.core.types.turn import Identity
from groundhook.host.app.host import MOST_EXPORTED, Host
from groundhook.host.server.identity.secret import Secret
from groundhook.host.server.reading import reading_scope


@dataclass(frozen=True)
class WholeTables:
    """The tables of an app. `now` is the time in seconds since 1970."""

    host: Host
    secret: Secret
    now: Callable[[], float] = time.time

    def token(self, table: LongTable, identity: Identity) -> str:
        """Return the token with which an identity gets all rows of a table, until the end of the
        next day."""
        return self.secret.seal(
            _for(identity, self._today()), json.dumps([table.language, table.id])
        )

    async def read(self, token: str, identity: Identity) -> Exported:
        """Return all rows of a table, up to `MOST_EXPORTED`, as the identity may see them. Raises
        UnknownName for a token that was not made for this identity today or yesterday,
        SourceError."""
        today = self._today()
        opened = (self.secret.unseal(_for(identity, day), token) for day in (today, today - 1))
        text = next(filter(None, opened), None)
        if text is None:
            raise _missing()
        try:
            language, query = read_json(text)
            scope = reading_scope(self.host, identity)
            return await self.host.database.export(
                read_json(query), MOST_EXPORTED, scope, language=language
            )
        except (NotJson, NotPermitted, SourceNotConfigured) as exc:
            raise _missing() from exc

    def _today(self) -> int:
        return int(self.now() // 86_400)


def _for(identity: Identity, day: int) -> str:
    return json.dumps(["rows", day, identity.tenant_id, identity.team_id, identity.user_id])


def _missing() -> UnknownName:
    return UnknownName("table", "", [], hint="ask the question again")
