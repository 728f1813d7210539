"""How long a stranger can stop the server: `/healthz` is read the whole time while every body,
path, header, question, host call, answer of a model and document is pumped up to its limit.

    make bench NAME=stops

The server is a process of its own, and so is the reader of `/healthz`. A stop is the part of an
answer's delay that the server spent computing, so that other work of the machine does not count.
The floor is the longest stop of the same server while it answers ordinary questions. Prints JSON
lines {"figure", "value", "unit", "floor", "floor_is", "ratio"} on standard output, and the ten
longest stops on standard error.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
from pydantic import BaseModel

from bench.figures import figure
from groundhook.host.server.api.table import ENDPOINTS

KEY = "k" * 40
QUESTION = 250_000  # characters: almost the limit of a conversation
ARGUMENT = 900_000  # almost the limit of a host call's arguments
ANSWER = 1_000_000  # of a model
JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
LINE = 20_000  # of a path and of the headers
DOCUMENT = 20_000
# What a pattern or a parser may read again and again: blanks, brackets, marks, words of questions.
UNITS: tuple[str, ...] = tuple(
    json.loads(
        r"""[
    " ", "\n", "\t", "a", "a ", "a\n", "A", "1", "1,", "1 ", ".", "a.", ", ", "-", "- ",
    "- a\n", "_", "*", "**a ", "[", "]", "[a](", "![", "[a]: b\n", "{", "{a:", "{{", "(", "()",
    "<", "<a ", "<!--", "<p>", "<table><tr><td>", "<think>", "```a\n", "~~~", "`", "|", "> ",
    "# ", "=\n", "\\", "\"", "\\\"", "'", "/*", "//", "&", "&#", "$", "$CTX.", "@", ":", ": ",
    "a: ", "a: b\n", "#ref:a1b2 ", "#ref:", "http://a.b/", "www.", "a@b.c ", "and ", ", and ",
    "or ", "not ", "than 1 ", "in 2020 ", "between 1 and 2 ", "the ", "of the ", "last ",
    "how many ", "USER: ", "\nUSER:", "\u00e9", "\u3002", "\u7684", "\u0301", "\u200b",
    "\u202e", "\u00a0", "\u00df", "\u0130", "\r\n", "\u2028", "data: ", "\u001b[", "%", "%20",
    "+"
]"""
    )
)

HOOK = """
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
    metadata: () => ({ metadata: { text } }),
    fails: () => { throw new Error(text); },
  };
  let made: any = null;
  try { made = calls[call](); } catch (error) { if (call === "fails") throw error; }
  return { ...(call === "metadata" ? made : {}), search: false };
}
"""
CALLS: tuple[str, ...] = (
    *("json", "html", "markdown", "find", "get", "kb", "db", "where", "send", "card", "log"),
    *("locale", "memory", "name", "metadata", "fails"),
)


def _package(connector: str, **more: Any) -> str:
    return json.dumps({"name": connector, "connector": connector, "public": True, **more})


LIMITS = {"turns_per_minute": 10**6, "requests_per_minute": 10**6, "turns_at_once": 100}
FILES = {
    "agent/agent.yml": json.dumps(
        {
            "server": {
                "auth": {"keys": [{"name": "bench", "key": KEY, "user": "bench"}]},
                "limits": LIMITS,
                "streams": {"linger_s": 0, "keep_s": 1},
                "drain_s": 0,
            }
        }
    ),
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
    "assistants/hooked/package.yao": _package(
        "extractive",
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
class Campaign:
    """A server that is attacked. `said` is what its model answers."""

    client: httpx.Client
    beat: subprocess.Popen[str]
    said: list[bytes]
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
def campaign(folder: Path, units: Sequence[str] = UNITS) -> Iterator[Campaign]:
    """A served app in an empty folder, with a model that says what it is told to, and a document of
    each unit."""
    said: list[bytes] = []

    class Model(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            with suppress(OSError):  # the server has read enough
                for line in said or [b"data: [DONE]"]:
                    self.wfile.write(line + b"\n\n")

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as model:
        threading.Thread(target=model.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{model.server_address[1]}/v1"
        options = {"host": address, "model": "m", "key": "none"}
        files = {
            **FILES,
            "connectors/model.conn.yao": json.dumps({"type": "openai", "options": options}),
            **_documents(units),
        }
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        groundhook = str(Path(sys.executable).with_name("groundhook"))
        for command in (["kb", "add", "notes", str(folder / "notes")], ["db", "load"]):
            subprocess.run(
                [groundhook, *command, "--app", str(folder)], check=False, stdout=sys.stderr
            )
        try:
            with _served(groundhook, folder) as (url, pid), _beating(url, pid) as beat:
                headers = {"authorization": f"Bearer {KEY}", "accept": "application/json"}
                with httpx.Client(base_url=url, headers=headers, timeout=120) as client:
                    made = Campaign(client, beat, said)
                    _warm(made)
                    yield made
        finally:
            model.shutdown()


@contextmanager
def _served(groundhook: str, folder: Path) -> Iterator[tuple[str, int]]:
    command = [groundhook, "serve", "--app", str(folder), "--port", "0", "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["url"], process.pid
        finally:
            process.kill()


@contextmanager
def _beating(url: str, pid: int) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-m", "bench.stops", "beat", url, str(pid)],
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
    for assistant in ("open", "rows", "model"):
        campaign.turn(assistant, "How long does tea take?", "warm")
    for call in CALLS:
        campaign.turn("hooked", _hooked(call, "a", 10), "warm")
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


# ---- attacks

# What a body needs beside the value that is pumped.
BASES: Mapping[str, Mapping[str, Any]] = {
    "/api/turns": {"text": "?"},
    "/api/chats/{chat}/turns": {"text": "?"},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "?"}]},
}


def pumped(unit: str, size: int) -> str:
    """Return a unit again and again, `size` characters."""
    return unit * (size // len(unit))


def attack_all(campaign: Campaign, units: Sequence[str] = UNITS) -> None:
    """Run every attack with every unit."""
    for unit in units:
        for attack in (bodies, addresses, questions, host_calls, answers):
            attack(campaign, unit)


def bodies(campaign: Campaign, unit: str) -> None:
    """Each text of each body, and the body as it is."""
    text = pumped(unit, QUESTION)
    for endpoint in ENDPOINTS:
        if endpoint.body is None or endpoint.path == "/api/session":
            continue
        for keys in _texts(endpoint.body):
            body = _with({**_plain(endpoint.body), **BASES.get(endpoint.path, {})}, keys, text)
            campaign.attack(
                f"{endpoint.path} {'.'.join(keys)} {unit!r}",
                endpoint.method,
                _address(endpoint.path),
                json=body,
            )
    for path in ("/api/session", "/api/turns", "/mcp"):
        raw = pumped(unit, ANSWER).encode()
        campaign.attack(f"{path} body {unit!r}", "POST", path, content=raw, headers=JSON)


def addresses(campaign: Campaign, unit: str) -> None:
    """Each parameter of each path, queries, and headers."""
    text = quote(pumped(unit, LINE // len(quote(unit, safe=""))), safe="")
    for endpoint in ENDPOINTS:
        if endpoint.method == "GET" and "{" in endpoint.path:
            campaign.attack(f"{endpoint.path} {unit!r}", "GET", _address(endpoint.path, text))
    for path in ("/api/chats?q=", "/api/tools?assistant=", "/api/turns/x/events?events="):
        campaign.attack(f"{path} {unit!r}", "GET", path + text)
    for name in ("accept", "cookie", "user-agent", "x-forwarded-for", "x-openwebui-user-id"):
        value = pumped(unit, LINE).encode("latin-1", "ignore").strip()
        if value and not set(b"\r\n\0") & set(value):
            campaign.attack(f"{name} {unit!r}", "GET", "/api/me", headers={name.encode(): value})


def questions(campaign: Campaign, unit: str) -> None:
    """Questions to each kind of source, and tasks of Open WebUI."""
    text = pumped(unit, QUESTION)
    for assistant in ("open", "rows", "model"):
        for question in (text, f"What are the hours{text}on monday?"):
            campaign.turn(assistant, question, f"question to {assistant} {unit!r}")
    for kind, more in (("kb", {"collections": ["notes"]}), ("db", {"models": ["row"]})):
        for name in ("query", "document", "filter"):
            value = {"k": text} if name == "filter" else text
            body = {"type": kind, "query": "tea", name: value, **more}
            body["assistant"] = "rows" if kind == "db" else "open"
            campaign.attack(f"search {kind} {name} {unit!r}", "POST", "/api/search", json=body)
    chat = {"role": "user", "content": f'### Task:\n"title"{text}'}
    campaign.attack(
        f"a task of Open WebUI {unit!r}",
        "POST",
        "/v1/chat/completions",
        json={"model": "open", "messages": [chat]},
        headers={"x-openwebui-user-id": "u"},
    )


def host_calls(campaign: Campaign, unit: str, calls: Sequence[str] = CALLS) -> None:
    """Each call of a hook."""
    for call in calls:
        campaign.turn("hooked", _hooked(call, unit, ARGUMENT), f"{call} of a hook {unit!r}")


def answers(campaign: Campaign, unit: str) -> None:
    """Answers of a model: its text in one piece and in many, its thoughts, a tool, what is no
    event."""
    text = pumped(unit, ANSWER)
    calls = [{"index": 0, "id": "c", "function": {"name": "search", "arguments": text}}]
    pieces = [text[at : at + 200] for at in range(0, len(text) // 4, 200)]
    spoken: dict[str, list[dict[str, Any]]] = {
        "text": [{"content": text}],
        "pieces": [{"content": piece} for piece in pieces],
        "thoughts": [{"reasoning_content": text}],
        "tool": [{"tool_calls": calls}],
    }
    for name, said in spoken.items():
        lines = [_chunk(delta) for delta in said]
        lines.append(_chunk({}, finish_reason="stop"))
        campaign.said[:] = [*lines, b"data: [DONE]"]
        campaign.turn("model", "How long does tea take?", f"{name} of a model {unit!r}")
    for columns, size in ((0, ANSWER), (0, 90_000), (2, 40_000), (99, 3_000)):
        head = f"{'|a' * columns}|\n{'|-' * columns}|\n" if columns else ""
        campaign.said[:] = [_chunk({"content": head + text[:size]}), b"data: [DONE]"]
        campaign.attack(
            f"{size} of {unit!r} in {columns} columns as blocks",
            "POST",
            "/api/turns?view=blocks",
            json={"assistant": "model", "text": "How long does tea take?"},
            headers={"accept": "text/event-stream"},
        )
    campaign.said[:] = [b"data: " + text.encode()]
    campaign.turn("model", "How long does tea take?", f"no event of a model {unit!r}")
    campaign.said.clear()


def documents(campaign: Campaign, units: Sequence[str] = UNITS) -> None:
    """Each document that was added, as a browser sees it, and questions that find it."""
    for name in _documents(units):
        path = f"/api/sources/kb/notes/{Path(name).name}"
        campaign.attack(f"page of {name}", "GET", path, headers={"accept": "text/html"})
        word = Path(name).stem
        campaign.turn("open", f"What is {word}?", f"question that finds {name}")


def ordinary(campaign: Campaign) -> None:
    """What people ask."""
    for _ in range(3):
        for assistant in ("open", "rows"):
            campaign.turn(assistant, "How long does black tea take?", "ordinary")


def _documents(units: Sequence[str]) -> dict[str, str]:
    return {
        f"notes/word{at}.md": f"About word{at}: tea takes minutes. {pumped(unit, DOCUMENT)}"
        for at, unit in enumerate(units)
    }


def _hooked(call: str, unit: str, size: int) -> str:
    return json.dumps({"call": call, "unit": unit, "size": size})


def _chunk(delta: Mapping[str, Any], **more: Any) -> bytes:
    chunk = {"id": "x", "model": "m", "choices": [{"index": 0, "delta": delta, **more}]}
    return b"data: " + json.dumps(chunk).encode()


def _address(path: str, text: str = "x") -> str:
    """Return a path with a text for each of its parameters."""
    return "/".join(text if part.startswith("{") else part for part in path.split("/"))


def _texts(model: type[BaseModel], before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths to the texts and open values of a body."""
    for name, described in model.model_fields.items():
        kind = described.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _texts(kind, (*before, name))
        elif any(word in str(kind) for word in ("str", "dict", "list", "tuple")):
            yield (*before, name)


