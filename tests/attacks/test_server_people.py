"""People against people, and against the server, over HTTP: guessed ids, made-up identities, requests
that are JSON and nothing else, stops that race with ends, many readers that do not read."""

from __future__ import annotations

import json
import random
import re
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.parts.attacked_server import FILES, LIMITS, STREAMS, connected
from tests.server.conftest import LOCAL, OTHER, READER, Served, serving, sse, write
from tests.server.conftest import settings as agent

ACTS = "a" * 40
ASK = {"assistant": "talks", "text": "?"}
JSON = {"accept": "application/json"}
YEAR = """
function Create(ctx) {
  ctx.memory.user.Incr("private");
  return { answer: `Of ${ctx.Ask("Of which year?", ["2023", "2024"])}.` };
}"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    app = tmp_path_factory.mktemp("people") / "app"
    keys = [
        {"name": "other", "key": OTHER, "user": "other"},
        {"name": "reader", "key": READER, "user": "reader"},
        {"name": "web", "key": ACTS, "acts_for": True},
    ]
    configured = agent(limits=LIMITS, streams=STREAMS, auth={"keys": keys})
    years = {"assistants/years/package.yao": "{}", "assistants/years/index.ts": YEAR}
    write(app, {**FILES, **years, "agent/agent.yml": configured})
    with serving(app) as server:
        yield server


def things_of(client: httpx.Client) -> dict[str, str]:
    """A chat, its question and answer, and the turn between them."""
    chat = client.post("/api/chats", json={"assistant": "talks"}).json()["id"]
    turn = client.post(f"/api/chats/{chat}/turns", json={"text": "A secret?"}, headers=JSON)
    question, answer = client.get(f"/api/chats/{chat}").json()["messages"]
    loose = client.post("/api/turns", json=ASK).headers["x-groundhook-turn"]
    return {
        "chat": chat,
        "question": question["id"],
        "answer": answer["id"],
        "turn": turn.json()["turn_id"],
        "loose": loose,
    }


def requests_for(id: str, mine: str) -> list[tuple[str, str, Any]]:
    """Every request that names a thing: by its id, also inside of a chat of the caller's own."""
    return [
        ("GET", f"/api/chats/{id}", None),
        ("GET", f"/api/chats/{id}/messages", None),
        ("GET", f"/api/chats/{mine}/messages?leaf={id}", None),
        ("GET", f"/api/chats/{id}/export?format=markdown", None),
        ("PATCH", f"/api/chats/{id}", {"title": "Mine"}),
        ("PATCH", f"/api/chats/{mine}", {"leaf": id}),
        ("DELETE", f"/api/chats/{id}", None),
        ("POST", f"/api/chats/{id}/turns", {"text": "?"}),
        ("POST", f"/api/chats/{mine}/turns", {"text": "?", "edit": id}),
        ("POST", f"/api/chats/{id}/regenerate", {}),
        ("POST", f"/api/chats/{mine}/regenerate", {"message_id": id}),
        ("PUT", f"/api/messages/{id}/feedback", {"rating": 1}),
        ("GET", f"/api/turns/{id}", None),
        ("GET", f"/api/turns/{id}/events", None),
        ("GET", f"/api/turns/{id}/events?after=1", None),
        ("POST", f"/api/turns/{id}/stop", None),
    ]


def like(id: str, chance: random.Random) -> str:
    """An id of the same kind that nothing has."""
    kind, _, rest = id.partition("_")
    return f"{kind}_{chance.randbytes(len(rest) // 2).hex()}"


def test_what_belongs_to_another_is_answered_as_what_does_not_exist(served: Served) -> None:
    chance = random.Random()
    with served.client(OTHER) as theirs, served.client(READER) as mine:
        things = things_of(theirs)
        own = things_of(mine)["chat"]
        before = theirs.get(f"/api/chats/{things['chat']}/export").json()
        for id in things.values():
            guess = like(id, chance)
            for real, unreal in zip(requests_for(id, own), requests_for(guess, own), strict=True):
                answers = [
                    mine.request(method, path, json=body) for method, path, body in (real, unreal)
                ]
                seen = [
                    (answer.status_code, answer.text.replace(each, "").partition('"request"')[0])
                    for answer, each in zip(answers, (id, guess), strict=True)
                ]
                assert seen[0] == seen[1], real
                assert answers[0].status_code == 404, real
        after = theirs.get(f"/api/chats/{things['chat']}/export").json()
        listed = json.dumps(mine.get("/api/chats?archived=1").json())
    assert after == before
    assert not any(id in listed for id in things.values())


