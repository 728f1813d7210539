"""Values of the store in messages between processes: how they are sent, and how they are read."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from groundhook.core.types.filters import dumped, loaded
from groundhook.handlers.kb.store.port import VectorQuestion


def pack_vector(vector: Sequence[float]) -> bytes:
    """Return a vector as the bytes of a message: float32, 4 bytes a dimension."""
    # `array("f", vector)` takes four times as long.
    return struct.pack(f"{len(vector)}f", *vector)


def unpack_vector(vector: bytes) -> list[float]:
    """Return the vector that `pack_vector` packed."""
    values = array("f")
    values.frombytes(vector)
    return values.tolist()


def dump_question(question: VectorQuestion) -> dict[str, Any]:
    """Return a question as a mapping for a message."""
    return {
        **vars(question),
        "filter": None if question.filter is None else dumped(question.filter),
    }


def load_question(raw: Mapping[str, Any]) -> VectorQuestion:
    """Return the question that `dump_question` dumped."""
    return VectorQuestion(
        **{**raw, "filter": None if raw["filter"] is None else loaded(raw["filter"])}
    )


def as_mapping(value: Any) -> dict[str, Any]:
    """Return a dataclass whose values are plain data as a mapping for a message."""
    return dict(vars(value))
