"""Requests that clients repeat: requests of one caller with the same key, address and body get the
same turn."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256

from groundhook.core.errors import UsageError
from groundhook.host.server.problems import Refused
from groundhook.host.server.turns.running import ServerTurn, TurnLog

MOST = 10_000  # keys that are remembered
_VISIBLE = re.compile(r"[\x21-\x7e]{1,128}")


@dataclass
class _Repeat:
    digest: str
    turn_id: str = ""  # empty: the turn has not begun


class Repeats:
    """The last idempotency keys of all callers. A key is free again when its turn is forgotten."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], _Repeat] = OrderedDict()

    async def once(
        self,
        owner: str,
        key: str | None,
        address: str,
        body: bytes,
        find: Callable[[str], ServerTurn | None],
        begin: Callable[[], Awaitable[ServerTurn]],
        find_stored: Callable[[str], Awaitable[tuple[TurnLog, str] | None]] | None = None,
    ) -> TurnLog:
        """Return the turn of an earlier request with this key, or begin one. `address` is the
        method and path of the request. `find_stored` finds the turn of a key in the store, with
        the digest of its request. Raises Refused if the earlier request had another address or
        body, or is still being processed."""
        if key is None:
            return await begin()
        if not _VISIBLE.fullmatch(key):
            raise UsageError("Idempotency-Key must have 1 to 128 visible characters")
        digest = digest_of(address, body)
        known = self._known.get((owner, key))
        if known is not None:
            _require_same(known.digest, digest)
            if not known.turn_id:
                raise Refused("idempotency_busy", "the first request is still being processed")
            if (under_way := find(known.turn_id)) is not None:
                return under_way
        repeat = self._known[owner, key] = _Repeat(digest)
        while len(self._known) > MOST:
            self._known.popitem(last=False)
        try:
            running = await _find_stored(key, digest, find_stored) or await begin()
        except BaseException:
            self._known.pop((owner, key), None)
            raise
        repeat.turn_id = running.turn_id
        return running


def digest_of(address: str, body: bytes) -> str:
    """Return a digest of a request's address and body."""
    return sha256(f"{address}\n".encode() + body).hexdigest()


async def _find_stored(
    key: str, digest: str, find: Callable[[str], Awaitable[tuple[TurnLog, str] | None]] | None
) -> TurnLog | None:
    found = await find(key) if find is not None else None
    if found is None:
        return None
    turn, before = found
    _require_same(before, digest)
    return turn


def _require_same(before: str, digest: str) -> None:
    if before != digest:
        raise Refused("idempotency_mismatch", "this Idempotency-Key had another body or address")
