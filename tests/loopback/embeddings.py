"""What embedding services answer: OpenAI's `/embeddings`, Voyage's `/embeddings` and
`/contextualizedembeddings`.

The vectors are those of the hash embedding, so that equal texts have equal vectors and order can be
seen.
"""

from __future__ import annotations

import base64
from array import array
from collections.abc import Callable, Sequence
from typing import Any

from groundhook.core.types.collection_spec import EmbeddingSpec
from groundhook.handlers.kb.embed import HashEmbedder
from tests.loopback.server import Json, Received, Reply

SIZE = 1024


def vector_of(text: str, size: int = SIZE) -> list[float]:
    """Not of length 1, as some services answer."""
    return [
        3 * value
        for value in HashEmbedder(EmbeddingSpec(provider="hash", dimensions=size))._embed(text)
    ]


def openai_answer(received: Received) -> Reply:
    """As OpenAI's, in an order that is not that of the texts."""
    body = received.json
    size = body.get("dimensions", 1536)
    rows = [
        {"object": "embedding", "index": n, "embedding": vector_of(text, size)}
        for n, text in enumerate(body["input"])
    ]
    return Json(
        {"object": "list", "data": rows[::-1], "model": body["model"], "usage": {"total_tokens": 1}}
    )


def voyage_answer(received: Received) -> Reply:
    """Return vectors as Voyage does, in base64 on request, which its client sends."""
    body = received.json
    rows = _voyage_rows(body["input"], body)
    return Json(
        {"object": "list", "data": rows, "model": body["model"], "usage": {"total_tokens": 1}}
    )


def voyage_in_context(received: Received) -> Reply:
    body = received.json
    data = [
        {"object": "list", "index": n, "data": _voyage_rows(texts, body)}
        for n, texts in enumerate(body["inputs"])
    ]
    return Json(
        {"object": "list", "data": data, "model": body["model"], "usage": {"total_tokens": 1}}
    )


def _voyage_rows(texts: Sequence[str], body: dict[str, Any]) -> list[dict[str, Any]]:
    size = body.get("output_dimension") or SIZE
    packed: Callable[[list[float]], Any] = (
        (lambda vector: base64.b64encode(array("f", vector).tobytes()).decode())
        if body.get("encoding_format") == "base64"
        else list
    )
    return [
        {"object": "embedding", "index": n, "embedding": packed(vector_of(text, size))}
        for n, text in enumerate(texts)
    ]
