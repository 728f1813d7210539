"""Results of providers become clean items, one for each page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.types.search import Item
from groundhook.core.types.web_providers import WebHit, WebQuery
from groundhook.handlers.web.dates import parse_date
from groundhook.handlers.web.items import clean, items_of, position_score
from groundhook.handlers.web.urls import canonical

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def items(
    hits: Sequence[WebHit],
    *,
    limit: int = 10,
    sites: tuple[str, ...] = (),
    without: tuple[str, ...] = (),
) -> list[Item]:
    return list(
        items_of(hits, WebQuery(query="q", limit=limit, sites=sites, exclude_sites=without), NOW)
    )


def test_text_is_as_a_reader_sees_it() -> None:
    assert (
        clean("Q&amp;A&nbsp;about <b>cats</b>\u200b\u202e\x07\r\n\n\n\n  and   dogs \ud800")
        == "Q&A about cats\n\nand dogs"
    )
    assert (
        clean(r"max\_retries \[1\] is `a\_b`, in C:\temp")
        == r"max_retries [1] is `a\_b`, in C:\temp"
    )


def test_each_page_is_one_item_and_results_without_an_http_address_are_dropped() -> None:
    found = items(
        [
            WebHit(
                url="https://www.example.com/a/?utm_source=x",
                title="First",
                content="one",
                score=0.4,
            ),
            WebHit(url="https://example.com/a#part", title="Again", content="two", score=0.9),
            WebHit(url="javascript:alert(1)", title="Sly", content="three", score=0.9),
            WebHit(url="https://example.com/b", score=0.9),
            WebHit(url="https://example.com/c\ud800", content="four", score=0.8),
        ],
        limit=10,
    )
    assert [(item.title, item.url, item.key) for item in found] == [
        ("https://example.com/c", "https://example.com/c", "web:https://example.com/c"),
        ("First", "https://www.example.com/a/", "web:https://example.com/a"),
    ]


def test_results_without_a_score_keep_their_order() -> None:
    found = items(
        [WebHit(url=f"https://example.com/{n}", title=str(n)) for n in range(10)], limit=10
    )
    assert [item.title for item in found] == [str(n) for n in range(10)]
    assert [found[0].score, round(found[9].score, 2)] == [position_score(1), 0.47]


SCORES = st.one_of(st.none(), st.floats())
HITS = st.lists(
    st.builds(
        WebHit,
        url=st.sampled_from(["https://a.com", "http://www.b.org/x?utm_id=1", "ftp://c", ""])
        | st.text(),
        title=st.text(),
        content=st.text(),
        score=SCORES,
    )
)


@given(HITS, st.integers(1, 5))
def test_items_of_any_results_are_limited_distinct_ordered_and_well_formed(
    hits: list[WebHit], limit: int
) -> None:
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


def test_pages_of_excluded_sites_are_dropped_even_if_the_provider_returns_them() -> None:
    found = items(
        [WebHit(url="https://a.com/x", title="A"), WebHit(url="https://www.b.a.com", title="B")],
        without=("b.a.com",),
    )
    assert [item.title for item in found] == ["A"]


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2026-03-01T10:00:00+02:00", "2026-03-01"),
        ("2026-03-01", "2026-03-01"),
        ("Tue, 04 Nov 2025 12:00:00 GMT", "2025-11-04"),
        ("Mar 1, 2024", "2024-03-01"),
        ("1 March 2024", "2024-03-01"),
        ("Sept 5, 2024", "2024-09-05"),
        ("3 days ago", "2026-11-17"),
        ("5 hours ago", "2026-11-20"),
        ("1 week ago", "2026-11-13"),
        ("2027-01-01", ""),
        ("2026-13-01", ""),
        ("9999 years ago", ""),
        ("vor 3 Tagen", ""),
        ("", ""),
    ],
)
def test_a_date_is_parsed_or_unknown(text: str, day: str) -> None:
    assert parse_date(text, NOW) == day


@given(st.text(max_size=60))
def test_any_text_gives_a_day_or_nothing(text: str) -> None:
    day = parse_date(text, NOW)
    assert day == "" or datetime.fromisoformat(day)
