"""The rules that every reranker keeps: the real clients against a loopback service, an assistant,
and an MCP tool."""

from __future__ import annotations

from typing import Any

import pytest

from groundhook.core.errors import RerankError
from groundhook.core.ports import Ranked
from groundhook.core.settings import RerankSettings, WeightSettings
from groundhook.core.types.search import Item, SearchResult
from groundhook.host.search.merge import Pool, apply_ranking, cut, pool
from groundhook.rerankers.score import ScoreReranker
from tests.rerankers.conftest import Rig, items, scope_with


def pooled(given: list[Item]) -> Pool:
    return pool(
        [SearchResult(type="kb", query="question", source="user", items=tuple(given))],
        WeightSettings(),
    )


async def order(rig: Rig, given: list[Item], top_k: int = 100) -> list[str]:
    """The titles of the pool in their order after reranking."""
    merged = pooled(given)
    ranked = cut(apply_ranking(merged, await rig.rank(merged.items)), top_k)
    return [entry.item.title for entry in ranked.entries]


async def test_scores_are_multiplied_with_the_items_own(rig: Rig) -> None:
    rig.says([(2, 0.9), (0, 0.5), (1, 0.1)])
    assert await order(rig, items(3)) == ["t2", "t0", "t1"]


async def test_it_never_loses_an_item(rig: Rig) -> None:
    rig.says([(3, 0.9)])
    assert await order(rig, items(5)) == ["t3", "t0", "t1", "t2", "t4"]


async def test_it_never_adds_an_item_and_ignores_positions_that_were_not_sent(rig: Rig) -> None:
    rig.says([(1, 0.9), (7, 0.8), (-1, 0.8), (99999, 1.0), (0, 0.1)])
    given = items(3)
    ranked = await rig.rank(given)
    assert sorted({each.index for each in ranked}) == [0, 1]
    assert await order(rig, given) == ["t1", "t0", "t2"]


async def test_the_first_of_two_scores_for_an_item_counts(rig: Rig) -> None:
    rig.says([(2, 0.9), (0, 0.8), (2, 0.1), (0, 0.9), (1, 0.2)])
    ranked = await rig.rank(items(3))
    assert {each.index: each.score for each in ranked} == {2: 0.9, 0: 0.8, 1: 0.2}
    assert len(ranked) == 3


async def test_ties_stay_in_the_merged_order(rig: Rig) -> None:
    rig.says([(3, 0.5), (1, 0.5), (0, 0.5), (2, 0.5)])
    assert await order(rig, items(4, score=0.7)) == ["t0", "t1", "t2", "t3"]


async def test_only_the_best_are_kept(rig: Rig) -> None:
    rig.says([(4, 1.0), (3, 0.5), (2, 0.1), (1, 0.1), (0, 0.1)])
    assert await order(rig, items(5), top_k=2) == ["t4", "t3"]


async def test_raw_scores_become_0_to_1_and_keep_their_order(rig: Rig) -> None:
    rig.says([(0, -11.2), (1, 3.5), (2, 0.5), (3, -900.0)])
    ranked = {each.index: each.score for each in await rig.rank(items(4))}
    assert all(0 <= score <= 1 for score in ranked.values())
    assert sorted(ranked, key=lambda index: -ranked[index]) == [1, 2, 0, 3]


async def test_long_texts_are_cut_before_they_are_sent(rig: Rig) -> None:
    rig.says([(0, 0.5)])
    await rig.rank(items(1, content="word " * 100_000))
    (text,) = rig.sent()
    assert 1000 < len(text) <= 100_000
    await rig.rank(items(1, content="word " * 100_000), max_chars=50)
    assert [len(text) for text in rig.sent()] == [50]


@pytest.mark.parametrize("score", [float("nan"), float("inf"), "high", [1]], ids=str)
async def test_a_score_that_is_not_a_finite_number_is_an_error(rig: Rig, score: Any) -> None:
    rig.says([(0, 0.9), (1, score)])
    with pytest.raises(RerankError):
        await rig.rank(items(2))


@pytest.mark.parametrize(
    "answer", [{}, [], {"results": None}, {"data": {}}, "x", 7, {"results": [None]}], ids=str
)
async def test_an_answer_of_the_wrong_shape_raises_a_rerank_error(rig: Rig, answer: Any) -> None:
    rig.raw(answer)
    with pytest.raises(RerankError) as failed:
        await rig.rank(items(2))
    assert str(failed.value)


async def test_the_same_answer_gives_the_same_order(rig: Rig) -> None:
    rig.says([(1, 0.3), (0, 0.3), (2, 0.9)])
    first = await order(rig, items(3))
    assert [await order(rig, items(3)) for _ in range(3)] == [first] * 3


async def test_all_items_are_judged_in_one_call(rig: Rig) -> None:
    """Scores of several calls would not be comparable."""
    rig.says([(n, n / 100) for n in range(100)])
    assert len(await rig.rank(items(100))) == 100
    assert len(rig.sent()) == 100


async def test_the_score_reranker_keeps_the_order() -> None:
    given = items(4)
    ranked = await ScoreReranker().rerank("q", given, RerankSettings(), scope_with())
    assert list(ranked) == [Ranked(n, 1.0) for n in range(4)]
    assert [entry.item.title for entry in apply_ranking(pooled(given), ranked).entries] == [
        "t0",
        "t1",
        "t2",
        "t3",
    ]
