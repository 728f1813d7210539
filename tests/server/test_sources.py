"""What citations point at, figures for Prometheus, health, and the table as a document."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from groundhook.core.unseen import clean
from groundhook.host.server.api.source_page import (
    ShownPassage,
    document_page,
    plain_page,
    record_page,
)
from groundhook.host.server.api.table import ENDPOINTS
from tests.loops import run as run_apart
from tests.parts.children import running
from tests.parts.pdf_files import pdf
from tests.server.conftest import (
    LOCAL,
    OTHER,
    READER,
    Serve,
    Served,
    load_rows,
    serving,
    settings,
    write,
)

ROOT = Path(__file__).parents[2]


def test_a_citation_leads_to_its_record_for_programs_and_for_browsers(served: Served) -> None:
    ask = {"assistant": "tea", "text": "all teas"}
    with served.client(OTHER) as client:
        accept = {"accept": "application/json"}
        cited = client.post("/api/turns", json=ask, headers=accept).json()["citations"][0]
        found = client.get(cited["url"]).json()
        assert found["record"]["name"] == "Assam"
        shown = client.get(cited["url"], params={"view": "blocks"}).json()
        assert shown["title"] == "Assam"
        page = client.get(cited["url"], headers={"accept": "text/html"})
        assert "<td>Assam</td>" in page.text
        assert page.headers["content-security-policy"].startswith("default-src 'none'")
        for path in (
            "/api/sources/db/tea/99",
            "/api/sources/db/te/1",
            "/api/sources/db/tea/x'--",
            "/api/sources/db/tea/--5",
        ):
            assert client.get(path).status_code == 404


def test_a_search_answers_with_csv_as_the_caller_may_see_the_rows(served: Served) -> None:
    ask = {"type": "db", "query": "all teas", "assistant": "tea"}
    with served.client(LOCAL) as client:
        answer = client.post("/api/search", json=ask, headers={"accept": "text/csv"})
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        rows = answer.text.splitlines()
        assert answer.headers["groundhook-rows"] == str(len(rows) - 1)
        assert any("Assam" in row for row in rows[1:])
        wrong = {**ask, "query": "purple xyzzy"}
        refused = client.post("/api/search", json=wrong, headers={"accept": "text/csv"})
        assert (refused.status_code, refused.json()["code"]) == (400, "usage")


@pytest.mark.usefixtures("processes_of_its_own")
def test_a_passage_is_shown_in_its_document_with_the_extent_marked(tmp_path: Path) -> None:
    app = write(
        tmp_path / "app",
        {
            "agent/agent.yml": settings(),
            "kb/notes.kb.yao": '{ "name": "Notes" }',
            "kb/cut.kb.yao": '{ "chunk": { "size": 60, "overlap": 20 } }',
            "cut/herbs.md": " ".join(f"Herb {n} is cut in the month of June." for n in range(30)),
            "assistants/tea/package.yao": json.dumps(
                {
                    "name": "Tea",
                    "connector": "extractive",
                    "kb": {"collections": ["notes", "cut"]},
                }
            ),
            "connectors/extractive.conn.yao": '{"type": "extractive"}',
            "notes/tea.md": (
                "# Tea <b>\n\nBlack tea takes [boiling](water.md) water & four minutes.\n\n"
                "| Tea | Minutes |\n|---|---|\n| black | 4 |\n\n"
                "# Coffee\n\nCoffee takes [three](javascript:alert) or [two](intent:x).\n"
            ),
        },
    )

    from groundhook.host.app.opening import open_host

    async def add() -> None:
        async with open_host(app) as host:
            await host.add_documents("notes", app / "notes")
            await host.add_documents("cut", app / "cut")

    run_apart(add)
    ask = {"assistant": "tea", "text": "How long does black tea take?", "search": True}
    with serving(app) as served, served.client(OTHER) as client:
        accept = {"accept": "application/json"}
        turn = client.post("/api/turns", json=ask, headers=accept).json()
        assert str(app) not in json.dumps(turn)
        url = turn["citations"][0]["url"]
        found = client.get(url).json()
        marked = [each["content"] for each in found["passages"] if each["marked"]]
        assert any("four minutes" in text for text in marked)
        herbs = "/api/sources/kb/cut/herbs.md"
        before, second = client.get(herbs).json()["passages"][:2]
        assert before["end"] > second["start"]  # the end of one is the beginning of the next
        here = {"view": "blocks", "start": second["start"], "end": second["end"]}
        shown = client.get(herbs, params=here).json()["passages"]
        assert [each["marked"] for each in shown[:3]] == [False, True, False]
        blocks = [json.dumps(each["blocks"]) for each in shown]
        assert [sum(f"Herb {n} " in each for each in blocks) for n in range(30)] == [1] * 30
        assert second["content"][:20] in blocks[1]
        page = client.get(url, headers={"accept": "text/html"}).text
        assert "water &amp; four minutes" in page
        assert "<td><mark>black</mark></td>" in page
        assert '<a href="water.md">boiling</a>' in page  # another document of the collection
        assert "<b>" not in page
        assert 'href="javascript' not in page
        assert 'href="intent' not in page
        for child in running("groundhook.core.readers.process"):
            child.kill()
        page = client.get(url, headers={"accept": "text/html"}).text
        assert "[boiling](water.md) water &amp; four minutes" in page  # as it is written
        assert "<mark>" in page
        page = client.get(url, headers={"accept": "text/html"}).text
        assert '<a href="water.md">boiling</a>' in page
        body = {"model": "tea", "messages": [{"role": "user", "content": ask["text"]}]}
        body["groundhook"] = {"search": True}  # type: ignore[assignment]
        chat = client.post("/v1/chat/completions", json=body).json()
        assert chat["choices"][0]["message"]["annotations"][0]["url_citation"]["url"] == url


HIDING = "a\u2066b\u200bc\u202ed\ufeffe\U000e0041f"
SIGNED_IN = "https://velmora.example@exfil.example/login"


def test_a_page_of_a_document_shows_nothing_that_hides_or_reorders_text() -> None:
    text = (
        f"# {HIDING}\n\n{HIDING} x&#x202e;y `{HIDING}` [one]({SIGNED_IN}) <{SIGNED_IN}>"
        " [two](//u:p@exfil.example/x) [three](HTTPS:u@exfil.example) [four](mailto:a@b.example)"
        " [five](http&#x3a;//u@exfil.example/y) [six](other.md#a) [seven](data:x)"
    )
    for passage in (ShownPassage(text=text), ShownPassage(text=text, marked=True)):
        page = document_page(HIDING, [passage], "")
        assert page == clean(page)
        assert page.count("abcdef") == 4  # the title, its heading, the text, the code
        assert "xy " in page
        links = re.findall(r'<a href="([^"]*)"', page)
        signed_in = ["https://exfil.example/login"] * 2
        others = ["//exfil.example/x", "mailto:a@b.example", "http://exfil.example/y", "other.md#a"]
        assert links == signed_in + others
    assert "\u202e" not in plain_page(HIDING, [ShownPassage(text=text)], "")
    assert "<td>abcdef</td>" in record_page("Tea", {"Name": HIDING}, "")


def test_the_json_of_a_source_has_nothing_that_hides_or_reorders_text(serve: Serve) -> None:
    model = {
        "name": "Tea",
        "table": {"name": "tea"},
        "columns": [{"name": "id", "type": "ID"}, {"name": "note", "type": "json"}],
        "values": [{"id": 1, "note": {HIDING: [HIDING, 7]}}],
    }
    with serve({"models/tea.mod.yao": json.dumps(model)}) as served:
        load_rows(served.app)
        with served.client() as client:
            found = client.get("/api/sources/db/tea/1").json()
            assert found["record"]["note"] == {"abcdef": ["abcdef", 7]}


def test_a_passage_of_a_pdf_leads_to_its_page(tmp_path: Path) -> None:
    app = write(
        tmp_path / "app",
        {
            "agent/agent.yml": settings(),
            "kb/notes.kb.yao": '{ "name": "Notes" }',
            "assistants/tea/package.yao": (
                '{ "name": "Tea", "connector": "extractive", "kb": { "collections": ["notes"] } }'
            ),
            "connectors/extractive.conn.yao": '{"type": "extractive"}',
        },
    )
    (app / "tea.pdf").write_bytes(
        pdf("Coffee takes three spoons.", "Black tea takes four minutes.")
    )

    from groundhook.host.app.opening import open_host

    async def add() -> None:
        async with open_host(app) as host:
            await host.add_documents("notes", app / "tea.pdf")

    run_apart(add)
    ask = {"assistant": "tea", "text": "How long does black tea take?", "search": True}
    with serving(app) as served, served.client(OTHER) as client:
        accept = {"accept": "application/json"}
        turn = client.post("/api/turns", json=ask, headers=accept).json()
        (url,) = {each["url"] for each in turn["citations"] if "four" in turn["content"]}
        assert url.endswith("#page=2")
        assert client.get(url).json()["passages"][-1]["page"] == 2
        page = client.get(url, headers={"accept": "text/html"}).text
        assert re.search(
            r'<section id="page=2">(<a id="cited"></a>)?\s*<p>(<mark>)?[^<]*four minutes', page
        )


def test_what_no_assistant_of_the_caller_searches_is_not_read(serve: Serve) -> None:
    keys = [
        {"name": "narrow", "key": OTHER, "assistants": ["late"]},
        {"name": "reader", "key": READER, "scopes": ["chat", "search"]},
    ]
    own = {
        "assistants/hidden/models/secret.mod.yao": (
            '{"name": "Secret", "table": {"name": "secret"},'
            ' "columns": [{"name": "id", "type": "ID"}]}'
        )
    }
    with serve(own, auth={"keys": keys}) as served, served.client(READER) as client:
        path = "/api/sources/db/agents.hidden.secret/1"
        assert client.get(path).json()["detail"] == "no source 'agents.hidden.secret'"
        search = {"type": "db", "query": "all", "models": ["agents.hidden.secret"]}
        assert client.post("/api/search", json=search).status_code == 400
        search["assistant"] = "tea"
        answered = client.post("/api/search", json=search).json()
        assert (answered["items"], answered["error"]) == ([], "the search failed")


def test_a_hook_cites_a_collection_of_the_app_that_no_assistant_lists_and_its_link_is_read(
    tmp_path: Path,
) -> None:
    hook = """export function Create(ctx, messages) {
      ctx.search.KB(messages[0].content, { collections: ["notes"] });
      return null;
    }"""
    app = write(
        tmp_path / "app",
        {
            "agent/agent.yml": settings(),
            "kb/notes.kb.yao": '{ "name": "Notes", "embedding": { "provider": "hash" } }',
            "assistants/tea/package.yao": '{ "name": "Tea", "connector": "extractive" }',
            "assistants/tea/index.ts": hook,
            "assistants/other/package.yao": "{}",
            "assistants/other/kb/own.kb.yao": '{ "embedding": { "provider": "hash" } }',
            "notes/tea.md": "Black tea takes four minutes.\n",
        },
    )

    from groundhook.host.app.opening import open_host

    async def add() -> None:
        async with open_host(app) as host:
            for name in ("notes", "agents.other.own"):
                await host.add_documents(name, app / "notes/tea.md")

    run_apart(add)
    ask = {"assistant": "tea", "text": "How long does black tea take?"}
    keys = [{"name": "narrow", "key": READER, "assistants": ["tea"], "scopes": ["chat"]}]
    write(app, {"agent/agent.yml": settings(auth={"keys": keys})})
    with serving(app) as served, served.client(READER) as client:
        accept = {"accept": "application/json"}
        [cited] = client.post("/api/turns", json=ask, headers=accept).json()["citations"]
        assert "four minutes" in client.get(cited["url"]).json()["passages"][0]["content"]
        assert client.get("/api/sources/kb/agents.other.own/tea.md").status_code == 404


def test_metrics_have_counts_and_no_words_of_anybody(served: Served) -> None:
    with served.client(OTHER) as client:
        client.post("/api/turns", json={"assistant": "tea", "text": "all teas"}).read()
        client.get("/api/turns/t_guess")
        for _ in range(2):
            client.post("/api/chats", json={"assistant": "tea"})
        figures = "".join(client.get("/metrics").text for _ in range(2))  # of each process
        assert 'groundhook_turns_total{assistant="tea",end="done"}' in figures
        assert re.search(
            r'groundhook_requests_total\{method="GET",route="/api/turns/\{turn\}"', figures
        )
        assert 'groundhook_searches_total{outcome="done",type="db"}' in figures
        written = re.search(r'groundhook_store_seconds_sum\{kind="write"\} (\S+)', figures)
        assert written is not None
        assert float(written[1]) > 0
        for word in ("all teas", "t_guess", "other", OTHER):
            assert word not in figures
        assert client.get("/metrics", headers={"x-forwarded-for": "1.2.3.4"}).status_code == 403
    with served.client(LOCAL) as client:
        assert client.get("/metrics", headers={"x-forwarded-for": "1.2.3.4"}).status_code == 200


def test_metrics_can_be_switched_off(serve: Serve) -> None:
    with serve(metrics="off") as served, served.client(OTHER) as client:
        assert client.get("/metrics").status_code == 404


def test_every_endpoint_is_in_the_document_and_unknown_addresses_are_problems(
    served: Served,
) -> None:
    with served.client("") as client:
        document = client.get("/openapi.json").json()
        described = {
            (method.upper(), path)
            for path, methods in document["paths"].items()
            for method in methods
        }
        assert described == {(e.method, e.path.replace(":path", "")) for e in ENDPOINTS}
        listed = client.get("/").json()
        assert {(each["method"], each["path"]) for each in listed["endpoints"]} == described
        assert listed["openapi"].endswith("/openapi.json")
        page = client.get("/", headers={"accept": "text/html,*/*;q=0.8"})
        assert page.headers["content-type"].startswith("text/html")
        assert '<script type="module" src="/assets/' in page.text
        missing = client.get("/nothing")
        assert (missing.status_code, missing.json()["code"]) == (404, "unknown_name")
        assert missing.json()["detail"] == "no such address (GET / lists the endpoints)"
        assert client.put("/healthz").json()["code"] == "not_allowed"
        about = client.get("/problems/rate_limited")
        assert about.text.startswith("rate_limited (429)")


def test_parts_that_are_switched_off_are_not_there(serve: Serve) -> None:
    parts = ("openai", "mcp", "chats", "page")
    switches = {part: {"enabled": False} for part in parts}
    with serve(**switches) as served, served.client() as client:
        off = [endpoint for endpoint in ENDPOINTS if endpoint.part]
        assert {endpoint.part for endpoint in off} == set(parts)
        for endpoint in off:
            path = re.sub(r"\{\w+(:path)?\}", "x", endpoint.path)
            assert client.request(endpoint.method, path).status_code == 404, path
        paths = client.get("/openapi.json").json()["paths"].keys()
        assert not paths & {endpoint.path for endpoint in off}
        turn = client.post("/api/turns", json={"assistant": "talks", "text": "?"})
        assert "A title" in turn.text
        assert not (served.app / ".groundhook" / "chats.sqlite").exists()


@pytest.mark.parametrize(
    "endpoint", [e for e in ENDPOINTS if not e.open], ids=lambda e: f"{e.method} {e.path}"
)
def test_an_endpoint_refuses_a_caller_without_a_key_or_without_its_scope(
    served: Served, endpoint: Any
) -> None:
    path = re.sub(r"\{\w+(:path)?\}", "x", endpoint.path)
    with served.client("") as nobody, served.client(READER) as reader:
        assert nobody.request(endpoint.method, path).status_code == 401
        refused = reader.request(endpoint.method, path).status_code
        assert (refused == 403) == (endpoint.scope not in (None, "chat"))


def test_a_row_with_a_json_cell_that_nobody_can_parse_is_found_and_read_by_every_way(
    tmp_path: Path,
) -> None:
    columns = [
        {"name": "id", "type": "ID"},
        {"name": "title", "type": "string"},
        {"name": "extra", "type": "json"},
    ]
    files = {
        "agent/agent.yml": settings(),
        "models/note.mod.yao": json.dumps(
            {"name": "Note", "table": {"name": "note"}, "columns": columns}
        ),
        "assistants/notes/package.yao": json.dumps(
            {"name": "Notes", "db": {"models": ["note"]}, "search": {"db": True}}
        ),
    }
    app = write(tmp_path / "app", files)
    load_rows(app)
    cells = ["[" * 5000 + "]" * 5000, f"[{'9' * 5000}]", "[1e999, NaN]"]
    with sqlite3.connect(app / ".groundhook" / "data.sqlite") as connection:
        connection.executemany(
            "insert into note (title, extra) values (?, ?)",
            [(f"note {n}", cell) for n, cell in enumerate(cells)],
        )
    connection.close()
    search = {"name": "search", "arguments": {"query": "all notes"}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": search}
    both = {"accept": "application/json, text/event-stream"}
    with serving(app) as served, served.client() as client:
        found = client.post(
            "/api/search",
            json={"type": "db", "query": "all notes", "assistant": "notes", "models": ["note"]},
        )
        assert [item["title"] for item in found.json()["items"]] == ["note 0", "note 1", "note 2"]
        assert client.get("/api/sources/db/note/1").json()["record"]["extra"] == cells[0]
        ask = {"assistant": "notes", "text": "all notes"}
        answer = client.post("/api/turns", json=ask, headers={"accept": "application/json"}).json()
        assert answer["error"] is None
        assert "note 1" in answer["content"]
        called = client.post("/mcp", json=call, headers=both)
        assert "note 2" in called.text
        assert '"isError":true' not in called.text.replace(" ", "")
