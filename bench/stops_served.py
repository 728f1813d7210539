"""The app that `bench.stops` attacks, served by a process of its own, the services that it asks,
and a reader of its `/healthz` in another process."""

from __future__ import annotations

import json
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

KEY = "k" * 40
HOOK = """
const RETURNED = ["metadata", "says", "data", "options"];

export function Create(ctx: any, messages: any[]) {
  const { call, unit, size } = JSON.parse(messages[messages.length - 1].content);
  const text = unit.repeat(size / unit.length);
  const calls: any = {
    json: () => Process("text.ExtractJSON", text),
    html: () => Process("text.HTMLToMarkdown", text),
    markdown: () => Process("text.MarkdownToHTML", text),
    find: () => Process("models.row.Find", text),
    get: () => Process("models.row.Get", { wheres: [{ field: "name", op: "match", value: text }] }),
    kb: () => ctx.search.KB(text),
    db: () => ctx.search.DB(text),
    where: () => ctx.search.DB("rows", { wheres: [{ field: "name", value: text }] }),
    send: () => ctx.Send({ type: "text", props: { content: text } }),
    card: () => ctx.Send({ type: "card", props: { [text]: text } }),
    log: () => console.log(text),
    locale: () => $L(text),
    memory: () => { ctx.memory.user.Set("k", text); ctx.memory.user.Get("k"); },
    name: () => Process(text),
    web: () => ctx.search.Web(text),
    mcp: () => ctx.mcp.CallTool("said", "say", { text }),
    many: () => { for (let n = 0; n < 3000; n++) ctx.Send(text.slice(0, 200)); },
    grows: () => {
      const id = ctx.SendStream("x");
      for (let n = 0; n < 3000; n++) ctx.Append(id, text.slice(0, 200));
    },
    sets: () => {
      const id = ctx.SendStream({ type: "card", props: {} });
      ctx.Merge(id, { [text]: [text] });
      ctx.Set(id, text, text.slice(0, 1000));
      ctx.Replace(id, text);
    },
    block: () => ctx.Send({ type: text, props: { content: "x" } }, text),
    trace: () => ctx.trace.Add({ text }, { label: text, type: text }),
    logs: () => { for (let n = 0; n < 3000; n++) console.log(text.slice(0, 200)); },
    says: () => ({ messages: ["assistant", "user"].map((role) => ({ role, content: text })) }),
    data: () => {
      const sources = [{ type: "text", name: text, text }];
      const content = [{ type: "text", text }, { type: "data", data: { sources } }];
      return { messages: [{ role: "user", content }] };
    },
    options: () => ({ locale: text, prompt_preset: text, connector: text, uses: { web: text } }),
    metadata: () => ({ metadata: { text } }),
    fails: () => { throw new Error(text); },
  };
  let made: any = null;
  try { made = calls[call](); } catch (error) { if (call === "fails") throw error; }
  return { ...(RETURNED.includes(call) ? made : {}), search: false };
}
"""
CALLS: tuple[str, ...] = (
    *("json", "html", "markdown", "find", "get", "kb", "db", "where", "send", "card", "log"),
    *("locale", "memory", "name", "metadata", "fails", "web", "mcp", "sets", "block", "trace"),
    *("says", "data", "options"),
)
OFTEN = ("many", "grows", "logs")  # each makes thousands of calls
NEXT = """
export function Next(ctx: any, payload: any) {
  const text = payload.completion.content;
  return { data: { [text]: [text] }, metadata: { text } };
}
"""


def _package(connector: str, **more: Any) -> str:
    return json.dumps({"name": connector, "connector": connector, "public": True, **more})


LIMITS = {"turns_per_minute": 10**6, "requests_per_minute": 10**6, "turns_at_once": 100}
SERVER = {
    "auth": {"keys": [{"name": "bench", "key": KEY, "user": "bench"}]},
    "limits": LIMITS,
    "streams": {"linger_s": 0, "keep_s": 1},
    "drain_s": 0,
}
GROUNDHOOK = str(Path(sys.executable).with_name("groundhook"))
FILES = {
    "kb/notes.kb.yao": '{ "name": "Notes", "embedding": { "provider": "hash" } }',
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
    "assistants/next/package.yao": _package("model"),
    "assistants/next/index.ts": NEXT,
    "assistants/tools/package.yao": _package(
        "model", mcp={"servers": ["said"]}, options={"tool_rounds": 1}
    ),
    "assistants/web/package.yao": _package("extractive", search={"web": True}),
    "assistants/house/package.yao": _package("extractive", tools=["documents"]),
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
        hooks={"limits": {"call_ms": 1000, "wall_ms": 2000}},
    ),
    "assistants/hooked/index.ts": HOOK,
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
class Said:
    """What the services of the app answer: the lines of its model; the result of the tool of its
    MCP server; the results of its web search; the pages that these name, by path, with their types.
    """

    lines: list[bytes] = field(default_factory=list)
    result: dict[str, Any] = field(default_factory=dict)
    found: dict[str, Any] = field(default_factory=lambda: {"results": []})
    pages: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    url: str = ""


