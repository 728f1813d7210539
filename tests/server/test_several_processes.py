"""Turns without a chat, where several processes serve an app: any of them answers for any turn."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Thread

import httpx
import pytest

from groundhook.host.server.turns import kept_turns
from tests.server.conftest import APP, LOCAL, Served, serving, settings, sse, started, write

LATE = {"assistant": "late", "text": "When?"}
KEYLESS = "programs-key-0123456789-0123456789-0123"


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[list[Served]]:
    """Two servers over one app and its files of SQLite."""
    keys = [{"name": "program", "key": KEYLESS}]
    agent = settings(
        auth={"anonymous": True, "keys": keys},
        streams={"linger_s": 0.2},
    )
    one_turn = {**json.loads(agent), "turns": {"at_once": 1, "queue": 0}}  # of each process
    app = write(tmp_path / "app", {**APP, "agent/agent.yml": json.dumps(one_turn)})
    with ExitStack() as running:
        yield [running.enter_context(serving(app, workers=2)) for _ in range(2)]


def until(client: httpx.Client, turn: str, state: str) -> dict[str, object]:
    """Read the state of a turn until it is this one."""
    while (found := client.get(f"/api/turns/{turn}").json())["state"] != state:
        pass
    return dict(found)


@pytest.mark.parametrize("key", [LOCAL, KEYLESS], ids=["local", "keyless"])
def test_another_process_reads_and_stops_a_turn(pair: list[Served], key: str) -> None:
    with pair[0].client(key) as one, pair[1].client(key) as two:
        with one.stream("POST", "/api/turns", json=LATE) as answer:
            turn = answer.headers["x-groundhook-turn"]
            assert two.get(f"/api/turns/{turn}").json()["state"] == "running"
            assert two.post(f"/api/turns/{turn}/stop").status_code == 202
            events = sse(answer)
        assert events[-2][2]["code"] == "stopped"
        assert sse(two.get(f"/api/turns/{turn}/events")) == events
    with pair[1].client("" if key == LOCAL else LOCAL) as stranger:
        assert stranger.get(f"/api/turns/{turn}").status_code == 404


def test_an_anonymous_reader_continues_at_another_process_with_its_token(
    pair: list[Served],
) -> None:
    with (
        pair[0].client("") as one,
        pair[1].client("") as two,
        one.stream("POST", "/api/turns", json=LATE) as answer,
    ):
        token = answer.headers["x-groundhook-resume"]
        path = f"/api/turns/{answer.headers['x-groundhook-turn']}"
        assert two.get(path).status_code == 404
        assert two.get(path, headers={"x-groundhook-resume": token[:-1]}).status_code == 404
        theirs = two.get(path, headers={"x-groundhook-resume": token})
        assert theirs.json()["state"] == "running"


def test_a_repeated_request_gets_the_turn_of_another_process(pair: list[Served]) -> None:
    headers = {"idempotency-key": "one"}
    ask = {"assistant": "talks", "text": "Hello?"}
    with pair[0].client() as one, pair[1].client() as two:
        first = one.post("/api/turns", json=ask, headers=headers)
        again = two.post("/api/turns", json=ask, headers=headers)
        assert sse(again) == sse(first)
        changed = two.post("/api/turns", json={**ask, "text": "Bye?"}, headers=headers)
        assert changed.status_code == 422


def test_a_turn_goes_on_while_a_reader_at_another_process_reads_it(
    pair: list[Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_turns, "HELD_S", 1.5)
    with pair[0].client() as one, pair[1].client() as two:
        with one.stream("POST", "/api/turns", json=LATE) as answer:
            turn = answer.headers["x-groundhook-turn"]
            with two.stream("GET", f"/api/turns/{turn}/events") as elsewhere:
                answer.close()
                lines = elsewhere.iter_lines()
                assert "event: stream_start" in (next(lines) for _ in range(10))
                for _ in range(8):  # of the time without a reader, several times over
                    httpx.get(f"{pair[0].url}/healthz")
                    assert two.get(f"/api/turns/{turn}").json()["state"] == "running"
        assert until(one, turn, "done")["error"]["code"] == "stopped"  # type: ignore[index]


def test_a_reader_at_another_process_keeps_a_turn_that_is_else_stopped_at_once(
    tmp_path: Path,
) -> None:
    app = write(tmp_path / "app", {**APP, "agent/agent.yml": settings(streams={"linger_s": 0})})
    with (
        serving(app, workers=2) as first,
        serving(app, workers=2) as second,
        first.client() as one,
        second.client() as two,
    ):
        with one.stream("POST", "/api/turns", json=LATE) as answer:
            turn = answer.headers["x-groundhook-turn"]
            with two.stream("GET", f"/api/turns/{turn}/events") as elsewhere:
                lines = elsewhere.iter_lines()
                assert "event: stream_start" in (next(lines) for _ in range(10))
                answer.close()
                while "groundhook_streams_open 0.0" not in one.get("/metrics").text:
                    pass
                assert one.get(f"/api/turns/{turn}").json()["state"] == "running"
                assert two.post(f"/api/turns/{turn}/stop").status_code == 202
        with one.stream("POST", "/api/turns", json=LATE) as answer:
            turn = answer.headers["x-groundhook-turn"]
        assert until(one, turn, "done")["error"]["code"] == "stopped"  # type: ignore[index]


def test_a_stored_turn_that_can_no_longer_be_read_is_not_available(
    pair: list[Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_turns, "PATIENCE_S", 0)
    headers = {"idempotency-key": "one"}
    answers: list[httpx.Response] = []
    file = pair[0].app / ".groundhook/chats.sqlite"
    with (
        pair[0].client() as one,
        pair[1].client(accept="application/json") as two,
        closing(sqlite3.connect(file)) as db,
        one.stream("POST", "/api/turns", json=LATE, headers=headers),
    ):
        again = Thread(
            target=lambda: answers.append(two.post("/api/turns", json=LATE, headers=headers))
        )
        again.start()
        while not db.execute("select 1 from turns where read_until > 0").fetchall():
            pass
        db.execute("alter table logs rename to moved")
        again.join()
        db.execute("alter table moved rename to logs")
    assert (answers[0].status_code, answers[0].json()["code"]) == (503, "storage")


@pytest.mark.parametrize(
    ("unread", "error"), [("text", None), ("stream_end", "other_version")], ids=["text", "end"]
)
def test_a_turn_with_events_of_another_version_is_read_with_those_that_are_known(
    pair: list[Served], unread: str, error: str | None
) -> None:
    with pair[0].client() as one, pair[1].client() as two:
        asked = one.post("/api/turns", json={"assistant": "talks", "text": "?"})
        turn = asked.headers["x-groundhook-turn"]
        with closing(sqlite3.connect(pair[0].app / ".groundhook/chats.sqlite")) as db, db:
            stored, unknown = f'"type":"{unread}"', '"type":"next_years"'
            db.execute(
                "update logs set body = cast(replace(cast(body as text), ?, ?) as blob)"
                " where turn_id = ?",
                (stored, unknown, turn),
            )
            assert db.execute("select 1 from logs where instr(body, ?)", (unknown,)).fetchall()
        own, read = (each.get(f"/api/turns/{turn}").json() for each in (one, two))
        assert (read["state"], read["last_event"]) == ("done", own["last_event"] + bool(error) * 2)
        assert (read["error"] or {}).get("code") == error
        assert read["content"] == own["content"]
        streamed = sse(two.get(f"/api/turns/{turn}/events"))
        assert streamed[-1][1] == "stream_end"


def test_a_turn_that_could_not_begin_is_not_stored(pair: list[Served]) -> None:
    headers = {"idempotency-key": "one"}
    ask = {"assistant": "talks", "text": "?"}
    with pair[0].client() as one, pair[1].client() as two:
        with one.stream("POST", "/api/turns", json=LATE):
            refused = one.post("/api/turns", json=ask, headers=headers)
            assert (refused.status_code, refused.json()["code"]) == (503, "full")
        assert sse(two.post("/api/turns", json=ask, headers=headers))[-1][1] == "stream_end"


def test_with_workers_every_process_of_the_server_knows_a_turn(tmp_path: Path) -> None:
    app = write(
        tmp_path / "app", {**APP, "agent/agent.yml": json.dumps({"server": {"drain_s": 0}})}
    )
    with started(app, "--workers", "2") as (_, at):
        headers = {"authorization": f"Bearer {at['key']}"}

        def fresh() -> httpx.Client:  # a connection of its own, which any process takes
            transport = httpx.HTTPTransport(retries=5)
            return httpx.Client(
                base_url=at["url"], headers=headers, transport=transport, timeout=60
            )

        with fresh() as client, client.stream("POST", "/api/turns", json=LATE) as answer:
            turn = answer.headers["x-groundhook-turn"]
            for _ in range(12):
                with fresh() as other:
                    assert other.get(f"/api/turns/{turn}").json()["state"] == "running"
            with fresh() as other:
                assert other.post(f"/api/turns/{turn}/stop").status_code == 202
            assert sse(answer)[-2][2]["code"] == "stopped"
