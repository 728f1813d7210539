"""Files of messages over HTTP: read, kept with the chat, and removed with it."""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.parts.attached_files import FILES, LEASE, QUESTION, content, end, new_chat, part
from tests.server.conftest import Served, serving, write


@pytest.fixture(scope="module")
def files_app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("files") / "app", FILES)


@pytest.fixture(scope="module")
def served_files(files_app: Path) -> Iterator[Served]:
    with serving(files_app) as server:
        yield server


def test_a_turn_reads_a_file(served_files: Served) -> None:
    message = {"role": "user", "content": content(part())}
    with served_files.client() as client:
        answer = client.post("/api/turns", json={"assistant": "files", "messages": [message]})
    last = end(answer)
    assert "The notice period is three months." in last["content"]
    (cited,) = last["citations"]
    assert (cited["title"], cited["url"]) == ("lease.pdf, p. 2", "")


def test_a_chat_keeps_a_file_and_later_questions_read_it(
    served_files: Served, files_app: Path
) -> None:
    with served_files.client() as client:
        chat = new_chat(client)
        path = f"/api/chats/{chat}"
        end(client.post(f"{path}/turns", json={"content": content(part())}))
        later = end(client.post(f"{path}/turns", json={"text": "How many crowns is the rent?"}))
        assert "900 crowns" in later["content"]

        stored = client.get(path)
        assert "base64" not in stored.text
        (_, kept) = stored.json()["messages"][0]["content"]
        file = kept["file"]
        assert (file["filename"], file["bytes"]) == ("lease.pdf", len(LEASE))
        got = client.get(f"{path}/files/{file['file_id']}")
        assert got.content == LEASE
        assert got.headers["content-disposition"].startswith("attachment;")
        assert got.headers["content-type"] == "application/octet-stream"

        question = stored.json()["messages"][0]["id"]
        again = {"edit": question, "content": content(kept, text="How many crowns is the rent?")}
        assert "900 crowns" in end(client.post(f"{path}/turns", json=again))["content"]
        assert "900 crowns" in end(client.post(f"{path}/regenerate", json={}))["content"]

        assert client.delete(path).status_code == 204
        assert client.get(f"{path}/files/{file['file_id']}").status_code == 404
    with closing(sqlite3.connect(files_app / ".groundhook/chats.sqlite")) as rows:
        left = rows.execute("select count(*) from attachments where chat_id = ?", [chat])
        assert left.fetchone() == (0,)


def test_a_chat_of_a_file_alone_is_named_by_it(served_files: Served) -> None:
    with served_files.client() as client:
        chat = new_chat(client)
        end(client.post(f"/api/chats/{chat}/turns", json={"content": [part()]}))
        assert client.get(f"/api/chats/{chat}").json()["title"] == "lease.pdf"
        client.delete(f"/api/chats/{chat}")


def test_a_picture_is_kept_beside_its_message(served_files: Served) -> None:
    data = base64.b64encode(b"\x89PNG...").decode()
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    with served_files.client() as client:
        chat = new_chat(client)
        end(client.post(f"/api/chats/{chat}/turns", json={"content": content(picture)}))
        stored = client.get(f"/api/chats/{chat}").json()["messages"][0]["content"][1]["image_url"]
        got = client.get(f"/api/chats/{chat}/files/{stored['file_id']}")
        assert (got.content, got.headers["content-type"]) == (b"\x89PNG...", "image/png")
        client.delete(f"/api/chats/{chat}")


def test_clients_of_openai_send_files_and_are_told_that_audio_is_not_heard(
    served_files: Served,
) -> None:
    with served_files.client() as client:
        asked = {"role": "user", "content": content(part())}
        body = {"model": "files", "messages": [asked]}
        answer = client.post("/v1/chat/completions", json=body).json()
        assert "three months" in answer["choices"][0]["message"]["content"]
        file = {"type": "input_file", **part()["file"]}
        given = [{"role": "user", "content": [{"type": "input_text", "text": QUESTION}, file]}]
        answer = client.post("/v1/responses", json={"model": "files", "input": given}).json()
        assert "three months" in json.dumps(answer["output"])
        audio = {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}}
        asked = {"role": "user", "content": content(audio)}
        refused = client.post("/v1/chat/completions", json={"model": "files", "messages": [asked]})
        assert refused.status_code == 400
        assert "messages[0].content[1].type: no model of this assistant reads" in refused.text
