"""The contract of every embedder."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from groundhook.core.ports import Embedder
from groundhook.handlers.kb.embed import in_context
from groundhook.handlers.kb.embedders.cached import CachedEmbedder, VectorCache
from tests.kb.embedders.conftest import Makes

EMBEDDERS: dict[str, dict[str, Any]] = {
    "builtin": {"provider": "builtin"},
    "hash": {"provider": "hash"},
    "openai": {"provider": "openai", "dimensions": 256},
    "voyage": {"provider": "voyage", "dimensions": 256},
    "voyage in context": {"provider": "voyage", "model": "voyage-context-3"},
}
TEXTS = ["a pear", "the moon", "一个梨", "אגס", "a pear"]


@pytest.fixture(params=[*EMBEDDERS, "cached"])
def embedder(request: pytest.FixtureRequest, makes: Makes, tmp_path: Path) -> Iterator[Embedder]:
    cache = VectorCache(tmp_path / "vectors.sqlite", most_bytes=1 << 20)
    yield (
        CachedEmbedder(makes("hash"), cache)
        if request.param == "cached"
        else makes(**EMBEDDERS[request.param])
    )
    cache.close()


def cosine(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


async def test_vectors_have_the_declared_dimensions_and_unit_length(embedder: Embedder) -> None:
    vectors = [await embedder.embed_query("a pear"), *await embedder.embed_documents(TEXTS)]
    assert {len(vector) for vector in vectors} == {embedder.dimensions}
    assert all(math.isclose(math.hypot(*vector), 1.0, abs_tol=1e-3) for vector in vectors)


async def test_vectors_come_in_the_order_of_the_texts(embedder: Embedder) -> None:
    together = await embedder.embed_documents(TEXTS)
    backwards = await embedder.embed_documents(TEXTS[::-1])
    assert all(
        cosine(one, other) > 0.999 for one, other in zip(together, backwards[::-1], strict=True)
    )
    assert cosine(together[0], together[1]) < 0.999


async def test_nothing_to_embed_is_no_vectors(embedder: Embedder) -> None:
    assert await embedder.embed_documents([]) == []


@pytest.mark.parametrize("text", ["", "\0", " \n", "\ud800", "a\0b"])
async def test_text_without_words_has_a_vector(embedder: Embedder, text: str) -> None:
    (vector,) = await embedder.embed_documents([text])
    assert len(vector) == len(await embedder.embed_query(text)) == embedder.dimensions


async def test_a_text_longer_than_any_model_reads_has_a_vector(embedder: Embedder) -> None:
    (vector,) = await embedder.embed_documents(["pear and moon " * 3000])
    assert len(vector) == embedder.dimensions


async def test_similarity_never_falls_and_stays_between_0_and_1(embedder: Embedder) -> None:
    values = [embedder.similarity(step / 50 - 1) for step in range(101)]
    assert values == sorted(values)
    assert 0 <= values[0] < 0.01
    assert 0.99 < values[-1] <= 1


async def test_only_models_for_it_look_at_passages_together(embedder: Embedder) -> None:
    assert in_context(embedder) == (embedder.model == "voyage-context-3")