def store_uses(client: httpx.Client) -> int:
    """How often the server has used its store."""
    found = re.findall(
        r"groundhook_store_seconds_count.*? ([\d.]+)$", client.get("/metrics").text, re.M
    )
    return int(sum(float(each) for each in found))


def test_what_belongs_to_another_costs_the_work_of_what_does_not_exist(served: Served) -> None:
    chance = random.Random()
    with (
        served.client(OTHER) as theirs,
        served.client(READER) as mine,
        theirs.stream("POST", "/api/turns", json={"assistant": "late", "text": "?"}) as answer,
    ):
        things, own = things_of(theirs), things_of(mine)["chat"]
        things["running"] = answer.headers["x-groundhook-turn"]

        def works(*requests: tuple[str, str, Any]) -> Iterator[int]:
            before = store_uses(mine)
            for method, path, body in requests:
                assert mine.request(method, path, json=body).status_code == 404
                after = store_uses(mine)
                yield after - before
                before = after

        for id in things.values():
            guess = like(id, chance)
            for real, unreal in zip(requests_for(id, own), requests_for(guess, own), strict=True):
                # Several times if they differ: the server looks for lost turns now and then.
                least = [*works(real, unreal)]
                for _ in range(4):
                    if least[0] != least[1]:
                        least = [*map(min, least, works(real, unreal))]
                assert least[0] == least[1], real


HOSTILE = ("a:b", "web:ada", ":", "a\nb", "a\0b", "a" * 10_000, "\u202e", " ", "../ada", "ad\u0430")


def test_ids_of_people_that_a_key_names_are_its_own_people_or_refused(served: Served) -> None:
    users: set[str] = set()
    with served.client(ACTS) as client:
        for name in HOSTILE:
            body = {
                "model": "talks",
                "messages": [{"role": "user", "content": "?"}],
                "user": name,
                "groundhook": {"chat_id": "c1"},
            }
            answer = client.post("/v1/chat/completions", json=body)
            assert answer.status_code in (200, 400, 401), name
        for name in HOSTILE:
            if not name.isprintable() or not name.isascii() or not name.strip():
                continue  # no client can send it in a header
            me = client.get("/api/me", headers={"x-groundhook-user": name})
            if me.status_code == 200:
                users.add(me.json()["user"])
    assert all(user == "" or user.startswith("web:") for user in users)
    assert not users & {"other", "reader", "local"}


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
KEYS: tuple[str, ...] = (
    "assistant",
    "text",
    "messages",
    "search",
    "options",
    "data",
    "leaving",
    "model",
    "stream",
)
KEYS += ("title", "leaf", "edit", "content", "rating", "query", "type", "filter", "message_id", "n")
BODIES = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=5) | VALUES
COMPLETION: dict[str, Any] = {
    "model": "talks",
    "messages": [{"role": "user", "content": "?"}],
}
NEARLY = st.sampled_from(
    [
        {"assistant": "talks"},
        {"assistant": "talks", "text": "?"},
        COMPLETION,
        {"type": "db", "query": "?", "assistant": "tea"},
    ]
)
PATHS = (
    "/api/turns",
    "/api/chats",
    "/api/search",
    "/api/session",
    "/api/tools/x?assistant=tea",
    "/v1/chat/completions",
    "/mcp",
    "/api/chats/{chat}/turns",
    "/api/chats/{chat}/regenerate",
)


def test_any_json_is_an_answer_that_is_no_error_of_the_server(served: Served) -> None:
    with served.client(accept="application/json, text/event-stream") as client:
        chat = things_of(client)["chat"]

        @settings(max_examples=40)
        @given(st.sampled_from(PATHS), NEARLY, BODIES)
        @example("/v1/chat/completions", COMPLETION, {"": None})
        @example("/v1/chat/completions", COMPLETION, {" a\r\n": None})
        @example("/api/search", {"type": "db", "query": "?", "assistant": "tea"}, {})
        def answered(path: str, base: dict[str, Any], body: Any) -> None:
            value = {**base, **body} if isinstance(body, dict) else body
            answer = client.post(path.replace("{chat}", chat), json=value)
            assert answer.status_code < 500, answer.text

        answered()


def test_who_may_not_use_the_default_does_not_learn_its_name(tmp_path: Path) -> None:
    configured = json.loads(agent(auth={"anonymous": True}))
    configured["uses"] = {"default": "fails"}
    app = write(tmp_path / "app", {**FILES, "agent/agent.yml": json.dumps(configured)})
    asked = {"messages": [{"role": "user", "content": "?"}]}
    with serving(app) as server, server.client("") as client:
        for path, body in (("/api/turns", {"text": "?"}), ("/v1/chat/completions", asked)):
            answer = client.post(path, json=body)
            assert answer.status_code == 400
            assert "no assistant is named, and there is no default" in answer.text
            assert "fails" not in answer.text


