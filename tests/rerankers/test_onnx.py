"""Cross-encoders of one's own: order, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundhook.core.errors import RerankError
from groundhook.core.settings import RerankSettings
from tests.kb.embedders.make_tiny import cross_encoder
from tests.rerankers.conftest import items, scope_with
from tests.rerankers.model_reranker import open_model_reranker

TEXTS = ["apple is red", "a ripe pear", "pear pear", ""]


async def ranked(root: Path, query: str = "pear") -> dict[int, float]:
    options = RerankSettings(type="model", model="onnx", path="tiny", timeout_ms=20_000)
    given = [
        item.model_copy(update={"title": "", "content": text})
        for item, text in zip(items(4), TEXTS, strict=True)
    ]
    async with open_model_reranker({}, root) as reranker:
        return {
            each.index: each.score
            for each in await reranker.rerank(query, given, options, scope_with())
        }


@pytest.mark.parametrize("query", ["pear", "pear " * 2_000, ""])
async def test_a_model_in_a_folder_scores_each_text_by_itself(tmp_path: Path, query: str) -> None:
    cross_encoder(tmp_path / "tiny")
    scores = await ranked(tmp_path, query)
    assert sorted(scores, key=lambda index: -scores[index])[:2] == [2, 1]
    assert scores[0] == scores[3]
    assert all(0 <= score <= 1 for score in scores.values())


async def test_a_missing_file_of_the_folder_is_named_without_its_path(tmp_path: Path) -> None:
    cross_encoder(tmp_path / "tiny")
    (tmp_path / "tiny/tokenizer.json").unlink()
    with pytest.raises(RerankError, match=r"'tiny' has no tokenizer\.json") as caught:
        await ranked(tmp_path)
    assert str(tmp_path) not in str(caught.value)


async def test_a_model_that_gives_no_relevance_is_refused(tmp_path: Path) -> None:
    cross_encoder(tmp_path / "tiny", values=3)
    with pytest.raises(RerankError, match="not a cross-encoder"):
        await ranked(tmp_path)
