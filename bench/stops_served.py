"""The app that `bench.stops` attacks, served by a process of its own, and a reader of its
`/healthz` in another process."""

from __future__ import annotations

import json
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpx

from bench.stops_hooks import CALLS, HOOK, NEXT, OWN, hooked
from bench.stops_services import SIZE, Said, services
from groundhook.core.types.uses import ENTITIES, USES

KEY = "k" * 40
STREAMED = {"accept": "text/event-stream"}


def _package(connector: str, **more: Any) -> str:
    return json.dumps({"name": connector, "connector": connector, "public": True, **more})


SCOPES = ["chat", "search", "chats", "author", "kb", "metrics"]
LIMITS = {"turns_per_minute": 10**6, "requests_per_minute": 10**6, "turns_at_once": 100}
WHO = {"user": "bench", "tenant": "tea"}
SERVER = {
    "auth": {"keys": [{"name": "bench", "key": KEY, **WHO, "scopes": SCOPES}]},
    "limits": LIMITS,
    "streams": {"linger_s": 0, "keep_s": 1},
    "drain_s": 0,
}
# Of a search; entities are extracted when a document is added.
ENGINES = ("tavily", "serper", "serpapi")  # of the web, beside SearXNG
STEPS = tuple(use for use in USES if use is not ENTITIES)
GROUNDHOOK = str(Path(sys.executable).with_name("groundhook"))
FILES = {
    "kb/notes.kb.yao": '{ "name": "Notes", "embedding": { "provider": "hash" } }',
    "kb/embedded.kb.yao": json.dumps(
        {"name": "E", "embedding": {"provider": "said", "model": "m", "dimensions": SIZE}}
    ),
    "kb/graph.kb.yao": json.dumps(
        {
            "name": "Graph",
            "embedding": {"provider": "hash"},
            "graph": True,
            "entities": {"extractor": "connector:model"},
        }
    ),
    "kb/kept.kb.yao": json.dumps(
        {"name": "Kept", "tenant_field": "who", "embedding": {"provider": "hash"}}
    ),
    "models/row.mod.yao": json.dumps(
        {
            "name": "Row",
            "table": {"name": "row"},
            "columns": [
                {"name": "id", "type": "ID"},
                {"name": "name", "type": "string"},
                {"name": "price", "type": "float"},
                {"name": "made", "type": "date"},
            ],
            "values": [{"id": 1, "name": "Assam", "price": 2.5, "made": "2026-01-02"}],
        }
    ),
    "assistants/open/package.yao": _package(
        "extractive", kb={"collections": ["notes"]}, search={"kb": True}
    ),
    "assistants/rows/package.yao": _package(
        "extractive", db={"models": ["row"]}, search={"db": True}
    ),
    "assistants/model/package.yao": _package(
        "model", kb={"collections": ["notes"]}, search={"kb": True}
    ),
    "assistants/claude/package.yao": _package("claude"),
    "assistants/next/package.yao": _package("model"),
    "assistants/next/index.ts": NEXT,
    "assistants/tools/package.yao": _package(
        "model", mcp={"servers": ["said"]}, options={"tool_rounds": 1}
    ),
    "assistants/web/package.yao": _package("extractive", search={"web": True}),
    **{
        f"assistants/web_{name}/package.yao": _package(
            "extractive", search={"web": {"provider": name}}
        )
        for name in ENGINES
    },
    ".env": "".join(f"{name.upper()}_API_KEY=none\n" for name in ENGINES),
    "assistants/asks/package.yao": _package(
        "model", mcp={"servers": ["said"]}, options={"confirm": ["*"]}
    ),
    "assistants/embedded/package.yao": _package(
        "extractive", kb={"collections": ["embedded"]}, search={"kb": True}
    ),
    "assistants/ranked/package.yao": _package(
        "extractive",
        kb={"collections": ["notes"]},
        search={
            "kb": True,
            "rerank": {"type": "model", "provider": "endpoint", "host": "$URL"},
        },
    ),
    "assistants/house/package.yao": _package(
        "model", tools=["documents"], options={"tool_rounds": 1}
    ),
    "assistants/house/toolkits/documents.toolkit.yao": json.dumps(
        {
            "type": "documents",
            "source": {"file": "summaries.jsonl"},
            "identity": {"member": "user_id", "partner": "user_id"},
        }
    ),
    "assistants/hooked/package.yao": _package(
        "extractive",
        mcp={"servers": ["said"]},
        kb={"collections": ["notes"]},
        db={"models": ["row"]},
        http={"hosts": ["$HOST"]},
        hooks={"limits": {"call_ms": 1000, "wall_ms": 4000}},
    ),
    "assistants/hooked/index.ts": HOOK,
    "assistants/hooked/src/own.ts": OWN,
    **{
        f"assistants/used_{use.name}/package.yao": _package(
            "extractive",
            kb={"collections": ["notes"]},
            db={"models": ["row"]},
            search={"kb": True, "db": True, "web": True},
            uses={use.name: "connector:model" if use.task else "mcp:said.say"},
        )
        for use in STEPS
    },
    "connectors/extractive.conn.yao": '{ "type": "extractive" }',
}


