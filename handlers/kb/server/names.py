"""The names of products in a collection on a Qdrant server (`ranking.names`).

A word is counted by the passages that a search for it alone finds: first whether they are enough,
without their payloads, which few words pass; then their documents; then the capitals of a few.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from qdrant_client import AsyncQdrantClient, models

from groundhook.handlers.kb.analyse import Analyser
from groundhook.handlers.kb.ranking import names
from groundhook.handlers.kb.server.collection_info import CollectionInfo
from groundhook.handlers.kb.server.connection import ServerConnection
from groundhook.handlers.kb.server.filter import of_passages, of_records
from groundhook.handlers.kb.server.layout import PASSAGE_KEY, parse_key
from groundhook.handlers.kb.store import points

# Passages of a tenant, or of a collection without tenants. With more, names are not recognised: all
# that have a word would be sent.
MOST_PASSAGES = 20_000


async def find_names(
    connection: ServerConnection, info: CollectionInfo, tenant: str | None, words: Sequence[str]
) -> list[str]:
    """Return those of the words that are the name of what the passages of a tenant are about.
    Raises StorageError."""
    new = [word for word in words if (tenant, word.lower()) not in info.names]
    if new:
        found = await _find(connection, info, tenant, new)
        info.names |= {(tenant, word.lower()): word in found for word in new}
    return [word for word in words if info.names[tenant, word.lower()]]


async def _find(
    connection: ServerConnection, info: CollectionInfo, tenant: str | None, words: Sequence[str]
) -> list[str]:
    tokens = {word: token for word in words if (token := _token(info, word)) is not None}
    if not tokens:
        return []
    visible = of_passages(tenant, (), None)
    passages = await _count(connection, info, visible)
    documents = await _count(connection, info, of_records(tenant))
    if passages > MOST_PASSAGES:
        return []
    enough = int(names.SHARE * passages) + 1
    few = await _having(connection, info, visible, [*tokens.values()], limit=enough)
    common = [word for word, having in zip(tokens, few, strict=True) if len(having) >= enough]
    every = await _having(
        connection, info, visible, [tokens[word] for word in common], limit=passages, keys=True
    )
    found: list[str] = []
    for word, having in zip(common, every, strict=True):
        own = {
            (key.tenant, key.document) for key in map(parse_key, (one.payload for one in having))
        }
        if names.is_everywhere(len(having), passages, len(own), documents):
            ids = sorted(str(one.id) for one in having)
            sample = ids[:: max(1, len(ids) // names.SAMPLE)][: names.SAMPLE]
            if names.is_capitalised(word, await _contents(connection, info, sample)):
                found.append(word)
    return found


def _token(info: CollectionInfo, word: str) -> int | None:
    """Return the token of a word; None for a code, or a word of n-grams."""
    tokens = Analyser(info.settings.language).indices(word)
    return next(iter(tokens)) if len(tokens) == 1 else None


async def _count(connection: ServerConnection, info: CollectionInfo, among: models.Filter) -> int:
    counted = await connection.read(lambda client: client.count(info.name, among, exact=True))
    return counted.count


async def _having(
    connection: ServerConnection,
    info: CollectionInfo,
    visible: models.Filter,
    tokens: Sequence[int],
    *,
    limit: int,
    keys: bool = False,
) -> list[list[models.ScoredPoint]]:
    """Return at most `limit` of the passages that have each word."""
    if not tokens:
        return []
    requests = [
        models.QueryRequest(
            query=models.SparseVector(indices=[token], values=[1.0]),
            using=points.WORDS,
            filter=visible,
            limit=limit,
            with_payload=PASSAGE_KEY if keys else False,
        )
        for token in tokens
    ]
    answered = await connection.read(partial(_query, name=info.name, requests=requests))
    return [each.points for each in answered]


async def _query(
    client: AsyncQdrantClient, *, name: str, requests: Sequence[models.QueryRequest]
) -> list[models.QueryResponse]:
    return await client.query_batch_points(name, requests)


async def _contents(
    connection: ServerConnection, info: CollectionInfo, ids: Sequence[str]
) -> list[str]:
    payload: Any = ["content"]
    records = await connection.read(
        lambda client: client.retrieve(info.name, ids, with_payload=payload)
    )
    return [(record.payload or {})["content"] for record in records]
