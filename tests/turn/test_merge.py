"""The pool: weights, duplicates, order, reranking."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.ports import Ranked
from groundhook.core.settings import WeightSettings
from groundhook.core.types.search import Extent, Item, Origin, SearchResult, Sentences
from groundhook.host.search.merge import Pool, apply_ranking, cut, pool

WEIGHTS = WeightSettings()


def result(source: Origin, **scores: float) -> SearchResult:
    items = tuple(Item(type="kb", key=key, title=key, score=score) for key, score in scores.items())
    return SearchResult(type="kb", query="q", source=source, items=items)


def keys(pooled: Pool) -> list[str]:
    return [entry.item.key for entry in pooled.entries]


def test_the_users_data_wins_over_a_better_automatic_result() -> None:
    pooled = pool([result("auto", a=0.9), result("user", u=0.8)], WEIGHTS)
    assert [(entry.item.key, round(entry.final, 2)) for entry in pooled.entries] == [
        ("u", 0.8),
        ("a", 0.54),
    ]


def test_passages_of_a_document_stay_in_reading_order() -> None:
    pooled = pool([result("user", **{f"#{n}": 1.0 for n in range(12)})], WEIGHTS)
    assert keys(pooled) == [f"#{n}" for n in range(12)]
    assert keys(apply_ranking(pooled, [Ranked(n, 1.0) for n in range(12)])) == keys(pooled)


def test_passages_of_several_documents_are_not_mixed() -> None:
    first, second = (
        result("user", **{f"{name}{n}": 1.0 for n in range(11)}).model_copy(
            update={"query": f"docs/{name}"}
        )
        for name in "ab"
    )
    assert keys(pool([second, first], WEIGHTS)) == [
        *(f"a{n}" for n in range(11)),
        *(f"b{n}" for n in range(11)),
    ]


def test_the_duplicate_of_the_highest_priority_stays_and_the_others_have_a_reason() -> None:
    pooled = pool([result("auto", x=1.0), result("hook", x=0.3), result("user", x=0.2)], WEIGHTS)
    assert [(entry.source, entry.item.score) for entry in pooled.entries] == [("user", 0.2)]
    assert all("duplicate of the user result" in entry.dropped for entry in pooled.dropped)
    assert len(pooled.dropped) == 2


CHUNK = "".join(f"Sentence {n}. " for n in range(9)).strip()


def part(first: int, last: int) -> Item:
    """Sentences of the chunk, which begins at character 100 of its document."""
    start, end = (
        CHUNK.index(f"Sentence {first}"),
        CHUNK.index(f"Sentence {last}") + len("Sentence n."),
    )
    extent = Extent(
        start=100 + start, end=100 + end, sentences=Sentences(first=first + 1, last=last + 1, of=9)
    )
    return Item(type="kb", key="c", content=CHUNK[start:end], extent=extent, score=0.5)


@given(
    st.tuples(st.integers(0, 8), st.integers(0, 8)).map(sorted),
    st.tuples(st.integers(0, 8), st.integers(0, 8)).map(sorted),
)
def test_parts_of_one_chunk_are_quoted_together(hooks: list[int], automatic: list[int]) -> None:
    found = [SearchResult(type="kb", query="p", source="hook", items=(part(*hooks),))]
    found.append(SearchResult(type="kb", query="q", source="auto", items=(part(*automatic),)))
    [entry] = pool(found, WEIGHTS).entries
    assert entry.source == "hook"
    shown = {n for n in range(9) if hooks[0] <= n <= hooks[1] or automatic[0] <= n <= automatic[1]}
    assert [n for n in range(9) if entry.item.content.count(f"Sentence {n}.")] == sorted(shown)
    assert all(entry.item.content.count(f"Sentence {n}.") <= 1 for n in range(9))
    whole = part(min(shown), max(shown))
    assert entry.item.extent == whole.extent
    if len(shown) == max(shown) - min(shown) + 1 and max(hooks[0], automatic[0]) <= min(
        hooks[1], automatic[1]
    ):
        assert entry.item.content == whole.content


def test_a_part_beside_its_whole_chunk_is_the_chunk() -> None:
    whole = part(0, 8).model_copy(update={"extent": Extent(start=100, end=100 + len(CHUNK))})
    for items in ((part(2, 3), whole), (whole, part(2, 3))):
        found = [
            SearchResult(type="kb", query=str(n), source="hook", items=(item,))
            for n, item in enumerate(items)
        ]
        [entry] = pool(found, WEIGHTS).entries
        assert (entry.item.content, entry.item.extent) == (CHUNK, whole.extent)


SOURCES: st.SearchStrategy[Origin] = st.sampled_from(["user", "hook", "auto"])
RESULTS = st.lists(
    st.builds(
        lambda source, query, scores: result(source, **scores).model_copy(update={"query": query}),
        SOURCES,
        st.sampled_from("pq"),
        st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0, 1) | st.just(0.5), max_size=6),
    ),
    max_size=5,
)


@given(RESULTS, st.randoms())
def test_the_order_never_depends_on_which_search_answered_first(
    results: list[SearchResult], random: object
) -> None:
    shuffled = list(results)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert [e.explain() for e in pool(results, WEIGHTS).entries] == [
        e.explain() for e in pool(shuffled, WEIGHTS).entries
    ]


@given(RESULTS)
def test_every_item_is_kept_once_or_dropped_with_a_reason(results: list[SearchResult]) -> None:
    pooled = pool(results, WEIGHTS)
    assert sorted(keys(pooled)) == sorted({item.key for r in results for item in r.items})
    assert len(pooled.entries) + len(pooled.dropped) == sum(len(r.items) for r in results)
    assert all(entry.dropped for entry in pooled.dropped)
    finals = [entry.final for entry in pooled.entries]
    assert finals == sorted(finals, reverse=True)


@given(RESULTS, st.lists(st.builds(Ranked, st.integers(-3, 12), st.floats(-1, 2))))
def test_a_reranker_can_neither_lose_nor_invent_an_item(
    results: list[SearchResult], ranking: list[Ranked]
) -> None:
    merged = pool(results, WEIGHTS)
    ranked = apply_ranking(merged, ranking)
    assert sorted(keys(ranked)) == sorted(keys(merged))
    assert all(0 <= entry.rerank <= 1 for entry in ranked.entries)


@given(RESULTS)
def test_a_reranker_without_an_opinion_changes_nothing(results: list[SearchResult]) -> None:
    merged = pool(results, WEIGHTS)
    assert keys(apply_ranking(merged, [])) == keys(merged)
    assert keys(
        apply_ranking(merged, [Ranked(n, 1.0) for n in range(len(merged.entries))])
    ) == keys(merged)


def test_items_that_were_not_judged_follow_those_that_were_in_the_merged_order() -> None:
    merged = pool([result("hook", a=0.9, b=0.8, c=0.7, d=0.6)], WEIGHTS)
    assert keys(apply_ranking(merged, [Ranked(3, 0.9), Ranked(2, 0.1)])) == ["d", "c", "a", "b"]


@given(RESULTS, st.integers(1, 8))
def test_a_cut_text_has_a_note(results: list[SearchResult], top: int) -> None:
    merged = pool(results, WEIGHTS)
    short = cut(merged, top)
    assert keys(short) == keys(merged)[:top]
    assert len(short.entries) + len(short.dropped) == len(merged.entries) + len(merged.dropped)


SAME = "The warranty lasts two years and begins on the day of delivery."


def passage(document: str, content: str = SAME, score: float = 0.5) -> Item:
    return Item(
        type="kb",
        key=document,
        title=document.upper(),
        document_id=f"{document}.md",
        collection="docs",
        content=content,
        score=score,
        citation_id=f"#ref:{document}",
    )


def pooled_of(*items: Item) -> Pool:
    return pool([SearchResult(type="kb", query="q", source="auto", items=items)], WEIGHTS)


def test_one_passage_of_several_documents_is_one_source_with_all_places() -> None:
    other = passage("c", "The lamp weighs two kilograms without its shade.")
    loud = f"## Warranty\n\n{SAME.upper()}\n"
    pooled = pooled_of(passage("a", score=0.6), other, passage("b", loud), passage("d"))
    assert keys(pooled) == ["a", "c"]
    first, second = (entry.item for entry in pooled.entries)
    assert [(place.title, place.document_id) for place in first.also] == [
        ("B", "b.md"),
        ("D", "d.md"),
    ]
    assert second.also == ()
    assert [entry.dropped for entry in pooled.dropped] == ["the same text as #ref:a"] * 2


def test_short_passages_and_those_of_one_document_stay_apart() -> None:
    short = pooled_of(passage("a", "Yes."), passage("b", "Yes."))
    assert keys(short) == ["a", "b"]
    twice = passage("a").model_copy(update={"key": "a2"})
    assert keys(pooled_of(passage("a"), twice)) == ["a", "a2"]