def test_a_stop_that_races_with_the_end_leaves_one_end(served: Served, full: bool) -> None:
    with served.client() as client:
        for _ in range(25 if full else 8):
            with client.stream("POST", "/api/turns", json=ASK) as answer:
                turn = answer.headers["x-groundhook-turn"]
                statuses: list[int] = []

                def stop(turn: str = turn, statuses: list[int] = statuses) -> None:
                    with served.client() as other:
                        statuses.append(other.post(f"/api/turns/{turn}/stop").status_code)

                thread = threading.Thread(target=stop)
                thread.start()
                names = [name for _, name, _ in sse(answer)]
                thread.join()
            assert names.count("stream_end") == 1
            assert names[-1] == "stream_end"
            assert statuses[0] in (200, 202)
            again = [name for _, name, _ in sse(client.get(f"/api/turns/{turn}/events"))]
            assert again[-1] == "stream_end"


def test_many_clients_that_stop_reading_hold_up_nobody_else(served: Served, full: bool) -> None:
    body = json.dumps({"assistant": "prints", "text": "?"})
    signed = f"Host: {served.url.removeprefix('http://')}\r\nAuthorization: Bearer {LOCAL}\r\n"
    ask = f"POST /api/turns HTTP/1.1\r\n{signed}Content-Type: application/json\r\n"
    ask += f"Content-Length: {len(body)}\r\n\r\n{body}"
    with ExitStack() as open:

        def silent(request: str) -> socket.socket:
            sock = open.enter_context(connected(served))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.sendall(request.encode())
            return sock

        first, *_ = (silent(ask) for _ in range(40))
        turn = first.recv(1000).partition(b"x-groundhook-turn: ")[2].split()[0].decode()
        for _ in range(1900 if full else 40):
            silent(f"GET /api/turns/{turn}/events HTTP/1.1\r\n{signed}\r\n")
        with served.client() as client:
            answer = client.post(
                "/api/turns", json={"assistant": "tea", "text": "?", "search": False}
            )
            assert sse(answer)[-1][1] == "stream_end"


def test_no_answer_can_be_framed_or_is_taken_for_another_type(served: Served) -> None:
    with served.client("") as client:
        for path in ("/healthz", "/api/me", "/nothing", "/problems/usage", "/mcp", "/v1/models"):
            headers = client.get(path).headers
            policy = headers["content-security-policy"].split("; ")
            for directive in ("default-src", "frame-ancestors", "form-action", "base-uri"):
                assert f"{directive} 'none'" in policy, path
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] == "no-referrer"


def test_no_answer_is_kept_by_a_cache(served: Served) -> None:
    with served.client() as client:
        chat = client.post("/api/chats", json={"assistant": "talks"}).json()["id"]
        turn = client.post("/api/turns", json=ASK)
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        both = {"accept": "application/json, text/event-stream"}
        for answer in (
            turn,
            client.post("/mcp", json=ping, headers=both),
            *(
                client.get(path)
                for path in (
                    "/api/me",
                    f"/api/chats/{chat}",
                    f"/api/chats/{chat}/export?format=markdown",
                    f"/api/turns/{turn.headers['x-groundhook-turn']}/events",
                    "/api/sources/db/tea/1",
                    "/api/sources/kb/nothing/nothing",
                    "/v1/models",
                    "/nothing",
                )
            ),
        ):
            assert "no-store" in answer.headers["cache-control"], answer.url
        assert "no-transform" in turn.headers["cache-control"]


def test_a_form_of_another_site_signs_nobody_in_and_a_chosen_cookie_is_none(
    served: Served,
) -> None:
    with served.client("") as client:
        for content_type in ("application/x-www-form-urlencoded", "text/plain", ""):
            given = {"content-type": content_type} if content_type else {}
            text = json.dumps({"key": OTHER}).encode()
            answer = client.post("/api/session", content=text, headers=given)
            assert answer.status_code in (415, 429)  # guesses at keys are counted
            assert "set-cookie" not in answer.headers
        for chosen in (secrets.token_hex(16), "x.9999999999.y", "..", f"{OTHER[3:11]}.9999999999."):
            port = served.url.rpartition(":")[2]
            fixed = {"cookie": f"gh_session_{port}={chosen}"}
            assert client.get("/api/me", headers=fixed).status_code in (401, 429)


