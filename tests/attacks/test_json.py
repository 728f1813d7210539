"""JSON of strangers: repeated keys, depth, long numbers, and texts in which some is looked for."""

from __future__ import annotations

import json
import time

import pytest
import sqlalchemy as sa
from mcp import Client

from groundhook import open_host
from groundhook.core.json_text import (
    MOST_COMMAS,
    MOST_LISTS,
    NestedTooDeeply,
    NotJson,
    read_json,
    read_json_at,
)
from groundhook.core.readers.json_in_text import extract_json
from groundhook.core.types.search import SearchRequest
from groundhook.core.types.turn import Identity
from groundhook.handlers.db.model.tables import Json
from groundhook.host.llm.questions import parts
from groundhook.host.server.identity.secret import Secret
from groundhook.host.server.mcp.caller import McpCaller
from groundhook.host.server.mcp.server import mcp_server
from groundhook.host.server.mcp.sources import McpSources
from groundhook.host.server.mcp.tools import McpTools
from groundhook.host.server.problems import WrongRequest
from groundhook.host.server.request_body import parse_json
from tests.conftest import MakeApp
from tests.parts.mcp_results import structured


def test_a_key_that_appears_twice_among_many_is_named_at_once() -> None:
    body = "{" + ",".join(f'"{n}":{n}' for n in range(50_000)) + ',"7":1}'
    began = time.process_time()
    with pytest.raises(WrongRequest, match="the key '7' appears twice"):
        parse_json(body.encode())
    assert time.process_time() - began < 5  # counting each key took minutes


NO_JSON = {
    "fences": "```a\n" * 60_000,
    "comments": "[1, " + "/* " * 100_000,
    "quotations": '\\"' * 150_000,
    "brackets": "[" * 300_000,
    "words": "[a" * 150_000,
    "values": "[null," * 300 + "null," * 60_000,
    "texts": "[null," * 300 + '"' + "a" * 300_000,
    "typographic quotes": "[“" * 150_000,
    "keys": '{"a":' * 60_000,
    "lists": "see " + "[],[" * MOST_LISTS,
    "blocks": "```json\n[tru\n```\n" * 18_000,
}


@pytest.mark.parametrize("kind", NO_JSON)
def test_json_is_looked_for_in_time_that_grows_as_the_text_does(kind: str) -> None:
    began = time.process_time()
    assert extract_json(NO_JSON[kind]) is None
    assert time.process_time() - began < 5  # 0.2 s at most; each took minutes, or 300 times as long


def test_a_question_with_a_run_of_blanks_is_read_at_once() -> None:
    began = time.process_time()
    found = parts(f"how long is a loan{' ' * 100_000}and how is it renewed?")
    assert [part.text for part in found] == ["how long is a loan", "how is it renewed"]
    assert time.process_time() - began < 5  # 20 minutes at the square of its length


def test_what_follows_a_fence_that_nothing_closes_is_prose() -> None:
    assert extract_json('```json\n{"a": 1}\n') == {"a": 1}
    assert extract_json('```\n{"a": 1}\n```\nand ```json\n{"b": 2}\n```') == {"a": 1}
    assert extract_json('~~~text\nno value\n~~~\nThe value is {"b": 2}.') == {"b": 2}


