"""A connection to PostgreSQL whose waits have a limit. Needs the extra `postgresql`."""

from __future__ import annotations

import time
from typing import Any

import psycopg

from groundhook.host.chats.storage.sql import SqlRow


class BoundedConnection(psycopg.Connection[SqlRow]):
    """Waits at most `answer_s` seconds for the answer to a statement; None: without a limit. After
    that the connection must be closed: the answer would arrive in place of a later one."""

    answer_s: float | None = None

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Run a generator of the driver. Raises OperationalError after `answer_s`."""
        began, limit = time.monotonic(), self.answer_s if timeout is None else timeout
        try:
            return super().wait(gen, interval, limit)
        except psycopg.OperationalError as exc:
            if limit is None or time.monotonic() - began < limit:
                raise
            raise psycopg.OperationalError(f"no answer within {limit:g} s") from exc