@dataclass
class Campaign:
    """A server that is attacked. `said` is what its services answer."""

    client: httpx.Client
    beat: subprocess.Popen[str]
    said: Said
    folder: Path
    stops: list[Stop] = field(default_factory=list)

    def attack(self, name: str, method: str, path: str, **request: Any) -> httpx.Response | None:
        """Send a request, and note the longest stop until it is answered."""
        answer = None
        self._worst()
        with suppress(httpx.HTTPError):  # a connection that is closed is an answer too
            answer = self.client.request(method, path, **request)
        computing, waited = self._worst()
        self.stops.append(Stop(name, computing, waited))
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
            "/api/turns",
            json={"assistant": assistant, "text": text, "search": True}
            | ({"search": False} if assistant == "hooked" else {}),
        )

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
    said = Said()
    with ThreadingHTTPServer(("127.0.0.1", 0), _answering(said)) as services:
        threading.Thread(target=services.serve_forever, daemon=True).start()
        said.url = f"http://127.0.0.1:{services.server_address[1]}"
        for name, text in {**_files(said.url), **files}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        _run(folder, "kb", "add", "notes", str(folder / "notes"))
        _run(folder, "db", "load")
        try:
            with _served(folder) as (url, pid), beside("bench.stops_served", url, str(pid)) as beat:
                headers = {"authorization": f"Bearer {KEY}", "accept": "application/json"}
                with httpx.Client(base_url=url, headers=headers, timeout=120) as client:
                    made = Campaign(client, beat, said, folder)
                    _warm(made)
                    yield made
        finally:
            services.shutdown()


def _files(url: str) -> dict[str, str]:
    """Return the files of the app, whose services are at an address."""
    host = url.removeprefix("http://")
    web = {"provider": "searxng", "host": url, "fetch": 3, "cache": {"enabled": False}}
    search = {"web": {**web, "retries": 0, "pages": {"hosts": [host]}}}
    options = {"host": f"{url}/v1", "model": "m", "key": "none"}
    return {
        **FILES,
        "agent/agent.yml": json.dumps({"server": SERVER, "search": search}),
        "mcps/said.mcp.yao": json.dumps({"transport": "http", "url": f"{url}/mcp"}),
        "connectors/model.conn.yao": json.dumps({"type": "openai", "options": options}),
    }


def _answering(said: Said) -> type[BaseHTTPRequestHandler]:
    """Return the model, the MCP server, the web search and its pages."""

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.path == "/mcp":
                self._answer_call(json.loads(body))
                return
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            with suppress(OSError):  # the server has read enough
                for line in said.lines or [b"data: [DONE]"]:
                    self.wfile.write(line + b"\n\n")

        def do_GET(self) -> None:
            if self.path.startswith("/search"):
                self._send("application/json", json.dumps(said.found).encode())
            elif self.path in said.pages:
                self._send(*said.pages[self.path])
            else:
                self._send("text/plain", b"", 404)

        def _answer_call(self, call: dict[str, Any]) -> None:
            tool = {"name": "say", "description": "Says it.", "inputSchema": {"type": "object"}}
            results: dict[str, Any] = {
                "initialize": {
                    "protocolVersion": call.get("params", {}).get("protocolVersion"),
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "said", "version": "1"},
                },
                "tools/list": {"tools": [tool]},
                "tools/call": said.result,
            }
            if "id" not in call:
                self._send("text/plain", b"", 202)
                return
            answer = {"jsonrpc": "2.0", "id": call["id"], "result": results.get(call["method"], {})}
            self._send("application/json", json.dumps(answer).encode())

        def _send(self, media_type: str, body: bytes, status: int = 200) -> None:
            self.send_response(status)
            self.send_header("content-type", media_type)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    return Answering


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
        campaign.turn(assistant, "How long does tea take?", "warm")
    for call in CALLS:
        campaign.turn("hooked", hooked(call, "a", 10), "warm")
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


def hooked(call: str, unit: str, size: int) -> str:
    """Return the question with which the assistant `hooked` runs a call."""
    return json.dumps({"call": call, "unit": unit, "size": size})


if __name__ == "__main__":
    beat(sys.argv[1], int(sys.argv[2]))
