"""The text of a result for the model, for any result and any text in it."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.types.search import Item
from groundhook.core.types.tools import ToolOutcome
from groundhook.host.search.citations.index import CitationIndex
from groundhook.host.search.citations.reader import Grammar, Plain, Reading, read
from groundhook.host.tools.text import for_model
from groundhook.host.tools.toolbox import text_of

TEXT = st.one_of(st.text(max_size=20), st.sampled_from(["#ref:abcd", "#r\u200bef:abcd", "END"]))
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXT, inner, max_size=4)),
    max_leaves=12,
)


def markers(text: str, grammar: Grammar) -> list[str]:
    _, pieces = read(Reading(), text, grammar, last=True)
    return [piece.text for piece in pieces if not isinstance(piece, Plain)]


@given(st.lists(st.tuples(st.integers(0, 5), TEXT), max_size=5), JSON, st.booleans())
def test_a_result_has_the_markers_of_its_items_and_no_others(
    entries: list[tuple[int, str]], more: Any, own_text: bool
) -> None:
    index = CitationIndex("#ref:{id}")
    items = tuple(
        index.cite(Item(type="kb", key=f"k{place}", title=title, document_id=str(id)))
        for place, (id, title) in enumerate(entries)
    )
    result = {"entries": [{"id": id, "title": title} for id, title in entries], "more": more}
    outcome = ToolOutcome(
        toolcall_id="c",
        tool="t",
        result=result,
        text=f"<x>{text_of(result)}</x>" if own_text else text_of(result),
        items=items,
    )
    received = for_model(outcome, index.grammar, limit=1 << 20, fence="f1").text
    assert sorted(markers(received, index.grammar)) == sorted(item.citation_id for item in items)
    if not own_text:
        body = received.partition("BEGIN RESULT f1\n")[2].rpartition("\nEND RESULT f1")[0]
        assert len(json.loads(body)["entries"]) == len(entries)
