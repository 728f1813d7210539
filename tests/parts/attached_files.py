"""A server over an assistant that reads files, and messages that bring some."""

from __future__ import annotations

import base64
import json
from typing import Any

import httpx

from tests.parts.pdf_files import pdf
from tests.server.conftest import APP, settings, sse

LEASE = pdf("The tenant pays 900 crowns each month.", "The notice period is three months.")
FILES = {
    **APP,
    "assistants/files/package.yao": '{ "name": "Files", "connector": "extractive" }',
    "agent/agent.yml": json.dumps(
        {
            **json.loads(settings()),
            "attachments": {"files": 3, "person_files": 4, "person_mb": 1},
        }
    ),
}
QUESTION = "How long is the notice period?"


def part(data: bytes = LEASE, name: str = "lease.pdf", kind: str = "application/pdf") -> Any:
    url = f"data:{kind};base64,{base64.b64encode(data).decode()}"
    return {"type": "file", "file": {"filename": name, "file_data": url}}


def content(*parts: Any, text: str = QUESTION) -> list[Any]:
    return [{"type": "text", "text": text}, *parts]


def end(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = sse(answer)[-1][2]
    return found


def new_chat(client: httpx.Client) -> str:
    id: str = client.post("/api/chats", json={"assistant": "files"}).json()["id"]
    return id
