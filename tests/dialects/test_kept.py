"""What is kept of a turn shows what was shown live."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.json_lines import line
from groundhook.core.types.chats import KeptAnswer, KeptCitation
from groundhook.core.types.events import (
    CitationSeen,
    Event,
    HookMessage,
    SearchComplete,
    SearchFound,
    SearchStart,
    StreamEnd,
    StreamStart,
    Text,
    ToolResult,
    ToolStart,
)
from groundhook.core.types.search import Item
from groundhook.host.output.dialects.kept import events_of, kept
from tests.dialects.logs import ITEMS, LOGS

ITEM = ITEMS[0]


@given(LOGS, st.data())
def test_what_was_kept_shows_the_same_again(log: list[Event], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(log)))
    live = kept(log[:cut])
    read_again = KeptAnswer.model_validate_json(line(live))

    assert read_again == live
    assert kept(events_of(read_again)) == live


@given(LOGS)
def test_the_text_and_the_citations_are_those_of_the_end(log: list[Event]) -> None:
    answer, end = kept(log), log[-1]
    assert isinstance(end, StreamEnd)
    assert answer.content == end.content
    for citation in answer.citations:
        for place in citation.places:
            assert answer.content.startswith(citation.marker, place)
    seen = [event for event in log if isinstance(event, CitationSeen)]
    assert sum(len(citation.places) for citation in answer.citations) == len(seen)


def test_only_cited_sources_keep_their_passages() -> None:
    other = ITEMS[1]
    answer = kept(
        [
            SearchStart(search_id="s1", source="auto", search_type="kb", query="tea"),
            SearchFound(search_id="s1", item=ITEM),
            SearchFound(search_id="s1", item=other),
            SearchComplete(search_id="s1", total=9, duration_ms=3),
            CitationSeen(marker=ITEM.citation_id, verdict="ok", item=ITEM),
            Text(delta=ITEM.citation_id),
        ]
    )
    assert [item.content for item in answer.searches[0].items] == ["", ""]
    assert [item.title for item in answer.searches[0].items] == [ITEM.title, other.title]
    assert answer.searches[0].total == 9
    assert answer.citations == (
        KeptCitation(marker=ITEM.citation_id, verdict="ok", item=ITEM, places=(0,)),
    )


def test_a_marker_in_code_is_no_citation_when_it_is_shown_again() -> None:
    code = f"```\n{ITEM.citation_id}\n```\n"
    answer = kept(
        [
            Text(delta=code),
            CitationSeen(marker=ITEM.citation_id, verdict="ok", item=ITEM),
            Text(delta=ITEM.citation_id),
        ]
    )
    assert answer.citations[0].places == (len(code),)
    shown = list(events_of(answer))
    assert [type(event) for event in shown[1:]] == [Text, CitationSeen, Text]


def test_a_marker_that_is_announced_early_is_placed_when_it_comes() -> None:
    seen = CitationSeen(marker="#ref:none", verdict="unknown")
    answer = kept(
        [Text(delta="See #ref:none "), seen, Text(delta="and #ref"), Text(delta=":none.")]
    )
    assert answer.citations[0].places == (18,)


def test_messages_are_kept_in_their_last_state_where_they_were_sent() -> None:
    answer = kept(
        [
            Text(delta="One "),
            HookMessage(action="send", message_id="m1", message={"n": [1]}, streaming=True),
            Text(delta="two"),
            HookMessage(action="append", message_id="m1", message=[2], path="n"),
            HookMessage(action="end", message_id="m1"),
        ]
    )
    (message,) = answer.messages
    assert (message.message, message.at, message.ended) == ({"n": [1, 2]}, 4, True)
    shown = [event for event in events_of(answer) if isinstance(event, Text | HookMessage)]
    assert [event.type for event in shown] == ["text", "message", "text"]


def test_calls_of_one_round_stay_together() -> None:
    answer = kept(
        [
            ToolStart(call_id="a", name="x"),
            ToolStart(call_id="b", name="y"),
            ToolResult(call_id="b", name="y", result={"n": 1}),
            ToolResult(call_id="a", name="x", error="no"),
            ToolStart(call_id="a", name="x"),
        ]
    )
    assert [(tool.call_id, tool.round, tool.complete) for tool in answer.tools] == [
        ("a", 0, True),
        ("b", 0, True),
        ("a", 1, False),
    ]


def test_a_turn_that_was_delegated_keeps_whom_it_began_with() -> None:
    answer = kept([StreamStart(assistant_id="desk"), StreamStart(assistant_id="docs")])
    assert answer.assistant_id == "desk"


def test_what_json_has_not_is_kept_as_its_clients_read_it() -> None:
    item = Item(type="db", title="\ud800", data={"n": float("nan")})
    answer = kept(
        [CitationSeen(marker="#ref:a1b2", verdict="ok", item=item), Text(delta="#ref:a1b2")]
    )
    assert json.loads(line(answer))["citations"][0]["item"]["title"] == "�"