def _plain(model: type[BaseModel]) -> dict[str, Any]:
    plain = {"assistant": "open", "model": "open", "query": "tea", "type": "kb"}
    return {name: value for name, value in plain.items() if name in model.model_fields}


def _with(body: dict[str, Any], path: Sequence[str], text: str) -> dict[str, Any]:
    value: Any = text
    if path[-1] == "messages":
        value = [{"role": "user", "content": text}]
    elif path[-1] in ("metadata", "filter"):
        value = {"k": text}
    elif path[-1] in ("content", "sources", "wheres", "orders", "aggregates", "about"):
        value = [{"type": "text", "text": text}]
    for key in reversed(path[1:]):
        value = {key: value}
    if path[0] in ("messages", "content"):
        body.pop("text", None)
    return {**body, path[0]: value}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, campaign(Path(folder)) as made:
        ordinary(made)
        floor = made.longest()[0]
        made.stops.clear()
        documents(made)
        attack_all(made)
        longest = made.longest()
        for stop in longest[:10]:
            print(f"{stop.computing:.3f} s of {stop.waited:.3f} s: {stop.name}", file=sys.stderr)
        figure(
            f"the longest stop of the server in {len(longest)} attacks",
            1000 * min(longest[0].computing, longest[0].waited),
            "ms",
            1000 * min(floor.computing, floor.waited),
            "with ordinary questions",
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["beat"]:
        beat(sys.argv[2], int(sys.argv[3]))
    else:
        main()
