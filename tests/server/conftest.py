"""A server over a small app on loopback: in a thread of its own with files of SQLite, and as two
processes that share a PostgreSQL database."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from textwrap import dedent
from typing import Any

import httpx
import pytest
import uvicorn

from groundhook.core.app_settings import StoreSettings
from groundhook.host.chats.storage.opening import open_storage
from groundhook.host.chats.tables import CHATS
from groundhook.host.server.asgi import ServerArguments, settings_of
from groundhook.host.server.identity.caller import ALL_SCOPES
from groundhook.host.server.identity.keys import Key, hash_of, id_of, make_key
from groundhook.host.server.process import config_of, listen
from tests.loopback.databases import own_schema
from tests.parts.command import StartedCommand, run_command, start_command

LOCAL = make_key()
OTHER = make_key()
READER = make_key()
LONGEST_HIDDEN = 500  # characters of what no server may send

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
          return { metadata: { received: messages, user: ctx.authorized, chat: ctx.chat_id, client: ctx.client } };
        }
        """
    ),
}
AGENT = {"server": {"auth": {"keys": []}, "allow": {"connectors": ["slow"]}, "drain_s": 0}}
KINDS = ("sqlite", "postgresql")
GROUNDHOOK = str(Path(sys.executable).with_name("groundhook"))
SPARSE = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}


@dataclass(frozen=True)
class Served:
    """A server that answers at an address; with `ports` it is several processes, whose requests are
    spread as by a proxy in front of them."""

    url: str
    app: Path
    ports: tuple[int, ...] = ()

    def client(self, key: str = LOCAL, **headers: str) -> httpx.Client:
        given = {"authorization": f"Bearer {key}"} if key else {}
        return httpx.Client(
            base_url=self.url,
            headers={**given, **headers},
            timeout=60,
            transport=Scanned(
                Spread(self.ports) if self.ports else httpx.HTTPTransport(), self.app
            ),
        )


class Spread(httpx.HTTPTransport):
    """Sends each request to the next process."""

    def __init__(self, ports: Sequence[int]) -> None:
        super().__init__()
        self._ports = cycle(ports)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.url = request.url.copy_with(port=next(self._ports))  # the Host header stays
        return super().handle_request(request)


class Scanned(httpx.BaseTransport):
    """Fails a test whose server sends the folder of the app, or a key, in any head or body."""

    def __init__(self, inner: httpx.BaseTransport, app: Path) -> None:
        self._inner = inner
        self._hidden = [str(app).encode(), *(key.encode() for key in (LOCAL, OTHER, READER))]

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._inner.handle_request(request)
        self._scan(b"\n".join(value for _, value in answer.headers.raw))
        assert isinstance(answer.stream, httpx.SyncByteStream)
        answer.stream = ScannedBody(answer.stream, self._scan)
        return answer

    def close(self) -> None:
        self._inner.close()

    def _scan(self, sent: bytes) -> None:
        for hidden in self._hidden:
            assert hidden not in sent, f"the server sent {hidden!r}: {sent!r}"


class ScannedBody(httpx.SyncByteStream):
    """A body that is scanned as it arrives, with the end of the part before each part."""

    def __init__(self, inner: httpx.SyncByteStream, scan: Callable[[bytes], None]) -> None:
        self._inner, self._scan = inner, scan

    def __iter__(self) -> Iterator[bytes]:
        before = b""
        for part in self._inner:
            self._scan(before + part)
            before = (before + part)[-LONGEST_HIDDEN:]
            yield part

    def close(self) -> None:
        self._inner.close()


Serve = Callable[..., AbstractContextManager[Served]]


