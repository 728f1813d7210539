"""Kept chats over HTTP: sent, edited, read again, and whole after a process was killed."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx
import pytest

from tests.server.conftest import (
    APP,
    OTHER,
    READER,
    Serve,
    Served,
    end_leases,
    settings,
    sse,
    started,
    write,
)

JSON = {"accept": "application/json"}


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with served.client() as client:
        yield client


def chat_of(client: httpx.Client, assistant: str = "tea") -> str:
    made = client.post("/api/chats", json={"assistant": assistant})
    assert made.status_code == 201
    return str(made.json()["id"])


def ask(client: httpx.Client, chat: str, text: str = "all teas", **more: Any) -> Any:
    answered = client.post(f"/api/chats/{chat}/turns", json={"text": text, **more}, headers=JSON)
    assert answered.status_code == 200, answered.text
    return answered.json()


def test_a_chat_keeps_its_questions_and_answers_and_has_a_title(client: httpx.Client) -> None:
    chat = chat_of(client)
    answer = ask(client, chat)
    assert answer["chat_id"] == chat
    kept = client.get(f"/api/chats/{chat}").json()
    assert kept["title"] == "all teas"
    assert [message["role"] for message in kept["messages"]] == ["user", "assistant"]
    assert kept["messages"][1]["content"] == answer["content"]
    markers = [each["marker"] for each in kept["messages"][1]["answer"]["citations"]]
    assert markers == [each["marker"] for each in answer["citations"]]
    listed = client.get("/api/chats", params={"q": "all"}).json()["chats"]
    assert chat in [each["id"] for each in listed]


def test_the_next_question_has_the_history_of_the_store(client: httpx.Client) -> None:
    chat = chat_of(client, "talks")
    ask(client, chat, "First")
    received = ask(client, chat, "Second")["metadata"]["received"]
    assert [message["content"] for message in received] == ["First", "A title", "Second"]


def test_an_edit_and_another_answer_are_branches(client: httpx.Client) -> None:
    chat = chat_of(client)
    ask(client, chat)
    question, answer = client.get(f"/api/chats/{chat}").json()["messages"]
    again = client.post(
        f"/api/chats/{chat}/regenerate", json={"message_id": answer["id"]}, headers=JSON
    )
    assert again.status_code == 200
    ask(client, chat, "all the teas", edit=question["id"])
    shown = client.get(f"/api/chats/{chat}").json()["messages"]
    assert shown[0]["content"] == "all the teas"
    assert len(shown[0]["siblings"]) == 2
    branch = client.get(f"/api/chats/{chat}/messages", params={"leaf": answer["id"]}).json()
    assert len(branch["messages"][1]["siblings"]) == 2
    changed = client.patch(f"/api/chats/{chat}", json={"leaf": answer["id"], "title": "Teas"})
    assert changed.json()["title"] == "Teas"
    assert client.get(f"/api/chats/{chat}").json()["messages"] == branch["messages"]


def test_one_turn_at_a_time_and_a_second_client_attaches_to_it(client: httpx.Client) -> None:
    chat = chat_of(client, "late")
    with client.stream("POST", f"/api/chats/{chat}/turns", json={"text": "?"}) as answer:
        turn = answer.headers["x-groundhook-turn"]
        busy = client.post(f"/api/chats/{chat}/turns", json={"text": "?"})
        assert (busy.status_code, busy.json()["code"]) == (409, "chat_busy")
        assert busy.json()["turn_id"] == turn
    with client.stream("GET", f"/api/turns/{turn}/events") as attached:
        assert client.post(f"/api/turns/{turn}/stop").status_code == 202
        assert sse(attached)[-1][1] == "stream_end"
    kept = client.get(f"/api/chats/{chat}").json()["messages"]
    assert [error["code"] for error in kept[1]["answer"]["errors"]] == ["stopped"]


async def test_of_two_questions_at_once_one_is_taken(served: Served) -> None:
    with served.client() as client:
        chat = chat_of(client, "late")
        path = f"/api/chats/{chat}/turns"
        statuses: list[int] = []
        answered = threading.Barrier(6)

        def ask_in(text: str) -> None:
            with (
                served.client() as own,
                own.stream("POST", path, json={"text": text}) as answer,
            ):
                statuses.append(answer.status_code)
                answered.wait(60)  # who leaves ends its turn, and another could be taken

        async with anyio.create_task_group() as tasks:
            for n in range(6):
                tasks.start_soon(anyio.to_thread.run_sync, ask_in, f"Question {n}")
        kept = client.get(f"/api/chats/{chat}").json()["messages"]
        turn = client.post(path, json={"text": "?"}).json()["turn_id"]
        client.post(f"/api/turns/{turn}/stop")
    assert statuses.count(200) == 1
    assert set(statuses) <= {200, 409, 429}
    assert [message["role"] for message in kept] == ["user"]


def test_chats_are_rated_exported_put_aside_and_deleted(client: httpx.Client) -> None:
    chat = chat_of(client)
    asked = ask(client, chat)
    answer, turn = asked["message_id"], asked["turn_id"]
    assert client.get(f"/api/chats/{chat}").json()["messages"][1]["id"] == answer
    path = f"/api/messages/{answer}/feedback"
    assert client.put(path, json={"rating": 1, "comment": "Good"}).status_code == 204
    assert client.put(path, json={"rating": 2}).status_code == 400
    exported = client.get(f"/api/chats/{chat}/export")
    assert "attachment" in exported.headers["content-disposition"]
    assert exported.json()["messages"][1]["feedback"]["rating"] == 1
    text = client.get(f"/api/chats/{chat}/export?format=markdown").text
    assert "**Tea**" in text
    assert "Two teas [^1]" in text
    assert client.get(f"/api/chats/{chat}/export?format=pdf").status_code == 400
    client.patch(f"/api/chats/{chat}", json={"archived": True})
    assert chat not in json.dumps(client.get("/api/chats").json())
    assert chat in json.dumps(client.get("/api/chats?archived=1").json())
    assert client.delete(f"/api/chats/{chat}").status_code == 204
    assert client.get(f"/api/chats/{chat}").status_code == 404
    assert client.get(f"/api/turns/{turn}/events").status_code == 404
    assert client.get(f"/v1/responses/resp_{turn}").status_code == 404


def test_a_chat_of_somebody_else_does_not_exist(client: httpx.Client, served: Served) -> None:
    chat = chat_of(client)
    ask(client, chat)
    answer = client.get(f"/api/chats/{chat}").json()["messages"][1]["id"]
    turn = ask(client, chat)["turn_id"]
    requests: list[tuple[str, str, Any]] = [
        ("GET", f"/api/chats/{chat}", None),
        ("GET", f"/api/chats/{chat}/messages", None),
        ("GET", f"/api/chats/{chat}/export", None),
        ("PATCH", f"/api/chats/{chat}", {"title": "Mine"}),
        ("DELETE", f"/api/chats/{chat}", None),
        ("POST", f"/api/chats/{chat}/turns", {"text": "?"}),
        ("POST", f"/api/chats/{chat}/regenerate", {}),
        ("PUT", f"/api/messages/{answer}/feedback", {"rating": 1}),
        ("GET", f"/api/turns/{turn}", None),
    ]
    with served.client(OTHER) as other:
        mine = chat_of(other)
        ask(other, mine)
        leaf = other.get(f"/api/chats/{mine}/messages", params={"leaf": answer})
        assert leaf.status_code == 404
        assert (
            other.post(f"/api/chats/{mine}/turns", json={"text": "?", "edit": answer}).status_code
            == 404
        )
        for method, path, body in requests:
            theirs = other.request(method, path, json=body)
            assert theirs.status_code == 404, path
            assert chat not in json.dumps(other.get("/api/chats").json())
    with served.client(READER) as reader:
        assert reader.get("/api/chats").status_code == 403


@pytest.mark.parametrize(
    "limit", ["0", "201", "0000000010000", "000000001" + "1" * 5000, "²", "-1"]
)
def test_a_page_of_chats_has_a_limit(client: httpx.Client, limit: str) -> None:
    refused = client.get("/api/chats", params={"limit": limit})
    assert (refused.status_code, refused.json()["detail"]) == (400, "limit must be 1 to 200")


def test_a_key_without_a_user_has_no_chats(serve: Serve) -> None:
    keys = [{"name": "nobody", "key": OTHER}]
    with serve(auth={"keys": keys}) as served, served.client(OTHER) as client:
        refused = client.get("/api/chats")
        assert (refused.status_code, refused.json()["code"]) == (403, "needs_user")


def test_readers_of_a_chat_see_no_more_than_they_saw_live(served: Served) -> None:
    with served.client(OTHER) as reader:
        chat = chat_of(reader, "fails")
        ask(reader, chat)
        kept = reader.get(f"/api/chats/{chat}").text
    assert "could not be completed" in kept
    assert "/srv/secret" not in kept


def test_after_a_kill_the_chat_has_what_was_said_and_goes_on(
    tmp_path: Path, store: dict[str, str]
) -> None:
    app = write(tmp_path / "app", {**APP, "agent/agent.yml": settings(store)})
    headers = {"authorization": f"Bearer {OTHER}"}
    with (
        started(app) as (process, at),
        httpx.Client(base_url=at["url"], headers=headers, timeout=60) as client,
    ):
        chat = chat_of(client, "late")
        with client.stream("POST", f"/api/chats/{chat}/turns", json={"text": "Hello?"}) as answer:
            turn = answer.headers["x-groundhook-turn"]
            process.send_signal(signal.SIGKILL)
            process.wait(60)
    end_leases(app, store)
    with (
        started(app) as (_, at),
        httpx.Client(base_url=at["url"], headers=headers, timeout=60) as client,
    ):
        events = sse(client.get(f"/api/turns/{turn}/events"))
        assert [data["type"] for _, _, data in events[-2:]] == ["error", "stream_end"]
        assert events[-2][2]["code"] == "turn_lost"
        kept = client.get(f"/api/chats/{chat}").json()["messages"]
        assert [message["content"] for message in kept] == ["Hello?", ""]
        body = {"text": "Again?", "options": {"connector": "titles"}}
        assert client.post(f"/api/chats/{chat}/turns", json=body).status_code == 400
        with client.stream("POST", f"/api/chats/{chat}/turns", json={"text": "?"}) as answer:
            assert answer.status_code == 200


def test_another_process_reads_and_stops_a_turn_of_a_chat(
    tmp_path: Path, store: dict[str, str]
) -> None:
    app = write(tmp_path / "app", {**APP, "agent/agent.yml": settings(store)})
    headers = {"authorization": f"Bearer {OTHER}"}
    with (
        started(app) as (_, one),
        started(app) as (_, two),
        httpx.Client(base_url=one["url"], headers=headers, timeout=60) as first,
        httpx.Client(base_url=two["url"], headers=headers, timeout=60) as second,
    ):
        chat = chat_of(first, "late")
        with first.stream("POST", f"/api/chats/{chat}/turns", json={"text": "?"}) as running:
            turn = running.headers["x-groundhook-turn"]
            with second.stream("GET", f"/api/turns/{turn}/events") as followed:
                busy = second.post(f"/api/chats/{chat}/turns", json={"text": "?"})
                assert busy.json()["turn_id"] == turn
                assert second.post(f"/api/turns/{turn}/stop").status_code == 202
                ours = sse(followed)
            theirs = sse(running)
    assert [data for _, _, data in ours] == [data for _, _, data in theirs]
    assert ours[-2][2]["code"] == "stopped"


def test_a_request_that_is_repeated_after_a_restart_gets_the_answer_that_was_kept(
    serve: Serve, store: dict[str, str]
) -> None:
    headers = {**JSON, "idempotency-key": "once-and-for-all"}

    def post(client: httpx.Client, text: str) -> httpx.Response:
        return client.post(f"/api/chats/{chat}/turns", json={"text": text}, headers=headers)

    with serve(store=store) as served, served.client(OTHER) as client:
        chat = chat_of(client)
        first = post(client, "all teas")
    with serve(store=store) as served, served.client(OTHER) as client:
        again, other = post(client, "all teas"), post(client, "no teas")
        messages = client.get(f"/api/chats/{chat}").json()["messages"]
    assert again.status_code == 200
    assert again.headers["x-groundhook-turn"] == first.headers["x-groundhook-turn"]
    assert again.json() == first.json()
    assert other.status_code == 422
    assert len(messages) == 2


def test_an_idempotency_key_of_one_chat_begins_no_turn_of_another(client: httpx.Client) -> None:
    one, two = chat_of(client), chat_of(client)
    headers = {**JSON, "idempotency-key": "shared-by-chats"}
    statuses = [
        client.post(f"/api/chats/{chat}/turns", json={"text": "teas"}, headers=headers).status_code
        for chat in (one, two)
    ]
    assert statuses == [200, 422]
