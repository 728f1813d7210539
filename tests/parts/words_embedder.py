"""An embedding that tells what it was asked for."""

from __future__ import annotations

from collections.abc import Sequence

from groundhook.core.types.collection_spec import EmbeddingSpec
from groundhook.handlers.kb.embed import HashEmbedder

SPEC = EmbeddingSpec(provider="words", dimensions=64)


class Words:
    """The hash embedding as a model that is worth caching; it records the texts that it embeds."""

    provider, model, dimensions = "words", "words", 64

    def __init__(self, spec: EmbeddingSpec = SPEC, *, in_context: bool = False) -> None:
        self.texts: list[str] = []
        self.in_context = in_context
        self._inner = HashEmbedder(EmbeddingSpec(provider="hash", dimensions=64))

    async def embed_query(self, text: str, /) -> list[float]:
        self.texts.append(text)
        return await self._inner.embed_query(text)

    async def embed_documents(self, texts: Sequence[str], /) -> list[list[float]]:
        self.texts += texts
        return await self._inner.embed_documents(texts)

    def similarity(self, cosine: float, /) -> float:
        return self._inner.similarity(cosine)
