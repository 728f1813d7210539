"""Databases in whole turns: tables that a message refers to, and figures that an answer cites."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

from groundhook import open_host
from groundhook.core.types.events import Event, StreamEnd
from groundhook.core.types.turn import Identity
from groundhook.host.config import declarations
from groundhook.host.config.documents import ConfigDocument, read_document
from groundhook.host.llm.scripted import ScriptedConnector
from tests.conftest import MakeApp
from tests.parts.turns import end, of, scripted

PEN = {
    "name": "Pen",
    "table": {"name": "stock_pens"},
    "columns": [
        {"name": "id", "type": "ID"},
        {"name": "name", "type": "string"},
        {"name": "price", "type": "float"},
    ],
    "values": [
        {"id": 1, "name": "Red pen", "price": 2},
        {"id": 2, "name": "Blue pen", "price": 30},
    ],
}
PACKAGE = (
    '{"name": "Shop", "connector": "script", "db": {"models": ["pen"]}, "search": {"db": true}}'
)
OTHERS = {**PEN, "table": {"name": "secret_pens"}}


@pytest.fixture
async def app(make_app: MakeApp) -> Path:
    made = make_app(
        {
            "assistants/shop/package.yao": PACKAGE,
            "assistants/shop/models/pen.mod.yao": json.dumps(PEN),
            "assistants/other/package.yao": '{"name": "Other"}',
            "assistants/other/models/pen.mod.yao": json.dumps(OTHERS),
        }
    )
    async with open_host(made, environment={}) as host:
        await host.database.load()
    return made


async def turn(
    app: Path, content: Any, connector: ScriptedConnector, **options: Any
) -> list[Event]:
    with anyio.fail_after(60):
        async with (
            open_host(app, environment={}, connectors={"script": connector}) as host,
            host.stream(
                "shop",
                [{"role": "user", "content": content}],
                identity=Identity(user_id="u"),
                **options,
            ) as events,
        ):
            return [event async for event in events]


def about(text: str, name: str) -> list[dict[str, Any]]:
    return [
        {"type": "text", "text": text},
        {"type": "data", "data": {"sources": [{"type": "table", "name": name}]}},
    ]


async def test_a_table_is_searched_through_the_model_that_declares_it(app: Path) -> None:
    events = await turn(
        app, about("pens cheaper than 10", "stock_pens"), scripted("See {ref:0}."), search=False
    )
    (start,) = of(events, "search_start")
    assert (start.source, start.search_type) == ("user", "db")
    (cited,) = end(events).citations
    assert (cited.verdict, cited.model, cited.record_id, cited.query) == (
        "ok",
        "agents.shop.pen",
        1,
        None,
    )


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("secret_pens", "belongs to another assistant"),
        ("stock_pen", "did you mean 'stock_pens'"),
        ("sqlite_master", "no table 'sqlite_master'"),
    ],
)
async def test_a_table_outside_the_assistants_models_is_a_warning_and_not_searched(
    app: Path, table: str, says: str
) -> None:
    events = await turn(app, about("pens cheaper than 10", table), scripted("Fine."), search=False)
    (done,) = of(events, "search_complete")
    assert says in done.error
    assert of(events, "search_result") == []
    assert end(events).content == "Fine."


async def test_a_count_is_cited_by_its_query(app: Path) -> None:
    events = await turn(app, "How many pens are cheaper than 10?", scripted("One pen {ref:0}."))
    last: StreamEnd = end(events)
    (cited,) = last.citations
    assert (cited.verdict, cited.title, cited.record_id) == ("ok", "Number of Pen records: 1", None)
    assert cited.query is not None
    assert cited.query.rows == 1
    assert cited.query.dsl["aggregates"] == [{"function": "count"}]
    assert cited.query.dsl["wheres"] == [{"field": "price", "op": "<", "value": 10}]
    assert cited.marker in last.content


async def test_a_question_that_is_not_understood_is_said_to_readers_and_to_the_model(
    app: Path,
) -> None:
    model = scripted("I do not know.")
    await turn(app, "purple pens", model)
    told = "\n".join(str(message.content) for message in model.calls[0].messages)
    assert "Not understood: “purple”." in told
    assert "general knowledge" in told

    package = app / "assistants/shop/package.yao"
    package.write_text(PACKAGE.replace('"script"', '"extractive"'), encoding="utf-8")
    content = end(await turn(app, "purple pens", model)).content
    assert content.startswith("Not understood: “purple”.")
    assert "language model" not in content


async def test_that_there_are_none_is_the_answer_without_a_model(app: Path) -> None:
    package = app / "assistants/shop/package.yao"
    package.write_text(PACKAGE.replace('"script"', '"extractive"'), encoding="utf-8")
    events = await turn(app, "pens over 100", scripted("Unused."))
    assert end(events).content == "There are none: Pen where Price > 100."
    assert not of(events, "warning")


@pytest.mark.parametrize("table", ["", "stock_pens"])
async def test_the_file_of_a_model_is_read_in_a_thread(
    app: Path, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    """Since one with thousands of `values` takes a second."""
    read: set[tuple[str, bool]] = set()

    def note(path: Path, shown: str) -> ConfigDocument:
        read.add((path.name, threading.current_thread() is threading.main_thread()))
        return read_document(path, shown)

    monkeypatch.setattr(declarations, "read_document", note)
    asked: Any = about("pens", table) if table else "pens cheaper than 10"
    await turn(app, asked, scripted("See {ref:0}."), search=not table)
    assert {entry for entry in read if entry[0] == "pen.mod.yao"} == {("pen.mod.yao", False)}
