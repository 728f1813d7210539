"""All rows of an answer from a database, as CSV: for programs, over HTTP, on the command line."""

from __future__ import annotations

import csv
import io
import json
import re
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from anyio import to_thread
from hypothesis import given
from hypothesis import strategies as st

from groundhook import open_host
from groundhook.core.errors import SourceError, UsageError
from groundhook.core.types.tables import long_tables
from groundhook.core.types.turn import Identity
from groundhook.host.output.csv_text import csv_text
from groundhook.host.server.identity.keys import make_key
from groundhook.host.server.identity.secret import Secret
from groundhook.host.server.mcp import sources as mcp_sources
from groundhook.host.server.mcp.caller import McpCaller
from groundhook.host.server.mcp.sources import McpSources
from groundhook.host.server.mcp.tools import McpTools
from groundhook.host.server.whole_tables import WholeTables
from tests.conftest import MakeApp
from tests.parts.command import run_command
from tests.server.conftest import serving, settings

NOTE = {
    "name": "Note",
    "table": {"name": "notes"},
    "option": {"permission": {"user": "owner"}},
    "columns": [
        {"name": "id", "type": "ID"},
        {"name": "name", "type": "string", "label": "Title"},
        {"name": "owner", "type": "string"},
        {"name": "price", "type": "double"},
    ],
    "values": [
        {"id": number, "name": f"=cmd|{number}", "owner": "ada" if number % 10 else "bob", "price": -1.5}
        for number in range(1, 1201)
    ],
}  # fmt: skip
FILES = {
    "assistants/desk/package.yao": (
        '{"name": "Desk", "connector": "extractive", "db": {"models": ["note"]}, "search": {"db": true}}'
    ),
    "assistants/desk/models/note.mod.yao": json.dumps(NOTE),
}
ASK = {"type": "db", "query": "list all notes"}


@pytest.fixture
async def app(make_app: MakeApp) -> Path:
    made = make_app(FILES)
    async with open_host(made, environment={}) as host:
        await host.database.load()
    return made


async def test_an_export_has_all_rows_that_the_identity_may_see_and_no_other(app: Path) -> None:
    async with open_host(app, environment={}) as host:
        ada = await host.export(ASK, identity=Identity(user_id="ada"), assistant="desk")
        bob = await host.export(ASK, identity=Identity(user_id="bob"), assistant="desk")
        with pytest.raises(SourceError, match="permitted"):
            await host.export(ASK, assistant="desk")
    assert (len(ada.rows), ada.total, ada.cut) == (1080, 1080, False)
    assert ada.columns == ("Id", "Title", "Owner", "Price")
    assert {row[2] for row in ada.rows} == {"ada"}
    assert {row[2] for row in bob.rows} == {"bob"}


async def test_an_export_keeps_the_limit_of_the_question_and_of_the_caller(app: Path) -> None:
    async with open_host(app, environment={}) as host:
        ada = Identity(user_id="ada")
        top = {**ASK, "query": "top 3 notes by price"}
        asked = await host.export(top, identity=ada, assistant="desk")
        given_limit = await host.export({**ASK, "limit": 5}, identity=ada, assistant="desk")
        beyond = {**ASK, "query": "top 60 notes by price"}
        many = await host.export(beyond, identity=ada, assistant="desk")
        fewer = await host.export({**beyond, "limit": 5}, identity=ada, assistant="desk")
    assert (len(asked.rows), len(given_limit.rows)) == (3, 5)
    assert (len(many.rows), many.total, len(fewer.rows)) == (60, 60, 5)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"type": "db", "query": "notes of purple xyzzy people"}, "xyzzy"),
        ({"type": "web", "query": "notes"}, "no rows to export"),
    ],
)
async def test_what_has_no_rows_to_export_is_an_error(
    app: Path, request_: dict[str, Any], message: str
) -> None:
    async with open_host(app, environment={}) as host:
        with pytest.raises(UsageError, match=message):
            await host.export(request_, identity=Identity(user_id="ada"), assistant="desk")


async def test_the_command_writes_csv_and_nothing_else(app: Path) -> None:
    command = ("search", "db", "list all notes", "--assistant", "desk", "--csv", "--user", "ada")
    code, out, err = await to_thread.run_sync(
        partial(run_command, command, folder=app, environment={}, stdin=b"")
    )
    rows = list(csv.reader(io.StringIO(out.decode())))
    assert (code, err) == (0, b"")
    assert rows[:2] == [["Id", "Title", "Owner", "Price"], ["1", "'=cmd|1", "ada", "-1.5"]]
    assert len(rows) == 1081


KEYS = {name: make_key() for name in ("ada", "bob")}


async def test_a_turn_offers_all_rows_of_a_cut_table_to_its_caller_alone(app: Path) -> None:
    keys = [
        {"name": name, "key": key, "user": name, "scopes": ["chat", "chats"]}
        for name, key in KEYS.items()
    ]
    (app / "agent").mkdir(exist_ok=True)
    (app / "agent/agent.yml").write_text(settings(auth={"keys": keys}), encoding="utf-8")
    await to_thread.run_sync(_read_over_http, app)


