"""Results of several collections in one list: alike ones by similarity, different ones by rank."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.types.collection_spec import (
    ChunkSpec,
    EmbeddingSpec,
)
from groundhook.core.types.search import Item
from groundhook.handlers.kb.search.results import merge
from tests.kb.conftest import Opens, Writes, search, spec


def items(name: str, scores: list[float]) -> list[Item]:
    falling = sorted(set(scores), reverse=True)
    return [Item(type="kb", key=f"{name}{rank}", score=score) for rank, score in enumerate(falling)]


some = st.lists(st.integers(0, 900).map(lambda n: n / 1000), max_size=8)
lists = st.lists(st.tuples(st.sampled_from(["e5", "hash", "voyage"]), some), max_size=5)


@given(lists)
def test_nothing_is_lost_and_scores_fall(given_lists: list[tuple[str, list[float]]]) -> None:
    found = [
        (model, items(f"{number}-", scores)) for number, (model, scores) in enumerate(given_lists)
    ]
    joined = merge(found)
    assert sorted(item.key for item in joined) == sorted(
        item.key for _, one in found for item in one
    )
    assert [item.score for item in joined] == sorted((item.score for item in joined), reverse=True)
    assert all(0 <= item.score <= 1 for item in joined)
    place = {item.key: at for at, item in enumerate(joined)}
    for _, one in found:
        assert [place[item.key] for item in one] == sorted(place[item.key] for item in one)


@given(st.lists(some, max_size=4))
def test_collections_embedded_alike_are_ordered_by_similarity_as_it_is(
    given_lists: list[list[float]],
) -> None:
    found = [("e5", items(f"{number}-", scores)) for number, scores in enumerate(given_lists)]
    every = [item.score for _, one in found for item in one]
    assert [item.score for item in merge(found)] == sorted(every, reverse=True)


@given(lists)
def test_the_best_of_every_model_stand_first(given_lists: list[tuple[str, list[float]]]) -> None:
    found = [
        (model, items(f"{number}-", scores)) for number, (model, scores) in enumerate(given_lists)
    ]
    best = {
        model: max((one[0].score for other, one in found if other == model and one), default=None)
        for model, _ in found
    }
    models = [model for model, score in best.items() if score is not None]
    of = {item.key: model for model, one in found for item in one}
    assert {of[item.key] for item in merge(found)[: len(models)]} == set(models)


async def test_two_real_models_answer_one_search_and_neither_drowns_the_other(
    opens: Opens, write: Writes
) -> None:
    tea = {
        "tea.md": "# Green tea\n\nGreen tea is brewed with water of eighty degrees.",
        "oil.md": "# Oil\n\nA chain is oiled.",
    }
    pot = {
        "pot.md": "# Pots\n\nA pot for green tea is warmed with water first.",
        "pan.md": "# Pans\n\nA pan is dried.",
    }
    folder = write(
        {
            **{f"a/{name}": text for name, text in tea.items()},
            **{f"b/{name}": text for name, text in pot.items()},
        }
    )
    meaning = spec("meaning", embedding=EmbeddingSpec(), chunk=ChunkSpec())
    async with opens(meaning, spec("words")) as kb:
        await kb.add("meaning", [folder / "a"])
        await kb.add("words", [folder / "b"])
        found = await search(kb, "How hot should the water for green tea be?", "meaning", "words")
        alone = await search(kb, "How hot should the water for green tea be?", "words")
    assert {item.document_id for item in found.items[:2]} == {"tea.md", "pot.md"}
    assert [item.document_id for item in found.items if item.collection == "words"] == [
        item.document_id for item in alone.items
    ]