DEEP = "[" * 5000 + "]" * 5000
REFUSED: dict[str, tuple[str | bytes, str]] = {
    "deep": (DEEP, "nested too deeply: at most 100 levels"),
    "deeper than is read": ("[" * 101 + "]" * 101, "nested too deeply"),
    "endless": ("[" * 100_000, "nested too deeply"),
    "many lists": ("[" + "[]," * MOST_LISTS + "[]]", "more than 100000 lists and objects"),
    "many lists and a text that nothing ends": (
        "[" + "{}," * MOST_LISTS + '{}, "' + '\\"' * 100_000,
        "more than 100000 lists and objects",
    ),
    "many numbers": ("[" + "1," * MOST_COMMAS + "1, 1]", "more than 500000 values"),
    "many texts": ("[" + '"",' * (MOST_COMMAS + 1) + '""]', "more than 500000 values"),
    "digits": ("9" * 5000, "a number has too many digits"),
    "not a number": ('{"a": NaN}', "NaN is not a JSON number"),
    "cut": ('{"a": ', "Expecting value at column 7"),
    "cut in a text": ('{"a": "b', "Unterminated string starting at column 7"),
    "of two lines": ('{"a":\n 1,}', "at line 2, column 4"),
    "bytes": (b'"\xff"', "not UTF-8"),
    "nothing": ("", "Expecting value"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_json_beyond_the_bounds_is_one_error(kind: str) -> None:
    text, message = REFUSED[kind]
    with pytest.raises(NotJson, match=message):
        read_json(text)


def test_json_within_the_bounds_is_read() -> None:
    assert read_json("[" * 100 + "]" * 100) is not None
    brackets = '["' + '[\\"{' * MOST_LISTS + '"]'
    assert read_json(brackets) == ['["{' * MOST_LISTS]
    table = "a,b\n" * MOST_COMMAS
    assert read_json(f'["{table[:-1]}"]'.replace("\n", ";")) == [table[:-1].replace("\n", ";")]
    assert read_json('\ufeff{"a": 1, "a": 2}') == {"a": 2}
    assert read_json("\ufeff[1]".encode()) == [1]
    assert read_json("[NaN, -Infinity, 1]", nan=True) == [None, None, 1]
    with pytest.raises(NotJson, match="the key 'a' appears twice"):
        read_json('{"a": 1, "a": 2}', repeats=False)
    assert read_json_at("see [1, 2].", 4) == ([1, 2], 10)
    with pytest.raises(NestedTooDeeply):
        read_json_at(f"see {DEEP}", 4)


@pytest.mark.parametrize("cell", [DEEP, "[" * 100_000, "9" * 5000, "{"])
def test_a_json_cell_that_cannot_be_read_is_its_text(cell: str) -> None:
    table = sa.Table("notes", sa.MetaData(), sa.Column("id", sa.Integer), sa.Column("body", Json))
    with sa.create_engine("sqlite://").connect() as connection:
        table.metadata.create_all(connection)
        connection.execute(sa.text("INSERT INTO notes VALUES (1, :cell)"), {"cell": cell})
        assert connection.execute(sa.select(table.c.body)).scalar_one() == cell


@pytest.mark.parametrize("cell", [DEEP, "9" * 5000])
async def test_a_json_cell_that_cannot_be_read_hides_no_row(make_app: MakeApp, cell: str) -> None:
    columns = [
        {"name": "id", "type": "ID"},
        {"name": "name", "type": "string"},
        {"name": "body", "type": "json", "nullable": True},
    ]
    values = [{"id": 1, "name": "Assam"}, {"id": 2, "name": "Sencha"}]
    model = {"name": "Tea", "table": {"name": "tea"}, "columns": columns, "values": values}
    package = {"connector": "extractive", "db": {"models": ["tea"]}, "search": {"db": True}}
    files = {"models/tea.mod.yao": model, "assistants/a/package.yao": package}
    files |= {"agent/agent.yml": {"database": {"url": "sqlite:///tea.db"}}}
    app = make_app({name: json.dumps(content) for name, content in files.items()})
    async with open_host(app, environment={}) as host:
        await host.database.load()
        with sa.create_engine(f"sqlite:///{app / 'tea.db'}").begin() as connection:
            changed = sa.text("UPDATE tea SET body = :cell WHERE id = 2")
            assert connection.execute(changed, {"cell": cell}).rowcount == 1
        found = await host.search(SearchRequest(type="db", query="all teas"), assistant="a")
        assert (found.error, [item.record_id for item in found.items]) == (None, [1, 2])
        tools = McpTools(
            host=host, sources=McpSources(host=host, secret=Secret(app)), connector=True
        )
        async with Client(mcp_server(tools, lambda _: McpCaller(identity=Identity()))) as client:
            answer = await structured(client, "search", {"query": "all teas"})
            assert {one["id"] for one in answer["results"]} >= {"db:tea/1", "db:tea/2"}
            record = await structured(client, "fetch", {"id": "db:tea/2"})
            assert cell[:50] in record["text"]