def _read_over_http(app: Path) -> None:
    """A thread of its own, since the client waits."""
    with (
        serving(app) as served,
        served.client(KEYS["ada"]) as ada,
        served.client(KEYS["bob"]) as bob,
    ):
        lines = {"accept": "application/x-ndjson"}
        ask = {"assistant": "desk", "text": "list all notes"}
        turn = ada.post("/api/turns", json=ask, headers=lines)
        ended = [json.loads(line) for line in turn.text.splitlines() if line]
        [table] = next(each["tables"] for each in ended if each["type"] == "search_complete")
        assert (table["rows"], table["total"], table["name"]) == (50, 1080, "Note")
        address = table["csv"]
        found = ada.get(address)
        rows = list(csv.reader(io.StringIO(found.text)))
        assert rows[0] == ["Id", "Title", "Owner", "Price"]
        assert (len(rows), {row[2] for row in rows[1:]}) == (1081, {"ada"})
        assert found.headers["groundhook-total"] == "1080"
        # Another caller's address and a changed one are the same: nothing.
        answers = [bob.get(address), ada.get(address.replace("/rows/", "/rows/x", 1))]
        assert [each.status_code for each in answers] == [404, 404]
        assert len({each.json()["detail"] for each in answers}) == 1
        # Clients of OpenAI's API get the address at the end of the answer.
        asked = {"model": "desk", "messages": [{"role": "user", "content": "list all notes"}]}
        whole = ada.post("/v1/chat/completions", json=asked).json()["groundhook"]["tables"]
        assert whole == [{**table, "csv": whole[0]["csv"]}]
        assert ada.get(whole[0]["csv"]).text == found.text
        # A kept chat offers them again.
        chat = ada.post("/api/chats", json={"assistant": "desk"}).json()["id"]
        ada.post(f"/api/chats/{chat}/turns", json={"text": "list all notes"})
        kept = ada.get(f"/api/chats/{chat}").json()["messages"][-1]["answer"]
        [again] = kept["searches"][0]["tables"]
        assert again == {**table, "csv": again["csv"]}
        assert ada.get(again["csv"]).text == found.text


@pytest.mark.parametrize(
    ("number", "limit"),
    [(220, 300), (60, None)],
    ids=["that are all read", "of which a part is read"],
)
async def test_all_rows_of_a_question_for_a_number_of_rows_are_that_number(
    app: Path, number: int, limit: int | None
) -> None:
    ada = Identity(user_id="ada")
    async with open_host(app, environment={}) as host:
        asked = {"type": "db", "query": f"top {number} notes by price", "limit": limit}
        found = await host.search(asked, identity=ada, assistant="desk")
        [table] = long_tables(found.items)
        tables = WholeTables(host, Secret(host.app.state))
        whole = await tables.read(tables.token(table, ada), ada)
    assert (table.total, found.total, len(whole.rows)) == (number, number, number)


async def test_the_columns_of_all_rows_are_in_the_language_of_the_question(app: Path) -> None:
    ada = Identity(user_id="ada")
    async with open_host(app, environment={}) as host:
        asked = {"type": "db", "query": "Anzahl der Notes pro Title"}
        found = await host.search(asked, identity=ada, assistant="desk")
        [table] = long_tables(found.items)
        tables = WholeTables(host, Secret(host.app.state))
        whole = await tables.read(tables.token(table, ada), ada)
        exported = await host.export(asked, identity=ada, assistant="desk")
    assert exported.columns == whole.columns == ("Title", "Anzahl der Einträge in Note")


async def test_a_client_of_mcp_reads_all_rows_that_its_own_search_offered(
    app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def report(done: float, total: float | None, message: str) -> None: ...

    async with open_host(app, environment={}) as host:
        sources = McpSources(host=host, secret=Secret(host.app.state))
        tools = McpTools(host=host, sources=sources, connector=True)
        ada, bob = (McpCaller(identity=Identity(user_id=user)) for user in ("ada", "bob"))
        asked = {"question": "list all notes", "assistant": "desk"}
        answer = await tools.call("ask", asked, ada, report)
        [(link, title)] = [
            each for each in answer.links if each[0].startswith("groundhook://rows/")
        ]
        assert title == "All 1080 rows of Note (CSV)"
        found = await tools.call("search", {"query": "list all notes"}, ada, report)
        assert found.structured is not None
        results = {each["title"]: each["id"] for each in found.structured["results"]}
        id = results[title]
        assert unquote(link).removeprefix("groundhook://") == id.replace(":", "/", 1)
        whole = (await tools.call("fetch", {"id": id}, ada, report)).structured
        assert whole is not None
        rows = list(csv.reader(io.StringIO(whole["text"])))
        assert (len(rows), whole["metadata"]["total"]) == (1081, 1080)
        assert {row[2] for row in rows[1:]} == {"ada"}
        assert (await tools.call("fetch", {"id": id}, bob, report)).failed
        assert (
            await tools.call("fetch", {"id": id.replace("rows:", "rows:x", 1)}, ada, report)
        ).failed
        # A text for a model is bounded, and says how much of it there is.
        monkeypatch.setattr(mcp_sources, "LONGEST_CSV", 500)
        part = (await tools.call("fetch", {"id": id}, ada, report)).structured
        assert part is not None
        assert len(part["text"]) <= 500
        assert 1 < part["metadata"]["rows"] < part["metadata"]["total"] == 1080


HOSTILE = st.text(st.sampled_from(list("=+-@\t\r\n\"',;1e.＝ a\0")), max_size=12)


@given(
    st.lists(st.lists(HOSTILE | st.none() | st.floats() | st.booleans(), min_size=2, max_size=2))
)
def test_a_cell_of_a_stranger_is_one_cell_and_never_a_formula(rows: list[list[Any]]) -> None:
    read = list(csv.reader(io.StringIO(csv_text(["a", "b"], rows), newline="")))
    assert len(read) == len(rows) + 1
    for before, after in zip(rows, read[1:], strict=True):
        for value, text in zip(before, after, strict=True):
            if isinstance(value, str):
                assert text in (value.replace("\0", "\ufffd"), "'" + value.replace("\0", "\ufffd"))
                if re.match(r" *[=@\t\r\n＝+-]", text):
                    assert re.fullmatch(r"[+-]?\d+(\.\d+)?(e\d+)?", text)
