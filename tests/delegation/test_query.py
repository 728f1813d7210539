"""Queries to a database that an assistant writes: linted, ANDed with the caller's conditions, and
bounded by the identity."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import anyio
import pytest

from groundhook import open_host
from groundhook.core.types.events import Warned
from groundhook.core.types.search import SearchResult
from groundhook.core.types.turn import Identity
from groundhook.host.llm.scripted import ScriptedConnector
from tests.conftest import MakeApp
from tests.parts.turns import scripted

COLUMNS = [
    {"name": "id", "type": "ID"},
    {"name": "title", "type": "string", "label": "Title"},
    {"name": "price", "type": "integer"},
    {"name": "kind", "type": "enum", "option": ["pen", "ink"]},
]
ROWS = [
    {"id": 1, "title": "Red", "price": 3, "kind": "pen", "__yao_created_by": "u1"},
    {"id": 2, "title": "Blue", "price": 5, "kind": "pen", "__yao_created_by": "u1"},
    {"id": 3, "title": "Black", "price": 4, "kind": "ink", "__yao_created_by": "u1"},
    {"id": 4, "title": "Hidden", "price": 4, "kind": "pen", "__yao_created_by": "u2"},
]
MODEL = {
    "name": "Article",
    "table": {"name": "article"},
    "columns": COLUMNS,
    "option": {"permission": True},
    "values": ROWS,
}
PENS = {"model": "article", "wheres": [{"field": "kind", "op": "=", "value": "pen"}]}


@dataclass
class Searched:
    result: SearchResult
    warnings: list[str]
    model: ScriptedConnector

    @property
    def titles(self) -> list[str]:
        return sorted(item.title for item in self.result.items)

    def requested(self, call: int = 0) -> dict[str, Any]:
        wanted: dict[str, Any] = json.loads(self.model.calls[call].messages[0].text)
        return wanted


async def search(
    make_app: MakeApp, *answers: Any, query: Mapping[str, Any] | None = None, **request: Any
) -> Searched:
    """Search the articles as u1, with queries written by the assistant `writer`, whose model gives
    these answers."""
    texts = [
        answer
        if isinstance(answer, (str, dict)) and "delay_ms" in answer
        else {"text": _text(answer)}
        for answer in answers
    ]
    files = {
        "agent/agent.yml": "uses:\n  query: writer\n",
        "agent/search.yao": json.dumps(
            {"query": {"timeout_ms": 20_000, **(query or {})}, "db": {"timeout_ms": 30_000}}
        ),
        "assistants/writer/package.yao": '{"name": "Writer", "connector": "w"}',
        "models/article.mod.yao": json.dumps(MODEL),
    }
    model, warned = scripted(*texts), list[Warned]()
    with anyio.fail_after(60):
        async with open_host(
            make_app(files),
            environment={},
            connectors={"w": model},
            now=datetime(2026, 11, 22, 10, 0, tzinfo=UTC),
        ) as host:
            await host.database.load()
            requested = {"type": "db", "query": "pens, please", "models": ["article"], **request}
            result = await host.search(
                requested, identity=Identity(user_id="u1"), warned=warned.append
            )
    return Searched(result, [event.message for event in warned], model)


def _text(answer: Any) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer)


@pytest.mark.parametrize(
    "answer",
    [
        {"dsl": PENS, "explain": "pens", "warnings": []},
        {"dsl": [PENS]},
        {"query": PENS},
        PENS,
        {"dsl": {"wheres": [{"column": "kind", "value": "pen"}]}},
        f"```json\n{json.dumps({'dsl': PENS})}\n```",
    ],
    ids=["dsl", "list", "query", "alone", "no-model", "fence"],
)
async def test_the_query_that_it_writes_is_run(make_app: MakeApp, answer: Any) -> None:
    searched = await search(make_app, answer)
    assert searched.result.error is None
    assert searched.titles == ["Blue", "Red"]
    assert searched.result.dsl is not None
    assert searched.result.dsl["wheres"] == [{"field": "kind", "op": "=", "value": "pen"}]
    assert searched.warnings == []


async def test_it_receives_the_schema_the_time_and_the_conditions_already_set(
    make_app: MakeApp,
) -> None:
    wheres = [{"field": "price", "op": "<", "value": 5}]
    searched = await search(
        make_app, {"dsl": PENS}, wheres=wheres, orders=[{"field": "price"}], limit=7
    )
    wanted = searched.requested()
    (model,) = wanted["models"]
    assert (model["model"], model["name"], model["key"]) == ("article", "Article", "id")
    assert {"name": "kind", "kind": "text", "values": ["pen", "ink"]} in model["fields"]
    assert [field["name"] for field in model["fields"]] == ["id", "title", "price", "kind"]
    assert (wanted["now"], wanted["limit"]) == ("2026-11-22T10:00:00+00:00", 7)
    assert [(where["field"], where["op"], where["value"]) for where in wanted["wheres"]] == [
        ("price", "<", 5)
    ]
    assert wanted["orders"] == [{"field": "price", "order": "desc"}]
    assert "Hidden" not in json.dumps(wanted)


async def test_the_callers_conditions_are_always_added(make_app: MakeApp) -> None:
    everything = {
        "dsl": {
            "model": "article",
            "wheres": [{"or": [{"field": "price", "op": ">", "value": 0}]}],
            "limit": 500,
        }
    }
    searched = await search(
        make_app, everything, wheres=[{"field": "price", "op": "<", "value": 4}]
    )
    assert searched.titles == ["Red"]


@pytest.mark.parametrize(
    "wheres",
    [
        [],
        [{"field": "__yao_created_by", "op": "=", "value": "u2"}],
        [
            {
                "or": [
                    {"field": "__yao_created_by", "op": "!=", "value": "u1"},
                    {"field": "price", "op": ">", "value": 0},
                ]
            }
        ],
    ],
)
async def test_the_identity_bounds_whatever_it_writes(
    make_app: MakeApp, wheres: Sequence[Any]
) -> None:
    searched = await search(make_app, {"dsl": {"model": "article", "wheres": list(wheres)}})
    assert "Hidden" not in searched.titles


async def test_a_wrong_query_goes_back_twice_with_the_linters_words(make_app: MakeApp) -> None:
    typo = {"dsl": {"model": "article", "wheres": [{"field": "prise", "op": "<", "value": 5}]}}
    wrong = {"dsl": {"model": "article", "wheres": [{"field": "price", "op": "~", "value": 5}]}}
    searched = await search(make_app, typo, wrong, {"dsl": PENS})
    assert searched.titles == ["Blue", "Red"]
    problems = [searched.requested(call)["retry"]["problem"] for call in (1, 2)]
    assert "has no field 'prise' (did you mean 'price'?)" in problems[0]
    assert "unknown operator '~'" in problems[1]
    assert searched.warnings == []


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ({"dsl": {"model": "customer"}}, "no model 'customer' (known: article)"),
        ({"dsl": []}, "it should contain 1 to 5 queries, not 0"),
        ({"dsl": {"model": "article", "where": "1=1; drop table article"}}, "where"),
        ("SELECT * FROM article", "there is no JSON in it"),
    ],
    ids=["model", "none", "key", "sql"],
)
async def test_one_that_stays_wrong_leaves_the_question_to_the_builtin(
    make_app: MakeApp, answer: Any, problem: str
) -> None:
    searched = await search(make_app, answer, answer, answer)
    assert len(searched.model.calls) == 3
    (warning,) = [
        text for text in searched.warnings if "the built-in reading of questions was used" in text
    ]
    assert problem in warning
    assert searched.result.error is None
    assert searched.titles == ["Blue", "Red"]


async def test_one_that_does_not_come_leaves_the_question_to_the_builtin(make_app: MakeApp) -> None:
    searched = await search(make_app, {"text": "{}", "delay_ms": 30_000}, query={"timeout_ms": 100})
    assert searched.titles == ["Blue", "Red"]
    assert any(
        "no answer within 100 ms (search.query.timeout_ms)" in text for text in searched.warnings
    )


async def test_unplaced_words_are_reported(make_app: MakeApp) -> None:
    searched = await search(make_app, {"dsl": PENS, "warnings": ["'please' is not a condition"]})
    assert searched.warnings == ["writer: 'please' is not a condition"]
