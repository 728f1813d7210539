"""A question whose search is not sure is searched in a model's words too, through the public
door."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook import open_host
from groundhook.core.ports import Scope, SourceResult
from groundhook.core.types.events import Event, Trace
from groundhook.core.types.search import Certainty, SearchAccount, SearchRequest
from groundhook.host.search.other_words import OtherWords, WrittenWords, fuse
from groundhook.host.testing.canned import canned_item
from tests.conftest import MakeApp
from tests.parts.turns import app_with, of, run, scripted

QUESTION = "How do I get my money back?"
WORDS = "refund, return within thirty days"
WRITTEN = json.dumps({"query": WORDS})
BOTH = f"{QUESTION}; {WORDS}"


def package(first: str = "auto", by: str = "connector:script", timeout_ms: int = 60_000) -> str:
    return json.dumps(
        {
            "name": "A",
            "connector": "script",
            "search": {"kb": True, "rewrite": {"first": first, "timeout_ms": timeout_ms}},
            "kb": {"collections": ["docs"]},
            "uses": {"rewrite": by},
        }
    )


@dataclass
class Manual:
    """A collection that finds `near` in the words of the question and `right` in other words."""

    certainty: Certainty | None = "none"
    other: Certainty | None = "sure"
    queries: list[str] = field(default_factory=list)

    async def search(self, request: SearchRequest, _scope: Scope, /) -> SourceResult:
        self.queries.append(request.query)
        plain = request.query == QUESTION
        item = canned_item("near", score=0.6) if plain else canned_item("right", score=0.9)
        certainty = self.certainty if plain else self.other
        account = SearchAccount(certainty=certainty, read_as=request.query)
        return SourceResult(items=(item,), account=account)


def steps(events: list[Event]) -> list[dict[str, Any]]:
    nodes = [event.node for event in events if isinstance(event, Trace)]
    return [node.data for node in nodes if node.type == "rewrite" and node.status != "running"]


async def searched(
    make_app: MakeApp, manual: Manual, *script: Any, messages: Any = QUESTION, **settings: Any
) -> list[Event]:
    app = app_with(make_app, package(**settings))
    return await run(app, messages, script=[*script, "Fine."], sources={"kb": manual})


async def test_both_searches_are_one_result_that_says_how_it_was_read(make_app: MakeApp) -> None:
    manual = Manual()
    events = await searched(make_app, manual, WRITTEN)
    assert manual.queries == [QUESTION, WORDS]
    [complete] = of(events, "search_complete")
    assert (complete.certainty, complete.read_as) == ("partial", BOTH)
    assert complete.read_by == "connector:script"
    assert [event.item.key for event in of(events, "search_result")] == ["right", "near"]
    assert steps(events) == [
        {"question": QUESTION, "certainty": "none", "cached": False, "searched": WORDS}
    ]


@pytest.mark.parametrize(
    ("certainty", "settings"),
    [
        ("sure", {}),
        (None, {}),
        ("none", {"first": "never"}),
        ("none", {"by": "builtin"}),
        ("none", {"by": "disabled"}),
    ],
)
async def test_no_model_is_asked_for_a_sure_search_or_where_none_is_named(
    make_app: MakeApp, certainty: Certainty | None, settings: dict[str, Any]
) -> None:
    manual = Manual(certainty)
    events = await searched(make_app, manual, **settings)
    assert manual.queries == [QUESTION]
    assert steps(events) == []


async def test_a_sure_search_is_repeated_where_the_assistant_always_wants_it(
    make_app: MakeApp,
) -> None:
    events = await searched(make_app, Manual("sure"), WRITTEN, first="always")
    assert [event.item.key for event in of(events, "search_result")] == ["near", "right"]
    assert of(events, "search_complete")[0].certainty == "sure"


async def test_the_same_words_as_the_question_are_not_searched_again(make_app: MakeApp) -> None:
    manual = Manual()
    events = await searched(make_app, manual, json.dumps({"query": QUESTION}))
    assert manual.queries == [QUESTION]
    assert of(events, "search_complete")[0].certainty == "none"
    assert of(events, "warning") == []


@pytest.mark.parametrize("answer", ["I do not know.", '{"query": " "}', {"delay_ms": 600_000}])
async def test_a_model_that_fails_is_a_warning_and_the_question_is_searched_alone(
    make_app: MakeApp, answer: Any
) -> None:
    manual = Manual()
    late = isinstance(answer, dict)
    events = await searched(make_app, manual, answer, timeout_ms=50 if late else 60_000)
    assert manual.queries == [QUESTION]
    assert of(events, "stream_end")[0].content == "Fine."
    [warning] = [each for each in of(events, "warning") if "own words alone" in each.message]
    assert "script" in warning.message


async def test_a_follow_up_that_was_rewritten_has_one_call_of_the_model(make_app: MakeApp) -> None:
    messages = [
        {"role": "user", "content": "Can I return a lamp?"},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "And how long?"},
    ]
    whole = "How long can I return a lamp?"
    manual = Manual()
    await searched(make_app, manual, json.dumps({"query": whole}), messages=messages)
    assert manual.queries == [whole]


async def test_words_are_kept_for_the_same_reader_and_question_alone(make_app: MakeApp) -> None:
    app = app_with(make_app, package())
    other = json.dumps({"query": "other words"})
    model = scripted(WRITTEN, "Fine.", "Fine.", other, "Fine.")
    manual = Manual()
    with anyio.fail_after(60):
        async with open_host(
            app, environment={}, sources={"kb": manual}, connectors={"script": model}
        ) as host:
            for user in ("ann", "ann", "bob"):
                async with host.stream("a", QUESTION, identity={"user_id": user}) as events:
                    assert [event async for event in events]
    assert manual.queries == [QUESTION, WORDS, QUESTION, WORDS, QUESTION, "other words"]


async def test_a_model_reads_headings_of_the_readers_tenant_alone(make_app: MakeApp) -> None:
    collection = {
        "name": "Handbook",
        "description": "Rules of the house",
        "tenant_field": "team",
    }
    app = app_with(make_app, package())
    (app / "kb/docs.kb.yao").write_text(json.dumps(collection), encoding="utf-8")
    documents = [
        {
            "id": "1",
            "title": "Refunds",
            "text": "# Refunds\n\n## Period\n\nThirty days.",
            "team": "x",
        },
        {"id": "2", "title": "Secret merger", "text": "# Merger\n\nWith nobody.", "team": "y"},
    ]
    feed = io.BytesIO("\n".join(map(json.dumps, documents)).encode())
    model = scripted("Fine.", WRITTEN, "Fine.")
    with anyio.fail_after(120):
        async with open_host(app, environment={}, connectors={"script": model}) as host:
            added = await host.kb.add("docs", feed=feed)
            assert not added.failed
            for tenant in ("z", "x"):
                identity = {"user_id": "ann", "tenant_id": tenant}
                async with host.stream("a", QUESTION, identity=identity) as events:
                    assert [event async for event in events]
    # Nothing is asked for a tenant without documents.
    [asked] = [each for each in model.calls if "search words" in each.messages[0].text]
    about = json.loads(asked.messages[-1].text)["collections"]
    [outline] = about
    assert (outline["name"], outline["description"]) == ("Handbook", "Rules of the house")
    assert "Refunds" in outline["headings"]
    assert "erger" not in asked.messages[-1].text


# -------------------------------------------------------------------------------------- the joining

KEYS = st.lists(st.sampled_from("abcdefghij"), unique=True)
CERTAINTIES: st.SearchStrategy[Certainty | None] = st.sampled_from(
    ["sure", "partial", "none", None]
)


def result(keys: list[str], certainty: Certainty | None) -> SourceResult:
    items = [canned_item(key, score=1 - place / 20) for place, key in enumerate(keys)]
    return SourceResult(items=tuple(items), account=SearchAccount(certainty=certainty))


@given(KEYS, KEYS, CERTAINTIES, CERTAINTIES, st.integers(1, 12))
def test_a_joined_result_has_each_item_once_best_first_and_is_no_surer_than_the_question(
    plain: list[str],
    other: list[str],
    certainty: Certainty | None,
    theirs: Certainty | None,
    limit: int,
) -> None:
    words = OtherWords("words", "connector:x")
    joined = fuse(result(plain, certainty), result(other, theirs), words, limit)
    keys = [item.key for item in joined.items]
    scores = [item.score for item in joined.items]
    assert len(keys) == len(set(keys)) == min(limit, len({*plain, *other}))
    assert scores == sorted(scores, reverse=True)
    raised = (certainty, theirs) == ("none", "sure")
    assert joined.account.certainty == ("partial" if raised else certainty)


@given(KEYS.filter(bool), KEYS, st.sampled_from(["sure", "partial"]))
def test_words_of_a_model_take_no_first_place_from_a_question_that_found_something(
    plain: list[str], other: list[str], certainty: Certainty
) -> None:
    unrelated = [key.upper() for key in other]
    words = OtherWords("words", "connector:x")
    joined = fuse(result(plain, certainty), result(unrelated, "sure"), words, None)
    assert joined.items[0].key == plain[0]


def test_the_words_that_were_written_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groundhook.host.search.other_words.MOST_KEPT", 2)
    written = WrittenWords()
    for key in ("a", "b"):
        written.put(key, key)
    assert written.get("a") == "a"
    written.put("c", "c")
    assert [written.get(key) for key in "abc"] == ["a", None, "c"]