def test_a_title_of_a_chat_is_no_header_and_no_page(served: Served) -> None:
    title = '"; x=\r\nSet-Cookie: gh_session=1\r\n\r\n<script>alert(1)</script>\u202e'
    with served.client() as client:
        chat = client.post("/api/chats", json={"assistant": "talks", "title": title}).json()
        assert chat["title"] == title
        client.post(f"/api/chats/{chat['id']}/turns", json={"text": "?"}, headers=JSON)
        for form, kind in (("json", "application/json"), ("markdown", "text/markdown")):
            answer = client.get(f"/api/chats/{chat['id']}/export?format={form}")
            assert "set-cookie" not in answer.headers
            assert answer.headers["content-type"].startswith(kind)
            assert answer.headers["content-disposition"].startswith("attachment; filename=")
            assert "script" not in answer.headers["content-disposition"]


def test_a_turn_that_prints_without_end_to_nobody_ends_as_well(served: Served) -> None:
    ask = {"assistant": "prints", "text": "?", "leaving": "continue"}
    with served.client() as client:
        with client.stream("POST", "/api/turns", json=ask) as answer:
            turn = answer.headers["x-groundhook-turn"]
        began = time.monotonic()
        while (state := client.get(f"/api/turns/{turn}").json())["state"] == "running":
            assert time.monotonic() - began < 60
    assert state["error"]["code"] in ("turn_log_full", "hook_timeout")


def test_guesses_at_keys_by_signing_in_are_counted(served: Served) -> None:
    with served.client("") as client:
        statuses = [
            client.post("/api/session", json={"key": f"gh_{n}"}).status_code for n in range(12)
        ]
    assert statuses[0] in (401, 429)
    assert statuses[-1] == 429


def test_no_line_of_the_log_has_a_question_an_answer_a_key_or_a_path(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "groundhook.server")
    hidden = f"hidden{secrets.token_hex(8)}"
    with served.client(OTHER) as client:
        chat = client.post("/api/chats", json={"assistant": "talks", "title": hidden}).json()["id"]
        client.post(f"/api/chats/{chat}/turns", json={"text": hidden}, headers=JSON)
        client.get("/api/chats", params={"q": hidden})
        client.get(f"/{hidden}")
        client.get(f"/api/turns/{hidden}")
        client.post("/api/turns", json={"assistant": hidden, "text": hidden})
        client.post("/api/turns", json={"assistant": "fails", "text": hidden})
        client.request(hidden.upper()[:12], "/api/me")
        client.get("/api/me", headers={"x-request-id": f"{hidden} x", "user-agent": hidden})
        client.get("/api/me", headers={"authorization": f"Bearer {hidden}"})
        metrics = client.get("/metrics").text
    text = "\n".join(record.getMessage() for record in caplog.records)
    assert "route=/api/chats/{chat}/turns" in text
    for secret in (hidden, hidden.upper()[:12], OTHER, OTHER[12:], chat, "A title"):
        assert secret not in text
        assert secret not in metrics


def test_a_question_of_a_hook_is_answered_over_the_api_by_its_person_alone_and_once(
    served: Served,
) -> None:
    with (
        served.client(accept="application/json") as client,
        served.client(OTHER, accept="application/json") as other,
    ):
        chat = client.post("/api/chats", json={"assistant": "years"}).json()["id"]
        asked = client.post(f"/api/chats/{chat}/turns", json={"text": "How many?"}).json()
        [waiting] = asked["pending"]
        assert (waiting["question"], waiting["choices"]) == ("Of which year?", ["2023", "2024"])
        path = f"/api/chats/{chat}/decisions"
        answer = {"approved": True, "reason": "2023"}
        own = other.post("/api/chats", json={"assistant": "years"}).json()["id"]
        for place in (path, f"/api/chats/{own}/decisions"):
            stolen = {**answer, "message_id": asked["message_id"]}
            assert other.post(place, json=stolen).status_code == 404
        wrong = client.post(path, json={"approved": True, "reason": "1066"})
        assert (wrong.status_code, "2023, 2024" in wrong.text) == (400, True)
        assert client.post(path, json=answer).json()["content"] == "Of 2023."
        twice = client.post(path, json={**answer, "message_id": asked["message_id"]})
        assert (twice.status_code, twice.json()["code"]) == (409, "already_decided")
        # What the hook did before its question reaches no client.
        assert "private" not in client.get(f"/api/chats/{chat}").text
        assert "private" not in client.get(f"/api/turns/{asked['turn_id']}/events").text
