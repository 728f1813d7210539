"""Requests that are sent twice: the same key, address and body of the same caller are the
same turn."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256

from groundhook.host.core.errors import UsageError
from groundhook.host.server.problems import Refused
from groundhook.host.server.turns import Running

MOST = 10_000  # keys that are remembered
_VISIBLE = re.compile(r"[\x21-\x7e]{1,128}")


@dataclass
class _Repeat:
    digest: bytes
    turn_id: str = ""  # empty: it is being taken in


class Repeats:
    """The keys of late, by caller. A turn that is forgotten frees its key."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], _Repeat] = OrderedDict()

    async def once(
        self,
        owner: str,
        key: str | None,
        address: str,
        body: bytes,
        find: Callable[[str], Running | None],
        begin: Callable[[], Awaitable[Running]],
    ) -> Running:
        """Return the turn of an earlier request with this key, or begin one. `address` is its
        method and path. Raises Refused for another address or body, or while the first request is
        being taken in."""
        if key is None:
            return await begin()
        if not _VISIBLE.fullmatch(key):
            raise UsageError("Idempotency-Key must have 1 to 128 visible characters")
        digest = sha256(f"{address}\n".encode() + body).digest()
        known = self._known.get((owner, key))
        if known is not None:
            if known.digest != digest:
                raise Refused(
                    "idempotency_mismatch", "this Idempotency-Key had another body or address"
                )
            if not known.turn_id:
                raise Refused("idempotency_busy", "the first request is being taken in")
            if (running := find(known.turn_id)) is not None:
                return running
        repeat = self._known[owner, key] = _Repeat(digest)
        while len(self._known) > MOST:
            self._known.popitem(last=False)
        try:
            running = await begin()
        except BaseException:
            self._known.pop((owner, key), None)
            raise
        repeat.turn_id = running.turn_id
        return running
