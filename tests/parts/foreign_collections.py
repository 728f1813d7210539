"""Collections of a Qdrant server as another program makes and fills them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qdrant_client import models

from tests.loopback.embeddings import vector_of
from tests.loopback.foreign_qdrant import ForeignQdrant

HASH = {"provider": "hash", "dimensions": 64}


def fill(
    server: ForeignQdrant,
    name: str,
    payloads: Sequence[Mapping[str, Any]],
    *,
    vector: str = "",
    ids: Sequence[Any] = (),
    distance: models.Distance = models.Distance.COSINE,
    text: str = "page",
    size: int = 64,
) -> None:
    params = models.VectorParams(size=size, distance=distance)
    server.client.create_collection(name, {vector: params} if vector else params)
    for n, payload in enumerate(payloads):
        found = vector_of(str(payload[text]), size)
        made: Any = {vector: found} if vector else found
        id = ids[n] if ids else n + 1
        server.client.upsert(name, [models.PointStruct(id=id, vector=made, payload=dict(payload))])
