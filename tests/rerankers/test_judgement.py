"""Pure functions from a reranker's answer to rank scores, over arbitrary answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.ports import Ranked
from groundhook.core.settings import RerankSettings, Settings, WeightSettings
from groundhook.core.types.delegation import RerankAnswer
from groundhook.core.types.search import Item, RerankOptions, SearchResult
from groundhook.host.search.merge import apply_ranking, pool
from groundhook.host.search.reranking import choose, options_of
from groundhook.rerankers.delegated import ranking
from groundhook.rerankers.judgement import rank_by_order, rank_by_scores, text_of
from tests.rerankers.conftest import items

SCORES = st.floats(allow_nan=False, allow_infinity=False)
POSITIONS = st.integers(-5, 15)


@given(st.lists(st.tuples(POSITIONS, SCORES)), st.integers(0, 10))
def test_scores_are_of_items_that_exist_each_once_and_between_0_and_1(
    answer: list[tuple[int, float]], count: int
) -> None:
    ranked = rank_by_scores(answer, count)
    assert {each.index for each in ranked} == {index for index, _ in answer if 0 <= index < count}
    assert len({each.index for each in ranked}) == len(ranked)
    assert all(0 <= each.score <= 1 for each in ranked)


@given(st.lists(SCORES, max_size=10, unique=True))
def test_scores_keep_their_order(scores: list[float]) -> None:
    ranked = {
        each.index: each.score for each in rank_by_scores(list(enumerate(scores)), len(scores))
    }
    rising = sorted(ranked, key=lambda index: scores[index])
    assert [ranked[index] for index in rising] == sorted(ranked.values())


def final_order(given: Sequence[Item], ranked: Sequence[Ranked]) -> list[str]:
    merged = pool(
        [SearchResult(type="kb", query="q", source="user", items=tuple(given))], WeightSettings()
    )
    positions = {item.key: index for index, item in enumerate(merged.items)}
    moved = [Ranked(positions[given[each.index].key], each.score) for each in ranked]
    return [entry.item.key for entry in apply_ranking(merged, moved).entries]


@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_an_order_is_kept_whatever_the_items_scores(scores: list[float], chance: Any) -> None:
    made = [
        item.model_copy(update={"score": score})
        for item, score in zip(items(len(scores)), scores, strict=True)
    ]
    order = list(range(len(made)))
    chance.shuffle(order)
    ranked = rank_by_order(order, made)
    assert final_order(made, ranked) == [str(index) for index in order]
    assert all(0 <= each.score <= 1 for each in ranked)


@given(st.lists(POSITIONS, max_size=30))
def test_an_order_loses_and_adds_no_item(order: list[int]) -> None:
    made = items(8)
    assert sorted(final_order(made, rank_by_order(order, made))) == sorted(
        item.key for item in made
    )


def test_items_with_a_score_of_0_stay_behind() -> None:
    made = [items(2)[0].model_copy(update={"score": 0.0}), items(2)[1]]
    assert final_order(made, rank_by_order([0, 1], made)) == ["1", "0"]


@pytest.mark.parametrize("marker", ["#ref:{}", "[{}]", "[[cite:{}]]", "ref({})", "{}"])
def test_ids_are_matched_with_and_without_their_punctuation(marker: str) -> None:
    made = [
        item.model_copy(update={"citation_id": marker.format(id)})
        for item, id in zip(items(2), ("a1b2", "c3d4"), strict=True)
    ]
    for named in (marker.format("c3d4"), "c3d4", "#ref:c3d4"):
        (only,) = ranking(RerankAnswer.model_validate([named, "zzzz"]), made)
        assert only.index == 1


def test_scores_count_only_where_each_item_has_one() -> None:
    made = items(3)
    whole = RerankAnswer.model_validate([{"id": "i2", "score": 0.2}, {"id": "i0", "score": 0.9}])
    assert {each.index: each.score for each in ranking(whole, made)} == {2: 0.2, 0: 0.9}
    partly = RerankAnswer.model_validate([{"id": "i2", "score": 0.2}, {"id": "i0"}])
    assert final_order(made, ranking(partly, made)) == ["2", "0", "1"]


def test_a_text_has_the_title_and_the_content_once() -> None:
    (item,) = items(1)
    assert text_of(item, 100) == "t0\ncontent 0"
    assert text_of(item.model_copy(update={"content": "t0 and more"}), 100) == "t0 and more"
    assert text_of(item, 4) == "t0\nc"


@pytest.mark.parametrize(
    ("options", "uses", "name", "who"),
    [
        ({}, "builtin", "score", None),
        ({}, "workers.rerank", "agent", "workers.rerank"),
        ({}, "mcp:judge.rank", "mcp", "judge.rank"),
        ({}, "house", "house", None),
        ({"type": "score"}, "workers.rerank", "score", None),
        ({"type": "agent"}, "workers.rerank", "agent", "workers.rerank"),
        ({"type": "agent", "agent": "x"}, "workers.rerank", "agent", "x"),
        ({"type": "mcp"}, "mcp:judge", "mcp", "judge"),
        ({"type": "model", "model": "m"}, "builtin", "model", None),
    ],
)
def test_type_and_uses_choose_the_reranker(
    options: dict[str, Any], uses: str, name: str, who: str | None
) -> None:
    named, chosen_options = choose(RerankSettings(**options), uses, {"score", "house"})
    assert named == name
    assert {"agent": chosen_options.agent, "mcp": chosen_options.mcp}.get(named) == who


def test_the_options_of_a_search_override_the_settings() -> None:
    settings = Settings.model_validate(
        {"search": {"rerank": {"type": "model", "host": "http://h", "top_k": 7}}}
    )
    assert options_of(settings, None) is settings.search.rerank
    options = options_of(settings, RerankOptions(agent="x"))
    assert (options.type, options.agent, options.host, options.top_k) == (
        "agent",
        "x",
        "http://h",
        7,
    )
    assert options_of(settings, RerankOptions(top_k=2)).type == "model"
