"""What a sentence that cites says is looked for in its sources, without a model."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from groundhook.core.types.events import Claims
from groundhook.core.types.search import Item, Row, Table
from groundhook.host.search.citations import claims
from groundhook.host.search.citations.claims import ClaimState
from groundhook.host.search.citations.facts import CitedSource, facts, sums, words_of
from groundhook.host.search.citations.reader import Grammar, Marker, Reading, read
from groundhook.host.testing.canned import CannedSource
from tests.conftest import MakeApp
from tests.parts.turns import app_with, end, run

GRAMMAR = Grammar.of("#ref:{id}")
SOURCES = {
    "a1": CitedSource.of(
        "Limits",
        "A turn takes at most 120 seconds, a request has 1,234.50 kB. Set on 12 March 2024 by Acme"
        " Ltd. Five tools run at once; the message is “too many turns”.",
    ),
    "b2": CitedSource.of("Prices", "The plan costs 49 euros."),
}


def checked(parts: list[str], question: str = "") -> ClaimState:
    reading, state, known = Reading(), ClaimState(), words_of(question)
    for n in range(len(parts) + 1):
        last = n == len(parts)
        reading, pieces = read(reading, "" if last else parts[n], GRAMMAR, last=last)
        for piece in pieces:
            if isinstance(piece, Marker):
                state = claims.with_marker(state, piece.text, SOURCES.get(piece.id))
            else:
                state = claims.with_text(state, piece.text, known)
    return claims.ended(state, known)


def missing(text: str, question: str = "") -> list[str]:
    return [each for found in checked([text], question).missing.values() for each in found]


@pytest.mark.parametrize(
    "text",
    [
        "A turn takes 120 seconds #ref:a1.",
        "A turn takes 120 s. #ref:a1",
        "Es dauert höchstens 120 Sekunden #ref:a1.",
        "It is 1234.5 kB #ref:a1, or 1 234,50 kilobytes #ref:a1.",
        "It was set on 2024-03-12 #ref:a1.",
        "It was set on 12.03.2024 #ref:a1, am 12. März 2024 #ref:a1.",
        "That was Acme's choice #ref:a1.",
        "Then 5 tools run #ref:a1.",
        'You see "Too  many **turns**" #ref:a1.',
        "The turn of 120 s and the plan of 49 € #ref:a1 #ref:b2.",
        "The turn has 120 seconds. The request has 1234.5 kB. #ref:a1",
        "[a page](https://example.org/9999) says 120 #ref:a1",
        "12. The twelfth point #ref:a1",
        "Acme sets it #ref:a1, as the Böhm API asks.",
    ],
)
def test_facts_are_found_in_every_spelling_and_format(text: str) -> None:
    assert missing(text, "What of the Böhm API?") == []
    assert checked([text], "What of the Böhm API?").claims.doubtful == 0


@pytest.mark.parametrize(
    ("text", "lacks"),
    [
        ("A turn takes 923 seconds #ref:a1.", ["923 seconds"]),
        ("A turn takes 120 hours #ref:a1.", ["120 hours"]),
        ("The request has 1234.6 kB. #ref:a1", ["1234.6 kB"]),
        ("It was set on 12 April 2024 #ref:a1.", ["April"]),
        ("It was the choice of Globex #ref:a1.", ["Globex"]),
        ('You see "no more turns" #ref:a1.', ['"no more turns"']),
        ("The plan costs 49 euros #ref:a1.", ["49 euros"]),
        ("| plan | 923 | #ref:b2 |", ["923"]),
    ],
)
def test_a_fact_that_no_cited_source_has_is_missing(text: str, lacks: list[str]) -> None:
    assert missing(text) == lacks
    assert checked([text]).claims == Claims(cited=1, doubtful=1)


def test_sentences_are_counted_by_their_support() -> None:
    text = (
        "# 7 limits\n\nA turn takes 120 s #ref:a1. It costs 923 euros #ref:b2. It has 77 parts.\n"
        "It is good. Unknown #ref:zz99.\n```\n55 #ref:a1\n```\n"
    )
    assert checked([text]).claims == Claims(cited=3, supported=1, doubtful=2, uncited=1)


SIGNS = st.sampled_from(
    [*"aZ 1.,\n\"“”#`'", "#ref:a1", "#ref:b2", "120 s", "923", "Acme ", ". ", "```", "\n\n", "|"]
)


@given(st.lists(SIGNS, max_size=40), st.data())
def test_every_chunking_of_an_answer_gives_the_same_claims(
    signs: list[str], data: st.DataObject
) -> None:
    text = "".join(signs)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    parts = [text[low:high] for low, high in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    whole, split = checked([text]), checked(parts)
    assert (whole.claims, whole.missing) == (split.claims, split.missing)
    assert whole.claims.cited == whole.claims.supported + whole.claims.doubtful


@given(st.text(max_size=300))
@example("0*AP")
@example("AP\xad0")
def test_every_fact_of_a_text_is_in_it(text: str) -> None:
    source = CitedSource.of(text)
    assert [fact for fact in facts(text) if not source.has(fact)] == []


async def test_the_end_of_a_turn_has_what_a_cited_source_lacks(make_app: MakeApp) -> None:
    items = (Item(type="kb", title="Limits", content="A turn takes 120 seconds.", key="k"),)
    events = await run(
        app_with(make_app),
        script=["A turn takes 120 s {ref:0}. It needs 923 kB {ref:0}."],
        sources={"kb": CannedSource({"*": items})},
    )
    last = end(events)
    assert last.claims == Claims(cited=2, supported=1, doubtful=1)
    assert [each.missing for each in last.citations] == [("923 kB",)]


def test_a_line_of_quotations_with_hundreds_of_markers_is_checked_in_a_moment() -> None:
    long = [CitedSource.of(f"Tea takes {n} minutes. " * 4500) for n in range(20)]
    quotes = " ".join(f'"w{n:x}"' for n in range(500))
    state = claims.with_text(claims.ClaimState(), quotes, frozenset())
    for n in range(claims.MOST_MARKS):
        state = claims.with_marker(state, f"#ref:{n % 20}", long[n % 20])
    began = time.process_time()
    state = claims.ended(state, frozenset())
    assert time.process_time() - began < 3  # each quotation in each source once a marker took 7 s
    assert state.claims.doubtful == 1


TABLE = (
    "Costs\n\n| place | cost |\n|---|---|\n| Rome | 1,200 € |\n| Oslo | 800 € |\n| Bonn | 12.50 € |"
)


def row(key: str, cost: str) -> CitedSource:
    table = Table(id="t", name="costs", columns=("place", "cost"))
    return CitedSource.of_item(Item(type="db", key=key, row=Row(table=table, cells=(key, cost))))


def test_a_sum_of_a_column_of_a_cited_table_is_supported() -> None:
    source = CitedSource.of(TABLE)
    assert sums([source]) >= {"2012.5"}
    [total] = facts("Together they cost 2,012.50 €.")
    assert not source.has(total)
    assert claims.missing_of([total], [source]) == []
    [wrong] = facts("Together they cost 2,013 €.")
    assert claims.missing_of([wrong], [source]) == ["2,013 €"]


def test_the_rows_of_a_database_that_a_sentence_cites_are_added_up_together() -> None:
    rows = [row("Rome", "1200"), row("Oslo", "800")]
    [total] = facts("It is 2000 in all.")
    assert claims.missing_of([total], rows) == []
    assert claims.missing_of([total], rows[:1]) == ["2000"]
