"""Log lines and metrics of the server: one for each request and one for each turn, as text or JSON.
They have routes, statuses, times and names, but no question, answer, key or path of a request."""

from __future__ import annotations

import json
import logging
import re
from typing import Any, Literal

from starlette.types import Scope

from groundhook.host.server.metrics import Metrics
from groundhook.host.server.turns.running import ServerTurn, failure

log = logging.getLogger("groundhook.server")

MOST_UNLISTED = 20  # origins that are named: clients may make them up
_ORIGIN = re.compile(r"https?://[\w.\-:\[\]]{1,200}", re.ASCII)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Logs:
    """Writes the lines."""

    def __init__(self, format: Literal["text", "json"], metrics: Metrics) -> None:
        self._json = format == "json"
        self.metrics = metrics
        self._unlisted: set[str] = set()

    def request(self, scope: Scope, status: int, ms: float) -> None:
        """Log a request that was answered; status 0: its client left before."""
        route = scope.get("groundhook.endpoint", "-")
        method = scope["method"] if scope["method"] in METHODS else "-"  # clients may make them up
        self.metrics.request(route, method if route != "-" else "-", status)
        fields = {
            "id": scope["groundhook.request"],
            "method": method,
            "route": route,
            "status": status,
            "ms": round(ms, 1),
            "who": scope.get("groundhook.caller", "-"),
        }
        self._write(logging.INFO, "request", fields)

    def unlisted(self, origin: str) -> None:
        """Warn of a page of another site that may not use the server, once for each origin. Its
        reader sees only that the server is not reachable, as the browser hides the answer."""
        if not _ORIGIN.fullmatch(origin) or len(self._unlisted) >= MOST_UNLISTED:
            return
        if origin not in self._unlisted:
            self._unlisted.add(origin)
            log.warning(
                "a page of %s may not use this server: add %r to server.origins in agent/agent.yml,"
                " if that site has the widget",
                origin,
                origin,
            )

    def turn(self, running: ServerTurn) -> None:
        """Log a turn that is over. One that failed is logged with its code and place."""
        self.metrics.turn(running)
        failed = failure(running)
        last = running.log[-1].event
        fields: dict[str, Any] = {
            "id": running.turn_id,
            "assistant": running.ask.assistant_id,
            "end": failed.code if failed else "done",
            "ms": last.at_ms,
            "events": len(running.log),
        }
        if failed is not None and failed.file:
            fields["place"] = f"{failed.file}:{failed.line}:{failed.column}"
        if failed is not None:
            fields["message"] = failed.message[:500]
        expected = failed is None or failed.code == "stopped"
        self._write(logging.INFO if expected else logging.ERROR, "turn", fields)

    def _write(self, level: int, what: str, fields: dict[str, Any]) -> None:
        if self._json:
            log.log(level, "%s", json.dumps({"log": what, **fields}, ensure_ascii=False))
            return
        shown = " ".join(f"{name}={_quote(value)}" for name, value in fields.items())
        log.log(level, "%s %s", what, shown)


def _quote(value: Any) -> str:
    text = str(value)
    plain = text and text.isprintable() and " " not in text and '"' not in text
    return text if plain else json.dumps(text, ensure_ascii=True)
