"""What providers send becomes clean items, one for each page."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from handlers.web.items import clean, items, position_score
from handlers.web.providers import Hit
from handlers.web.urls import canonical


def test_text_is_as_a_reader_sees_it() -> None:
    assert clean("Q&amp;A&nbsp;about <b>cats</b>\u200b\u202e\x07\r\n\n\n\n  and   dogs \ud800") == "Q&A about cats\n\nand dogs"


def test_one_page_is_one_item_and_what_cannot_be_followed_is_none() -> None:
    found = items(
        [
            Hit(url="https://www.example.com/a/?utm_source=x", title="First", content="one", score=0.4),
            Hit(url="https://example.com/a#part", title="Again", content="two", score=0.9),
            Hit(url="javascript:alert(1)", title="Sly", content="three", score=0.9),
            Hit(url="https://example.com/b", score=0.9),
            Hit(url="https://example.com/c\ud800", content="four", score=0.8),
        ],
        limit=10,
    )
    assert [(item.title, item.url, item.key) for item in found] == [
        ("https://example.com/c", "https://example.com/c", "web:https://example.com/c"),
        ("First", "https://www.example.com/a/", "web:https://example.com/a"),
    ]


def test_results_without_a_score_keep_their_order() -> None:
    found = items([Hit(url=f"https://example.com/{n}", title=str(n)) for n in range(10)], limit=10)
    assert [item.title for item in found] == [str(n) for n in range(10)]
    assert [found[0].score, round(found[9].score, 2)] == [position_score(1), 0.47]


SCORES = st.one_of(st.none(), st.floats())
HITS = st.lists(
    st.builds(
        Hit,
        url=st.sampled_from(["https://a.com", "http://www.b.org/x?utm_id=1", "ftp://c", ""]) | st.text(),
        title=st.text(),
        content=st.text(),
        score=SCORES,
    )
)


@given(HITS, st.integers(1, 5))
def test_whatever_a_provider_sends_items_are_few_distinct_ordered_and_well_formed(hits: list[Hit], limit: int) -> None:
    found = items(hits, limit=limit)
    assert len(found) <= limit
    assert len({item.key for item in found}) == len(found)
    assert [item.score for item in found] == sorted((item.score for item in found), reverse=True)
    for item in found:
        assert 0 <= item.score <= 1
        assert math.isfinite(item.score)
        assert item.url.lower().startswith(("http://", "https://"))
        assert item.key == f"web:{canonical(item.url)}"
        assert item.title.strip()
        item.model_dump_json().encode("utf-8")
