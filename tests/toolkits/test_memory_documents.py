"""Memories as documents: previews, links, and the order of newer and older ones."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.types.collection_queries import CollectionMatch
from groundhook.toolkits.memory.documents import document, links_of, preview_of
from groundhook.toolkits.memory.ordering import newest_first

IDS = st.sampled_from("12345")


def test_a_preview_is_the_first_sentences() -> None:
    content = "One.\n\nTwo is  here. Three. Four."
    assert preview_of(content) == "One. Two is here. Three."


@given(st.text())
def test_a_preview_is_one_short_line(content: str) -> None:
    preview = preview_of(content)
    assert len(preview) <= 402
    assert "\n" not in preview


def test_links_are_found_once_each() -> None:
    assert links_of(
        "See [[backend:3]], [[ qa : 007 ]] and [[backend:3]]; not [[x]] or [[:1]]."
    ) == [
        "backend:3",
        "qa:7",
    ]


def test_the_text_of_a_memory_is_its_content() -> None:
    made = document(
        7, title="T", content="\n a \n", supersedes=[3], written=datetime(2026, 1, 2, tzinfo=UTC)
    )
    assert (made.id, made.text) == ("7", "\n a \n")
    assert made.fields == {
        "preview": "a",
        "made": True,
        "written": "2026-01-02T00:00:00Z",
        "supersedes": ["3"],
    }


@given(
    st.lists(IDS, unique=True),
    st.dictionaries(IDS, st.lists(IDS, unique=True)),
)
def test_a_memory_comes_after_those_that_supersede_it_unless_they_do_each_other(
    order: list[str], newer: dict[str, list[str]]
) -> None:
    scores = [1 - 0.1 * place for place in range(len(order))]
    matches = [
        CollectionMatch(id=id, collection="c", score=score)
        for id, score in zip(order, scores, strict=True)
    ]
    placed = newest_first(matches, newer)
    assert sorted(match.id for match in placed) == sorted(order)
    falling = [match.score for match in placed]
    assert falling == sorted(falling, reverse=True)
    ids = [match.id for match in placed]
    for old, ones in newer.items():
        for new in ones:
            if {old, new} <= set(ids) and not newer.get(new):
                assert ids.index(new) < ids.index(old) or new == old
