"""A server over a small app on loopback, in a thread of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import httpx
import pytest
import uvicorn

from groundhook.host.server.asgi import Opening, settings_of
from groundhook.host.server.keys import Key, hash_of, id_of, make_key
from groundhook.host.server.process import config_of, listen
from groundhook.host.server.who import ALL_SCOPES

LOCAL = make_key()
OTHER = make_key()
READER = make_key()

APP = {
    "connectors/cites.conn.yao": (
        """\
        {"label": "Cites", "type": "scripted",
         "options": {"script": [{"text": "Two teas {ref:0}, \\u2615 and {ref:1}, {ref:0}.", "times": 0}]}}
        """
    ),
    "connectors/slow.conn.yao": (
        """\
        {"label": "Slow", "type": "scripted",
         "options": {"script": [{"text": "Never", "delay_ms": 3600000, "times": 0}]}}
        """
    ),
    "connectors/fails.conn.yao": (
        """\
        {"label": "Fails", "type": "scripted",
         "options": {"script": [{"error": {"code": "refused", "message": "/srv/secret said no"}, "times": 0}]}}
        """
    ),
    "connectors/titles.conn.yao": (
        """\
        {"label": "Titles", "type": "scripted", "options": {"script": [{"text": "A title", "times": 0}]}}
        """
    ),
    "models/tea.mod.yao": (
        """\
        {
          "name": "Tea", "table": { "name": "tea" },
          "columns": [{ "name": "id", "type": "ID" }, { "name": "name", "type": "string" }],
          "values": [{ "id": 1, "name": "Assam" }, { "id": 2, "name": "Sencha" }]
        }
        """
    ),
    "assistants/tea/package.yao": (
        '{ "name": "Tea", "description": "All about tea", "connector": "cites", "db": { "models": ["tea"] }, "search": { "db": true } }'
    ),
    "assistants/late/package.yao": '{ "name": "Late", "connector": "slow", "public": true }',
    "assistants/fails/package.yao": '{ "name": "Fails", "connector": "fails" }',
    "assistants/hidden/package.yao": '{ "name": "Hidden", "connector": "cites", "automated": true }',
    "assistants/talks/package.yao": '{ "name": "Talks", "connector": "titles" }',
    "assistants/talks/index.ts": (
        """\
        function Create(ctx: any, messages: any[]) {
          ctx.Send({ type: "text", props: { content: "One moment. " } });
          ctx.Send({ type: "card", props: { title: "A card" } });
          return { metadata: { said: messages, user: ctx.authorized, chat: ctx.chat_id, client: ctx.client } };
        }
        """
    ),
}
AGENT = {"server": {"auth": {"keys": []}, "allow": {"connectors": ["slow"]}, "drain_s": 0}}
SPARSE = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}


@dataclass(frozen=True)
class Served:
    """A server that answers at an address."""

    url: str
    app: Path
    server: uvicorn.Server

    def client(self, key: str = LOCAL, **headers: str) -> httpx.Client:
        given = {"authorization": f"Bearer {key}"} if key else {}
        return httpx.Client(base_url=self.url, headers={**given, **headers}, timeout=20)


Serve = Callable[..., AbstractContextManager[Served]]


def write(app: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = app / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
    return app


def settings(**more: Any) -> str:
    """`agent/agent.yml` with settings of the server beside those of every test."""
    keys = [
        {"name": "other", "key": OTHER, "user": "other"},
        {"name": "reader", "key": READER, "user": "reader", "scopes": ["chat"]},
    ]
    limits = {"limits": {"turns_per_minute": 10_000, "requests_per_minute": 100_000}}
    server = {**AGENT["server"], **limits, "auth": {"keys": keys}, **more}
    return json.dumps({"server": server})


@contextmanager
def serving(app: Path) -> Iterator[Served]:
    """Serve an app; the local key has every scope."""
    local = Key(id=id_of(LOCAL), hash=hash_of(LOCAL), name="local", user="local", scopes=ALL_SCOPES)
    found = settings_of(app).model_copy(update={"port": 0})
    opening = Opening(folder=app, host="127.0.0.1", local=local)
    with listen("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
        server = uvicorn.Server(config_of(opening, found))
        thread = threading.Thread(target=server.run, args=([sock],))
        thread.start()
        try:
            yield Served(f"http://127.0.0.1:{port}", app, server)
        finally:
            server.should_exit = True
            thread.join(20)
            assert not thread.is_alive()


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The app, with its rows loaded. Tests copy it or leave it as it is."""
    app = write(tmp_path_factory.mktemp("served") / "app", {**APP, "agent/agent.yml": settings()})
    groundhook = Path(sys.executable).with_name("groundhook")
    subprocess.run(
        [groundhook, "db", "load", "--app", str(app)],
        env={**SPARSE, "HOME": str(app.parent)},
        check=True,
        capture_output=True,
    )
    return app


@pytest.fixture(scope="session")
def served(filled: Path) -> Iterator[Served]:
    """One server for all tests that change nothing of it."""
    with serving(filled) as server:
        yield server


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """Serves the app with settings of the test's own, and further files."""

    @contextmanager
    def start(files: dict[str, str] | None = None, **more: Any) -> Iterator[Served]:
        app = write(tmp_path / "app", {**APP, "agent/agent.yml": settings(**more), **(files or {})})
        with serving(app) as server:
            yield server

    return start


def lines(answer: httpx.Response) -> list[dict[str, Any]]:
    """The events of an answer of JSON lines."""
    return [json.loads(line) for line in answer.iter_lines() if line]


def sse(answer: httpx.Response) -> list[tuple[int, str, dict[str, Any]]]:
    """The events of a stream: (id, name, data)."""
    found = []
    for block in "\n".join(answer.iter_lines()).split("\n\n"):
        fields = dict(
            line.split(": ", 1) for line in block.split("\n") if ": " in line and line[0] != ":"
        )
        if "data" in fields and "id" in fields:
            found.append((int(fields["id"]), fields["event"], json.loads(fields["data"])))
    return found
