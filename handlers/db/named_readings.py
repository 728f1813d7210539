"""The readings that a search named instead of choosing one: a question that is the sentence of one
means its query, so that clients let a person choose by sending the sentence."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping

from groundhook.core.types.turn import Identity
from groundhook.handlers.db.question.forms import QueryReading

MOST_KEPT, KEPT_SECONDS = 2000, 3600.0

_Key = tuple[str, str, str, str]


class NamedReadings:
    """Readings by the identity that they were named to, for an hour, in this process."""

    def __init__(self) -> None:
        self._kept: OrderedDict[_Key, tuple[float, QueryReading]] = OrderedDict()

    def keep(self, identity: Identity, readings: Mapping[str, QueryReading]) -> None:
        """Keep readings by their sentences."""
        for sentence, reading in readings.items():
            key = _key(identity, sentence)
            self._kept[key] = time.monotonic(), reading
            self._kept.move_to_end(key)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)

    def meant_by(self, identity: Identity, question: str) -> QueryReading | None:
        """Return the reading whose sentence a question is, if it was named to this identity."""
        made, reading = self._kept.get(_key(identity, question.strip()), (0.0, None))
        return reading if time.monotonic() - made < KEPT_SECONDS else None


def _key(identity: Identity, sentence: str) -> _Key:
    return identity.tenant_id, identity.team_id, identity.user_id, sentence