def write(app: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = app / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
    return app


def settings(store: dict[str, str] | None = None, **more: Any) -> str:
    """`agent/agent.yml` with settings of the server beside those of every test."""
    keys = [
        {"name": "other", "key": OTHER, "user": "other"},
        {"name": "reader", "key": READER, "user": "reader", "scopes": ["chat"]},
    ]
    limits = {"limits": {"turns_per_minute": 10_000, "requests_per_minute": 100_000}}
    server = {**AGENT["server"], **limits, "auth": {"keys": keys}, **more}
    return json.dumps({"server": server, "store": store or {}})


@contextmanager
def serving(app: Path, *, reload: bool = False, workers: int = 1) -> Iterator[Served]:
    """Serve an app; the local key has every scope. `workers`: how many processes it believes to
    be; this is one."""
    local = Key(id=id_of(LOCAL), hash=hash_of(LOCAL), name="local", user="local", scopes=ALL_SCOPES)
    found = settings_of(app).model_copy(update={"port": 0})
    arguments = ServerArguments(
        folder=app, host="127.0.0.1", local=local, reload=reload, workers=workers
    )
    with listen("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
        server = uvicorn.Server(config_of(arguments, found))
        thread = threading.Thread(target=server.run, args=([sock],))
        thread.start()
        try:
            yield Served(f"http://127.0.0.1:{port}", app)
        finally:
            server.should_exit = True
            thread.join(60)
            assert not thread.is_alive()


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The app, with its rows loaded. Tests copy it or leave it as it is."""
    app = write(tmp_path_factory.mktemp("served") / "app", {**APP, "agent/agent.yml": settings()})
    load_rows(app)
    return app


def load_rows(app: Path) -> None:
    """`groundhook db load`."""
    code, _, errors = run_command(
        ("db", "load"), folder=app, environment={"HOME": str(app.parent)}, stdin=b""
    )
    assert code == 0, errors


@contextmanager
def started(
    app: Path, *more: str
) -> Iterator[tuple[StartedCommand | subprocess.Popen[str], dict[str, Any]]]:
    """`groundhook serve`: the process, and the line that it prints when it serves."""
    with start_command(
        ["serve", "--app", str(app), "--port", "0", "--json", *more],
        folder=app.parent,
        environment={"HOME": str(app.parent)},
        fork="--workers" not in more,  # which start anew what started them
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, process.stderr and process.stderr.read()
            yield process, json.loads(line)
        finally:
            process.kill()


@contextmanager
def two_processes(app: Path) -> Iterator[Served]:
    """The app served by two processes, spoken to as one server."""
    with ExitStack() as running:
        lines = [running.enter_context(started(app))[1] for _ in range(2)]
        ports = tuple(int(line["url"].rpartition(":")[2]) for line in lines)
        yield Served(lines[0]["url"], app, ports)


@contextmanager
def store_of(kind: str, request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """The settings of a store that has nothing yet."""
    if kind == "sqlite":
        yield {}
        return
    with own_schema(request.getfixturevalue("postgresql")) as url:
        yield {"url": url}


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    with store_of(request.param, request) as settings:
        yield settings


@pytest.fixture(scope="session")
def one_process(filled: Path) -> Iterator[Served]:
    with serving(filled) as server:
        yield server


@pytest.fixture(scope="session")
def two_on_postgresql(request: pytest.FixtureRequest, filled: Path) -> Iterator[Served]:
    with store_of("postgresql", request) as store:
        app = shutil.copytree(filled, filled.parent / "shared")
        local = {"name": "local", "key": LOCAL, "user": "local", "scopes": list(ALL_SCOPES)}
        written = json.loads(settings(store))
        written["server"]["auth"]["keys"].append(local)
        write(app, {"agent/agent.yml": json.dumps(written)})
        with two_processes(app) as server:
            yield server


@pytest.fixture(params=["one_process", "two_on_postgresql"])
def served(request: pytest.FixtureRequest) -> Served:
    """One server for all tests that change nothing of it."""
    found: Served = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """Serves the app with settings of the test's own, and further files."""

    @contextmanager
    def start(files: dict[str, str] | None = None, **more: Any) -> Iterator[Served]:
        app = write(tmp_path / "app", {**APP, "agent/agent.yml": settings(**more), **(files or {})})
        with serving(app) as server:
            yield server

    return start


def end_leases(app: Path, store: dict[str, str]) -> None:
    """Move the leases of turns under way into the past, instead of waiting for their end."""
    file = app / ".groundhook/chats.sqlite"
    with (
        open_storage(StoreSettings.model_validate(store), file, [CHATS], noun="the chats") as rows,
        rows.writing() as sql,
    ):
        sql.change("update turns set lease_until = 1 where state = 'running'")


def until_limited(send: Callable[[], httpx.Response]) -> httpx.Response:
    """The first answer that is 429: a request more may pass where a minute of the counter ends."""
    answers = (send() for _ in range(4))
    return next(answer for answer in answers if answer.status_code == 429)


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
