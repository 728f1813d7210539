"""Reranking in a turn: the layers of configuration choose the reranker, and a reranker that fails
leaves the order as it was."""

from __future__ import annotations

from typing import Any

import pytest

from groundhook.core.errors import RerankError
from groundhook.core.ports import Ranked
from groundhook.host.app.plugins import Plugin, Plugins
from tests.conftest import MakeApp
from tests.loopback.server import Json, Loopback
from tests.parts.reranked_turns import order, turn, warnings
from tests.parts.turns import end, of


async def test_an_assistants_order_is_used(make_app: MakeApp) -> None:
    events = await turn(make_app, uses="judge")
    assert order(events) == "dcba"
    assert warnings(events) == []


@pytest.mark.parametrize(
    ("uses", "rerank", "requested", "expected"),
    [
        ("builtin", {}, {}, "abcd"),
        ("judge", {}, {}, "dcba"),
        ("judge", {"type": "score"}, {}, "abcd"),
        ("builtin", {"agent": "judge"}, {}, "dcba"),
        ("builtin", {"type": "agent", "agent": "judge", "top_k": 2}, {}, "dc"),
        ("judge", {}, {"type": "score"}, "abcd"),
        ("judge", {"type": "score"}, {"agent": "judge"}, "dcba"),
        ("judge", {}, {"top_k": 1}, "d"),
    ],
)
async def test_the_highest_layer_that_names_a_reranker_decides(
    make_app: MakeApp, uses: str, rerank: dict[str, Any], requested: dict[str, Any], expected: str
) -> None:
    events = await turn(
        make_app, uses=uses, rerank=rerank, options={"rerank": requested} if requested else {}
    )
    assert order(events) == expected


async def test_uses_in_a_higher_layer_outranks_a_type_in_a_lower_one(make_app: MakeApp) -> None:
    files = {"agent/search.yao": '{"rerank": {"type": "score"}}'}
    assert order(await turn(make_app, uses="judge", files=files)) == "dcba"
    hook = "function Create() { return { uses: { rerank: 'judge' } }; }"
    assert order(await turn(make_app, rerank={"type": "score"}, hook=hook)) == "dcba"


async def test_a_hooks_own_search_is_ordered_by_the_reranker_that_it_names(
    make_app: MakeApp,
) -> None:
    hook = """function Create(ctx) {
        const search = (options) => ctx.search.KB("q", { collections: ["docs"], ...options });
        const titles = (options) => search(options).items.map((item) => item.title).join("");
        return { metadata: { plain: titles({}), judged: titles({ rerank: { agent: "judge", top_k: 3 } }) }, search: false };
    }"""
    events = await turn(make_app, hook=hook)
    assert end(events).metadata == {"plain": "abcd", "judged": "dcb"}


@pytest.mark.parametrize(
    ("judge", "problem"),
    [
        (
            "function Next() { return { data: { order: ['nobody'] } }; }",
            "it names no item of the request",
        ),
        ("function Next() { throw new Error('tired'); }", "tired"),
        ("", "there is no JSON in it"),
    ],
)
async def test_a_reranker_that_fails_leaves_the_merged_order_and_a_warning_says_so(
    make_app: MakeApp, judge: str, problem: str
) -> None:
    events = await turn(make_app, uses="judge", judge=judge)
    assert order(events) == "abcd"
    (warning,) = [text for text in warnings(events) if "the merged order stays" in text]
    assert problem in warning
    (node,) = [
        event.node
        for event in of(events, "trace")
        if event.node.type == "rerank" and event.node.status == "failed"
    ]
    assert problem in node.data["error"]
    assert end(events).content == "Fine."


async def test_a_model_behind_an_endpoint_reranks_a_turn(
    make_app: MakeApp, loopback: Loopback
) -> None:
    loopback.on(
        "/v1/rerank",
        Json(
            {
                "results": [
                    {"index": 2, "relevance_score": 0.99},
                    {"index": 0, "relevance_score": 0.1},
                ]
            }
        ),
    )
    rerank = {"type": "model", "host": f"{loopback.url}/v1", "model": "m", "api_key_env": "K"}
    events = await turn(make_app, rerank=rerank, environment={"K": "secret"})
    assert order(events) == "cabd"
    assert loopback.requests[0].headers["authorization"] == "Bearer secret"
    assert "secret" not in str(events)


async def test_a_request_cannot_choose_where_a_key_is_sent(
    make_app: MakeApp, loopback: Loopback
) -> None:
    loopback.on("/rerank", Json({"results": []}))
    requested = {"type": "model", "host": loopback.url, "provider": "endpoint", "apiKeyEnv": "K"}
    events = await turn(make_app, environment={"K": "secret"}, options={"rerank": requested})
    assert loopback.requests == []
    warned = " ".join(warnings(events))
    assert "search.rerank.host" in warned
    assert "only files of the app may set it" in warned
    assert order(events) == "abcd"


async def test_items_beyond_max_items_stay_behind_and_a_warning_says_so(
    make_app: MakeApp,
) -> None:
    events = await turn(make_app, uses="judge", rerank={"max_items": 2})
    assert order(events) == "bacd"
    assert any("judges the first 2 of 4 items" in text for text in warnings(events))


async def test_a_plug_in_judges_by_its_name(make_app: MakeApp) -> None:
    class House:
        async def rerank(self, query: str, items: Any, options: Any, scope: Any, /) -> list[Ranked]:
            if query != "question" or not scope.assistant_id:
                raise RerankError("no")
            return [Ranked(3, 1.0)]

    def register(registries: Plugins) -> None:
        registries.rerankers.add("house", lambda _: House())

    events = await turn(make_app, uses="house", plugins=[Plugin(register, requires=1)])
    assert order(events) == "dabc"


@pytest.mark.parametrize("uses", ["gone", "mcp:gone"])
async def test_an_unknown_name_is_a_warning_and_does_not_stop_a_turn(
    make_app: MakeApp, uses: str
) -> None:
    events = await turn(make_app, uses=uses)
    assert order(events) == "abcd"
    assert any("gone" in text for text in warnings(events))


@pytest.mark.parametrize("key", ["order", "items"])
async def test_entries_of_the_request_that_a_judge_only_sorts_are_an_order(
    make_app: MakeApp, key: str
) -> None:
    judge = """\
        function Next(ctx, payload) {
          const { items } = JSON.parse(payload.messages.at(-1).content);
          return { data: { KEY: items.reverse() } };
        }
    """
    events = await turn(make_app, uses="judge", judge=judge.replace("KEY", key))
    assert warnings(events) == []
    assert order(events) == "dcba"
