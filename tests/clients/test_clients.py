"""Real clients of others, each in a process of its own: what they show of plain, streamed and
structured answers, tools, citations and approvals. `make test-clients` installs and runs them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.clients.conftest import LINKS
from tests.clients.recording import recorder
from tests.server.conftest import LOCAL, Served

HERE = Path(__file__).parent
BUILD = HERE.parent.parent / "build/clients"
TEXT = "Two teas [1], ☕ and [2], [1]."
TEAS = {"teas": ["Assam"]}
CITED = ["Assam", "Sencha", "Assam"]
EXPECTED: dict[str, dict[str, Any]] = {
    "ai-ui": {
        "text": [TEXT],
        "sources": ["Assam", "Sencha"],
        "regenerated": 2,
        "call": ["output-available", {"id": 1, "name": "Assam"}],
        "approved": ["It is Assam."],
        "resumed": 0,
    },
    "ai-openai": {
        "text": TEXT,
        "sources": CITED,
        "second": TEXT,
        "tools": "Green.",
        "object": TEAS,
        "chat": TEXT,
        "chatSources": 3,
    },
    "openai-node": {
        "text": TEXT,
        "sources": CITED,
        "stream": TEXT,
        "streamedSources": CITED,
        "object": TEAS,
        "tools": "Green.",
        "responses": TEXT,
        "responsesSources": CITED,
    },
    "mcp-node": {
        "tools": True,
        "text": TEXT,
        "steps": [
            *("searching: all teas", "found 2"),
            *("2 sources given to the model", "writing the answer"),
        ],
        "sources": ["Assam", "Sencha"],
        "told": True,
        "claims": 1,
    },
    "ag-ui": {
        "text": TEXT,
        "custom": [
            *("groundhook.search", "groundhook.search", "groundhook.source"),
            *("groundhook.source", "groundhook.citations"),
        ],
        "call": "pick",
        "tools": "Green.",
    },
    "langchain": {
        "text": TEXT,
        "stream": TEXT,
        "sources": CITED,
        "streamed sources": CITED,
        "object": TEAS,
        "call": "pick",
    },
    "litellm": {
        "text": TEXT,
        "sources": CITED,
        "stream": TEXT,
        "responses": TEXT,
        "object": TEAS,
        "call": "pick",
    },
    "llamaindex": {"text": TEXT, "stream": TEXT, "links": 3, "call": "pick", "object": TEAS},
    "llm": {"text": TEXT, "stream": TEXT, "again": TEXT, "links": 3, "streamed links": 3},
    "pydantic-ai": {
        "text": TEXT,
        "stream": TEXT,
        "sources": CITED,
        "streamed sources": CITED,
        "chat": TEXT,
        "chat sources": CITED,
        "links": 3,
        "again": TEXT,
        "object": TEAS,
        "tools": "Green.",
    },
    "openai-agents": {
        "text": TEXT,
        "stream": TEXT,
        "sources": CITED,
        "again": TEXT,
        "tools": "Green.",
        "object": TEAS,
    },
    "instructor": {"object": TEAS, "stream": TEAS},
}
NODE = ("ai-ui", "ai-openai", "openai-node", "mcp-node", "ag-ui")
OLDER = ("instructor", "llamaindex", "llm")  # of requirements-older.txt


@pytest.mark.peers
@pytest.mark.parametrize("client", EXPECTED)
def test_a_client_does_what_its_documentation_shows(client: str, clients_server: Served) -> None:
    if client in NODE:
        command = ["node", str(BUILD / "node_clients.mjs")]
    else:
        place = "older" if client in OLDER else "python"
        command = [str(BUILD / place / "bin/python"), str(HERE / "python_clients.pyw")]
    with recorder(clients_server.url) as (address, sent):
        done = subprocess.run(
            [*command, client, address, LOCAL, LINKS],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == EXPECTED[client]
    if os.environ.get("RECORD"):  # noqa: TID251 - of `make`
        written = json.dumps({"client": client, "requests": sent}, indent=1, ensure_ascii=False)
        (HERE / f"recorded/{client}.json").write_text(f"{written}\n", encoding="utf-8")
