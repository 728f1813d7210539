"""A question becomes a query for a search engine; a query is unchanged."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.handlers.web.keywords import LONGEST_QUERY, extract


@pytest.mark.parametrize(
    ("text", "query"),
    [
        (
            "I want to find the best wireless headphones under $100",
            "best wireless headphones under $100",
        ),
        ("What is the population of Berlin?", "population Berlin"),
        (
            "Can you please tell me how many people live in New York City?",
            "how many people live New York City",
        ),
        ("What did The Who play at Woodstock in 1969?", "The Who play Woodstock 1969"),
        ('Who wrote "The Name of the Rose" and when?', 'wrote "The Name of the Rose"'),
        (
            "I'm looking for a laptop with at least 16 GB RAM, not Apple",
            "laptop at least 16 GB RAM not Apple",
        ),
        (
            "flights between 5 and 10 hours from Tel Aviv in May",
            "flights between 5 and 10 hours Tel Aviv May",
        ),
        ("How do I install Node.js 22.4 on my Ubuntu?", "install Node.js 22.4 Ubuntu"),
        ("WHAT IS THE CAPITAL OF FRANCE", "capital france"),
        ("Was kostet ein Flug von Berlin nach Rom?", "kostet Flug Berlin Rom"),
        ("Je voudrais savoir quelle est la capitale de la France", "capitale France"),
        ("¿Cuál es la capital de España?", "capital España"),
        ("אני רוצה לדעת מה האוכלוסייה של ירושלים", "האוכלוסייה ירושלים"),
    ],
)
def test_questions_become_queries(text: str, query: str) -> None:
    assert extract(text).query == query


@pytest.mark.parametrize(
    "text",
    [
        "latest AI developments",
        "Python 3.11 release notes",
        "how to boil eggs",
        "the who",
        "site:example.com -beta",
        "?",
    ],
)
def test_a_query_is_unchanged(text: str) -> None:
    assert extract(text).query == text


def test_operators_and_quoted_phrases_are_kept() -> None:
    query = extract(
        'please search for "exact words" site:example.com -beta in the newest release'
    ).query
    assert query == '"exact words" site:example.com -beta newest release'


def test_the_heaviest_phrases_are_kept_in_the_order_of_the_text() -> None:
    long = (
        "My old computer makes noise while starting. Which graphics driver does Ubuntu Linux need"
        " with 16 GB of memory?"
    )
    keywords = extract(long, most=4)
    assert len(keywords.phrases) == 4
    assert {"Ubuntu Linux", "16 GB"} <= set(keywords.phrases)
    assert list(keywords.phrases) == sorted(keywords.phrases, key=long.index)


def test_the_language_can_be_set() -> None:
    assert (
        extract("die hard movie was released when exactly", language="en").query
        == "die hard movie released exactly"
    )
    assert (
        "die"
        not in extract("die besten Filme aus dem Jahr 1988 bitte", language="de").query.split()
    )


SCRAPS = "What is the Best of Rome $100 5 km ? . , please -x I a:b ירושלים 中国"
TEXTS = st.one_of(
    st.text(max_size=600),
    st.lists(st.sampled_from([*SCRAPS.split(), '"two words"'])).map(" ".join),
)


@given(TEXTS, st.integers(1, 12))
def test_any_text_gives_a_query_of_bounded_size_out_of_its_own_words(text: str, most: int) -> None:
    keywords = extract(text, most=most)
    assert len(keywords.query) <= LONGEST_QUERY
    assert len(keywords.phrases) <= most
    assert bool(keywords.query) == bool(text.replace("\0", " ").strip())
    letters = text.casefold().lower()
    assert all(
        word.strip('"').casefold().lower() in letters or '"' in word
        for word in keywords.query.split()
    )


def test_of_a_text_as_long_as_a_book_the_beginning_and_the_end_are_read() -> None:
    began = time.process_time()
    found = extract(
        f"When was the bridge of Oren built? {'a ' * 2_000_000} What does Velmora cost?"
    )
    assert time.process_time() - began < 5  # half a minute
    assert "Oren" in found.query
    assert "Velmora" in found.query
