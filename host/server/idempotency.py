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
from groundhook.host.server.running import Running, TurnLog

MOST = 10_000  # keys that are remembered
_VISIBLE = re.compile(r"[\x21-\x7e]{1,128}")


@dataclass
class _Repeat:
    digest: str
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
        kept: Callable[[str], Awaitable[tuple[TurnLog, str] | None]] | None = None,
    ) -> TurnLog:
        """Return the turn of an earlier request with this key, or begin one. `address` is its
        method and path. `kept` finds the turn of a key in the store, with the digest of its
        request. Raises Refused for another address or body, or while the first request is being
        taken in."""
        if key is None:
            return await begin()
        if not _VISIBLE.fullmatch(key):
            raise UsageError("Idempotency-Key must have 1 to 128 visible characters")
        digest = digest_of(address, body)
        known = self._known.get((owner, key))
        if known is not None:
            _refuse_another(known.digest, digest)
            if not known.turn_id:
                raise Refused("idempotency_busy", "the first request is being taken in")
            if (under_way := find(known.turn_id)) is not None:
                return under_way
        repeat = self._known[owner, key] = _Repeat(digest)
        while len(self._known) > MOST:
            self._known.popitem(last=False)
        try:
            running = await _from_store(key, digest, kept) or await begin()
        except BaseException:
            self._known.pop((owner, key), None)
            raise
        repeat.turn_id = running.turn_id
        return running


def digest_of(address: str, body: bytes) -> str:
    """Return what a request is compared by: its address and body."""
    return sha256(f"{address}\n".encode() + body).hexdigest()


async def _from_store(
    key: str, digest: str, kept: Callable[[str], Awaitable[tuple[TurnLog, str] | None]] | None
) -> TurnLog | None:
    found = await kept(key) if kept is not None else None
    if found is None:
        return None
    turn, before = found
    _refuse_another(before, digest)
    return turn


def _refuse_another(before: str, digest: str) -> None:
    if before != digest:
        raise Refused("idempotency_mismatch", "this Idempotency-Key had another body or address")