@dataclass(frozen=True)
class Stop:
    """The longest stop of the server during one attack: seconds of its computing, and as long as
    the reader waited."""

    name: str
    computing: float
    waited: float


@dataclass
class Campaign:
    """A server that is attacked. `said` is what its services answer."""

    client: httpx.Client
    beat: subprocess.Popen[str]
    said: Said
    folder: Path
    stops: list[Stop] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)  # types of events

    def attack(self, name: str, method: str, path: str, **request: Any) -> httpx.Response | None:
        """Send a request, and note the longest stop until it is answered."""
        answer = None
        self._worst()
        with suppress(httpx.HTTPError):  # a connection that is closed is an answer too
            answer = self.client.request(method, path, **request)
        computing, waited = self._worst()
        self.stops.append(Stop(name, computing, waited))
        if answer is not None and "event-stream" in answer.headers.get("content-type", ""):
            self.seen.update(re.findall(r"^event: (\S+)", answer.text, re.MULTILINE))
        return answer

    def add(self, name: str, path: Path) -> None:
        """Add documents to the collection while the server reads it."""
        self._worst()
        _run(self.folder, "kb", "add", "notes", str(path))
        self.stops.append(Stop(name, *self._worst()))

    def turn(self, assistant: str, text: str, name: str) -> httpx.Response | None:
        """Ask an assistant."""
        return self.attack(
            name,
            "POST",
            "/api/turns?trace=1",
            json={"assistant": assistant, "text": text, "search": assistant != "hooked"},
            headers=STREAMED,
        )

    def chat(self, assistant: str, texts: Sequence[str], name: str) -> str:
        """Ask an assistant in a new chat; return its id."""
        made = self.client.post("/api/chats", json={"assistant": assistant}).json()["id"]
        for text in texts:
            path = f"/api/chats/{made}/turns?trace=1"
            self.attack(name, "POST", path, json={"text": text}, headers=STREAMED)
        return str(made)

    def longest(self) -> list[Stop]:
        """The stops, the longest first."""
        return sorted(self.stops, key=lambda stop: -min(stop.computing, stop.waited))

    def _worst(self) -> tuple[float, float]:
        assert self.beat.stdin is not None
        assert self.beat.stdout is not None
        self.beat.stdin.write("\n")
        self.beat.stdin.flush()
        computing, waited = json.loads(self.beat.stdout.readline())
        return computing, waited


# ---- the server, its model, and the reader of /healthz


