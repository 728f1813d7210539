"""Logs of turns for tests of dialects: generated ones, with what no reader may see planted in
them."""

from __future__ import annotations

from itertools import chain

from hypothesis import strategies as st

from groundhook.core.types.events import (
    ApprovalRequired,
    CitationSeen,
    Event,
    Failed,
    HookMessage,
    SearchComplete,
    SearchFound,
    SearchStart,
    StreamEnd,
    StreamStart,
    Text,
    ToolResult,
    ToolStart,
    Trace,
    TraceNode,
    Warned,
)
from groundhook.core.types.search import Extent, Item

HIDDEN = "/srv/secret"
ITEMS = (
    Item(
        citation_id="#ref:k3vd",
        type="kb",
        title="Tea",
        content="Two minutes.",
        url=f"file://{HIDDEN}/tea.md",
        collection="notes",
        document_id="tea/tea.md",
        extent=Extent(start=0, end=12),
        score=0.9,
    ),
    Item(
        citation_id="#ref:k3ve",
        type="kb",
        title="Tea",
        content="Four minutes.",
        url=f"file://{HIDDEN}/tea.md",
        collection="notes",
        document_id="tea/tea.md",
        extent=Extent(start=13, end=30),
        score=0.8,
    ),
    Item(citation_id="#ref:w1ab", type="web", title="Page", url="https://tea.example/p"),
    Item(citation_id="#ref:w1ac", type="web", title="Page", url="https://tea.example/p"),
    Item(citation_id="#ref:d1ab", type="db", title="Assam", model="tea", record_id="1/2 ü"),
    Item(citation_id="#ref:f1ab", type="db", title="Count", model="tea"),
)

WORDS = st.text(st.characters(blacklist_categories=["Cs"]), max_size=8)
CITATIONS = st.one_of(
    st.sampled_from(ITEMS).map(
        lambda item: CitationSeen(marker=item.citation_id, verdict="ok", item=item)
    ),
    st.just(CitationSeen(marker="#ref:none", verdict="unknown")),
)


def _cited(seen: CitationSeen) -> list[Event]:
    return [seen, Text(delta=seen.marker)]


def _search(n: int, item: Item, error: bool) -> list[Event]:
    failed = f"cannot read {HIDDEN}" if error else None
    return [
        SearchStart(search_id=f"s{n}", source="auto", search_type=item.type, query="tea"),
        SearchFound(search_id=f"s{n}", item=item),
        SearchComplete(search_id=f"s{n}", total=1, duration_ms=3, error=failed),
    ]


PARTS = st.one_of(
    WORDS.filter(bool).map(lambda text: [Text(delta=text)]),
    CITATIONS.map(_cited),
    st.builds(_search, st.integers(0, 3), st.sampled_from(ITEMS), st.booleans()),
    st.just(
        [
            ToolStart(call_id="c1", name="look", arguments={}),
            ToolResult(call_id="c1", name="look", error=HIDDEN),
        ]
    ),
    st.just([ApprovalRequired(call_id="w1", name="cancel", arguments={"order": 3})]),
    st.just([Trace(node=TraceNode(id="n", type="step", data={"path": HIDDEN}))]),
    st.just([Warned(code="odd", message=HIDDEN)]),
    st.just([Failed(code="hook", message=HIDDEN, file=HIDDEN, hint=HIDDEN)]),
    st.just(
        [
            HookMessage(
                action="send",
                message_id="m1",
                message={"type": "text", "props": {"content": "Wait"}},
            ),
            HookMessage(action="append", message_id="m1", message="…", path="props.content"),
        ]
    ),
)


def _log(parts: list[list[Event]]) -> list[Event]:
    events: list[Event] = [StreamStart(assistant_id="tea"), *chain.from_iterable(parts)]
    content = "".join(event.delta for event in events if isinstance(event, Text))
    events.append(StreamEnd(content=content, timings={"total": 4.0, "hook": 1.0}))
    # Copies: an event is stamped in place, and parts are drawn more than once.
    return [event.model_copy().stamped("t_1", n) for n, event in enumerate(events)]


LOGS = st.lists(PARTS, max_size=8).map(_log)
