"""The certainty of a turn: that of the best search whose items its answer cites."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.ports import Handler, Scope, SourceResult
from groundhook.core.types.search import (
    Certainty,
    SearchAccount,
    SearchRequest,
    SearchResult,
    SearchType,
)
from groundhook.host.output.dialects import fold, kept
from groundhook.host.output.dialects.native import Whole
from groundhook.host.output.dialects.openai_chat import OpenAIChat, completion
from groundhook.host.search.certainty import ORDER, certainty_of_turn
from groundhook.host.testing.canned import CannedSource, canned_item
from tests.conftest import MakeApp
from tests.parts.turns import app_with, end, run

NEXT = "function Next(ctx, payload) { return {data: payload.certainty}; }"
FOUND = st.lists(st.tuples(st.sampled_from(ORDER), st.sampled_from("abc")), min_size=1)


def searched(certainty: Certainty | None, key: str) -> SearchResult:
    item = canned_item(key)
    return SearchResult(type="kb", query="q", items=(item,), certainty=certainty)


@given(FOUND, st.sets(st.sampled_from("abc")))
def test_a_turn_is_as_certain_as_the_best_search_that_it_cites(
    found: list[tuple[Certainty | None, str]], cited: set[str]
) -> None:
    searches = [searched(certainty, key) for certainty, key in found]
    used = [certainty for certainty, key in found if key in cited]
    expected = min(used, key=ORDER.index) if used else "none"
    assert certainty_of_turn(searches, cited) == expected


def test_an_answer_that_cites_what_tools_found_or_asked_nothing_is_not_judged() -> None:
    assert certainty_of_turn([searched("sure", "a")], {"t"}, elsewhere=True) is None
    assert certainty_of_turn([], ()) is None


class Judging:
    """A source that is certain of its item."""

    def __init__(self, certainty: Certainty) -> None:
        self._certainty = certainty

    async def search(self, request: SearchRequest, scope: Scope, /) -> SourceResult:
        account = SearchAccount(certainty=self._certainty)
        return SourceResult(items=(canned_item("one"),), account=account)


@pytest.mark.parametrize(
    ("script", "certainty", "expected"),
    [
        ("It is one {ref:0}.", "sure", "sure"),
        ("It is one {ref:0}.", "none", "none"),
        ("I know it without.", "sure", "none"),
    ],
)
async def test_the_certainty_of_a_turn_reaches_hooks_clients_and_the_stored_answer(
    make_app: MakeApp, script: str, certainty: Certainty, expected: str
) -> None:
    app = app_with(make_app, src__index_ts=NEXT)
    sources: Mapping[SearchType, Handler] = {
        "kb": Judging(certainty),
        "web": CannedSource({"*": []}),
    }
    events = await run(app, script=[script], sources=sources)

    assert end(events).certainty == end(events).data == expected
    assert kept.kept(events).certainty == expected
    assert end([*kept.events_of(kept.kept(events))]).certainty == expected
    [whole] = fold.run(Whole(), events)
    assert whole.data.certainty == expected
    chunks = fold.run(OpenAIChat(id="c", model="a", created=1), events)
    assert completion(chunks)["groundhook"]["certainty"] == expected


async def test_a_turn_that_asks_no_source_is_not_judged(make_app: MakeApp) -> None:
    app = app_with(make_app, src__index_ts=NEXT)
    events = await run(app, search=False)
    assert end(events).certainty is end(events).data is None