@contextmanager
def campaign(folder: Path, files: Mapping[str, str]) -> Iterator[Campaign]:
    """A served app in an empty folder, with files beside its own, and services that say what they
    are told to."""
    with services() as said:
        for name, text in _files(said.url, files).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        _run(folder, "kb", "add", "notes", str(folder / "notes"))
        _run(folder, "db", "load")
        with _served(folder) as (url, pid), beside("bench.stops_served", url, str(pid)) as beat:
            headers = {"authorization": f"Bearer {KEY}", "accept": "application/json"}
            with httpx.Client(base_url=url, headers=headers, timeout=120) as client:
                made = Campaign(client, beat, said, folder)
                _warm(made)
                yield made


def ollama(at: int) -> dict[str, str]:
    """Return a connector that asks for its model's window, and the assistant that uses it."""
    options = {"host": "$URL/v1", "model": "m", "key": "none", "retries": 0}
    return {
        f"connectors/ollama{at}.conn.yao": json.dumps({"type": "openai", "options": options}),
        f"assistants/ollama{at}/package.yao": _package(f"ollama{at}"),
    }


def _files(url: str, more: Mapping[str, str]) -> dict[str, str]:
    """Return the files of the app, whose services are at an address."""
    host = url.removeprefix("http://")
    web = {"provider": "searxng", "host": url, "fetch": 3, "cache": {"enabled": False}}
    web["breaker"] = {"failures": 0}
    search = {"web": {**web, "retries": 0, "pages": {"hosts": [host]}}}
    options = {"host": f"{url}/v1", "model": "m", "key": "none", "retries": 0}
    embedders = {"said": {"type": "openai", "host": f"{url}/v1", "retries": 0}}
    settings = {"server": SERVER, "search": search, "embedders": embedders}
    files = {
        name: text.replace("$URL", url).replace("$HOST", host)
        for name, text in {**FILES, **more}.items()
    }
    return {
        **files,
        "agent/agent.yml": json.dumps(settings),
        "mcps/said.mcp.yao": json.dumps({"transport": "http", "url": f"{url}/mcp"}),
        "connectors/model.conn.yao": json.dumps({"type": "openai", "options": options}),
        "connectors/claude.conn.yao": json.dumps(
            {"type": "anthropic", "options": {**options, "host": url}}
        ),
    }


def _run(folder: Path, *command: str) -> None:
    subprocess.run(
        [GROUNDHOOK, *command, "--app", str(folder)],
        check=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@contextmanager
def _served(folder: Path) -> Iterator[tuple[str, int]]:
    command = [GROUNDHOOK, "serve", "--app", str(folder), "--port", "0", "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["url"], process.pid
        finally:
            process.kill()


@contextmanager
def beside(module: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A module of the benches in a process beside this one, until the end."""
    with subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _warm(campaign: Campaign) -> None:
    """Ask until nothing is loaded for the first time."""
    while campaign.client.get("/readyz").json().get("warm") is False:
        time.sleep(0.1)
    for assistant in ("open", "rows", "model", "next", "tools", "web", "house"):
        campaign.turn(assistant, "How long does tea take?", f"warm {assistant}")
    for call in CALLS:
        campaign.turn("hooked", hooked(call, "a", 10), f"warm {call}")
    campaign.stops.clear()


def beat(url: str, pid: int) -> None:
    """Read /healthz without end. For each line of standard input print the longest stop since the
    last: [seconds of computing, seconds waited]."""
    server = HTTPConnection(url.removeprefix("http://"))
    worst, asked = (0.0, 0.0), False
    while True:
        began, computed = time.monotonic(), _computed(pid)
        server.request("GET", "/healthz")
        server.getresponse().read()
        stop = (_computed(pid) - computed, time.monotonic() - began)
        worst = max(worst, stop, key=min)
        if asked:
            print(json.dumps(worst), flush=True)
            worst = (0.0, 0.0)
        asked = bool(select.select([sys.stdin], [], [], 0.005)[0]) and bool(sys.stdin.readline())


def _computed(pid: int) -> float:
    """Return the seconds that the threads of a process have computed."""
    total = 0
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError):  # the thread has ended
            total += int(path.read_text().split()[0])
    return total / 1e9


if __name__ == "__main__":
    beat(sys.argv[1], int(sys.argv[2]))
