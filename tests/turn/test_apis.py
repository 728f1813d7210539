"""Data parts of type `api` through the public door: what is sent, what is cited, what is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from groundhook.core.types.turn import Identity
from groundhook.host.check.check import check
from groundhook.host.config.packages import load_app
from groundhook.host.llm.scripted import ScriptedConnector
from groundhook.host.output.dialects.places import address
from tests.conftest import MakeApp
from tests.loopback.server import Answer, Cut, Hang, Html, Json, Loopback, Reply, serving
from tests.parts.turns import app_with, end, of, run, scripted
from tests.parts.user_data import asking

PACKAGE = '{"name": "A", "connector": "script"}'
ANN = Identity(user_id="ann", tenant_id="acme/1")
ORDERS = {
    "data": {
        "rows": [
            {"no": 7, "name": "Kettle", "notes": ["in stock", 3], "at": {"web": "https://e.com/7"}},
            {"no": 8, "name": "Mug", "notes": "sold out", "at": {"web": "javascript:alert(1)"}},
        ]
    }
}
FIELDS = {"id": "no", "title": "name", "content": ["notes", "gone"], "url": "at.web"}


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving() as server:
        yield server


def app(make_app: MakeApp, server: Loopback, *, where: str = "apis", **spec: Any) -> Path:
    declared = {"url": f"{server.url}/orders", "items": "data.rows", "fields": FIELDS, **spec}
    root = app_with(make_app, PACKAGE)
    file = root / where / "orders.api.yao"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(declared), encoding="utf-8")
    return root


async def events_of(
    root: Path, question: str = "Which?", model: ScriptedConnector | None = None, **more: Any
) -> Any:
    connector = model or scripted("See {ref:0}.")
    options = {"identity": ANN, "search": False, **more}
    message = asking(("api", "orders"), text=question)
    return await run(root, message, connector=connector, **options)


async def test_entries_of_an_answer_are_cited_like_any_other_source(
    make_app: MakeApp, server: Loopback
) -> None:
    server.on("/orders", Json(ORDERS))
    root = app(make_app, server)
    events = await events_of(root)
    (start,), (done,) = of(events, "search_start"), of(events, "search_complete")
    assert (start.source, start.search_type, start.query) == ("user", "api", "Which?")
    assert (done.total, done.error) == (2, None)
    first, second = (event.item for event in of(events, "search_result"))
    assert (first.title, first.content, first.url) == ("Kettle", "in stock, 3", "https://e.com/7")
    assert (second.title, second.content, second.url) == ("Mug", "sold out", "")
    # The server has no page about an entry of an API.
    assert address(second, "https://chat.example") == ""
    (cited,) = end(events).citations
    assert (cited.title, cited.document_id, cited.verdict) == ("Kettle", "7", "ok")
    assert (cited.type, cited.collection) == ("api", "orders")
    again = await events_of(root)
    assert end(again).citations[0].marker == cited.marker


async def test_unseen_characters_of_an_answer_reach_no_client(
    make_app: MakeApp, server: Loopback
) -> None:
    row = {"no": 1, "name": "\x00Ket\u202etle\x1b[2J", "notes": "in\u2066 stock\x07,\n3"}
    server.on("/orders", Json({"data": {"rows": [row]}}))
    events = await events_of(app(make_app, server))
    (found,) = of(events, "search_result")
    assert (found.item.title, found.item.content) == ("Kettle[2J", "in stock,\n3")
    assert end(events).citations[0].title == "Kettle[2J"
    sent = "".join(event.model_dump_json() for event in events if event.type != "trace")
    assert not re.search(r"\\u00|\u202e|\u2066", sent)


async def test_values_are_encoded_for_the_place_where_they_are_sent(
    make_app: MakeApp, server: Loopback
) -> None:
    hostile = 'a/../b?x=1&y="}, {"admin": true} \n#'
    server.on("*", Json(ORDERS))
    root = app(
        make_app,
        server,
        url=f"{server.url}/of/{{{{ tenant_id }}}}/find/{{{{question}}}}",
        method="POST",
        query={"q": "{{ question }}", "n": "{{ limit }}", "page": 1},
        headers={"X-User": "{{ user_id }}"},
        body={"find": {"text": "{{ question }}", "most": "{{ limit }}", "in": ["{{ locale }}!"]}},
        max_results=2,
    )
    await events_of(root, hostile)
    (request,) = server.requests
    parts = urlsplit(request.path)
    assert parts.path.count("/") == 4
    assert parts.path.startswith("/of/acme%2F1/find/a%2F..%2Fb%3Fx%3D1%26y%3D%22")
    assert parse_qsl(parts.query) == [("q", hostile.strip()), ("n", "2"), ("page", "1")]
    assert request.json == {"find": {"text": hostile.strip(), "most": 2, "in": ["en!"]}}
    assert request.headers["x-user"] == "ann"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Html(), "did not answer with JSON (text/html)"),
        (Json({}, status=403), "answered with status 403 (see its 'headers')"),
        (Json({}, status=500), "answered with status 500"),
        (Json({"data": {"rows": "many"}}), "has a str at 'data.rows', not a list of entries"),
        (Json({"rows": []}), "has nothing at 'data.rows', not a list of entries"),
        (Json({"data": {"rows": "x" * 3000}}), "answered with more than 2 kB"),
        (Reply(b"[" * 1500), "did not answer with JSON"),
        (Cut(b'{"data": {"rows"'), "did not answer with valid HTTP"),
        (Cut(), "disconnected without sending"),
        (Hang(), "did not answer in full within 300 ms"),
        (Reply(b"", 302, headers={"Location": "http://127.0.0.2:9/"}), "redirects to '127.0.0.2'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_failing_api_is_a_failed_search_and_the_answer_comes_all_the_same(
    make_app: MakeApp, server: Loopback, answer: Answer, message: str
) -> None:
    server.on("/orders", answer)
    # Only a server that hangs is waited for in vain: the others may take long on a busy machine.
    timeout_ms = 300 if isinstance(answer, Hang) else 10_000
    root = app(make_app, server, max_kb=2, timeout_ms=timeout_ms)
    events = await events_of(root, model=scripted("Fine."))
    (done,) = of(events, "search_complete")
    (warned,) = of(events, "warning")
    assert message in done.error or message in warned.message
    assert end(events).content == "Fine."


async def test_an_api_that_names_an_id_is_refused_before_anything_is_sent(
    make_app: MakeApp, server: Loopback
) -> None:
    root = app(make_app, server, query={"team": "{{ team_id }}"})
    events = await events_of(root, model=scripted("Fine."))
    assert of(events, "search_complete")[0].error == (
        "the request has no team_id, which this API needs"
    )
    assert server.requests == []


async def test_an_api_of_another_assistant_is_refused(make_app: MakeApp, server: Loopback) -> None:
    root = app(make_app, server, where="assistants/b/apis")
    (root / "assistants/b/package.yao").write_text(PACKAGE, encoding="utf-8")
    message = asking(("api", "agents.b.orders"), ("api", "gone"))
    events = await run(root, message, connector=scripted("Fine."), search=False)
    assert sorted(str(done.error) for done in of(events, "search_complete")) == [
        "no API 'gone' (known: agents.b.orders)",
        "the API 'agents.b.orders' belongs to another assistant",
    ]
    assert server.requests == []


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ('{"urll": "https://e.com"}', "1:2: error: unknown key 'urll' (did you mean 'url'?)"),
        ('{"url": "ftp://e.com"}', "'url': should be an http(s) address"),
        ('{"url": "https://{{ user_id }}.e.com/"}', "'url': placeholders belong in the path"),
        ('{"url": "https://e.com/{{ user }}"}', "there is no placeholder 'user' (did you mean"),
        ('{"url": "https://e.com/", "query": {"q": "{{ question"}}', "is written {{ name }}"),
        ('{"url": "https://e.com/", "body": {"q": 1}}', "'body': a GET has no body"),
        ('{"url": "https://e.com/", "headers": {"K": "$ENV.NO_KEY"}}', "NO_KEY"),
        ('{"url": "https://e.com/", "hosts": ["a b"]}', "'hosts[0]'"),
    ],
)
def test_a_mistake_in_the_file_is_reported_with_its_place(
    make_app: MakeApp, spec: str, problem: str
) -> None:
    root = make_app({"assistants/a/package.yao": PACKAGE, "apis/x.api.yao": spec})
    found = [str(each) for each in check(load_app(root, {}))]
    assert any(each.startswith("apis/x.api.yao:") and problem in each for each in found), found
