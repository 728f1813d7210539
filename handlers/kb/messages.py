"""Values of the store as parts of a message, and as they come back."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from groundhook.handlers.kb.store import Question
from groundhook.host.core.types.filters import dumped, loaded


def packed(vector: Sequence[float]) -> bytes:
    """Return a vector as the bytes of a message: float32, 4 bytes a dimension."""
    # `array("f", vector)` takes four times as long.
    return struct.pack(f"{len(vector)}f", *vector)


def unpacked(vector: bytes) -> list[float]:
    values = array("f")
    values.frombytes(vector)
    return values.tolist()


def question_out(question: Question) -> dict[str, Any]:
    """Return a question as a mapping for a message."""
    return {
        **vars(question),
        "filter": None if question.filter is None else dumped(question.filter),
    }


def question_in(raw: Mapping[str, Any]) -> Question:
    return Question(**{**raw, "filter": None if raw["filter"] is None else loaded(raw["filter"])})


def plain(value: Any) -> dict[str, Any]:
    """Return a flat value of this module as a mapping for a message."""
    return dict(vars(value))
