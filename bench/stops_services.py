"""The services that the app of `bench.stops` asks, in one server: a model, a model of vectors, a
reranker, an MCP server, a web search and its pages. They answer what the campaign has set."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SIZE = 8  # numbers of a vector
_ANSWER = [
    b'data: {"choices": [{"delta": {"content": "Four minutes."}, "finish_reason": "stop"}]}',
    b"data: [DONE]",
]


@dataclass
class Said:
    """What the services answer: the lines of the model, or its answer as one object; the result of
    the tool of the MCP server, and what it reports before it; the results of the web search; the
    pages that these name, by path, with their types; bodies of answers by path, in place of the
    vectors and rankings that are right."""

    lines: list[bytes] = field(default_factory=list)
    whole: bytes = b""
    result: dict[str, Any] = field(default_factory=dict)
    progress: str = ""
    found: dict[str, Any] = field(default_factory=lambda: {"results": []})
    pages: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    bodies: dict[str, bytes] = field(default_factory=dict)
    url: str = ""

    def clear(self) -> None:
        """Answer nothing again."""
        self.lines.clear()
        self.bodies.clear()
        self.result, self.whole, self.progress = {}, b"", ""


@contextmanager
def services() -> Iterator[Said]:
    """The server, for the block."""
    said = Said()
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), type("Answering", (_Answering,), {"said": said})
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        said.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield said
        finally:
            server.shutdown()


class _Answering(BaseHTTPRequestHandler):
    said: Said

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        path = self.path.partition("?")[0]
        if path in self.said.bodies:
            self._send("application/json", self.said.bodies[path])
        elif path == "/search":
            self._send("application/json", json.dumps(self.said.found).encode())
        elif path == "/mcp":
            self._answer_call(json.loads(body))
        elif path in _RIGHT:
            self._send("application/json", json.dumps(_RIGHT[path](json.loads(body))).encode())
        elif path in self.said.pages:
            self._send(*self.said.pages[path])
        elif self.said.whole:
            self._send("application/json", self.said.whole)
        else:
            self._stream([line + b"\n\n" for line in self.said.lines or _ANSWER])

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path in self.said.bodies:
            self._send("application/json", self.said.bodies[path])
        elif path == "/search":
            self._send("application/json", json.dumps(self.said.found).encode())
        elif path in self.said.pages:
            self._send(*self.said.pages[path])
        else:
            self._send("text/plain", b"", 404)

    do_PUT = do_PATCH = do_DELETE = do_POST  # noqa: N815
    do_HEAD = do_GET  # noqa: N815

    def _answer_call(self, call: dict[str, Any]) -> None:
        if "id" not in call:
            self._send("text/plain", b"", 202)
            return
        given = call.get("params", {})
        result = _results(given, self.said.result).get(call["method"], {})
        answer = {"jsonrpc": "2.0", "id": call["id"], "result": result}
        token = given.get("_meta", {}).get("progressToken")
        if token is None or not self.said.progress:
            self._send("application/json", json.dumps(answer).encode())
            return
        params = {"progressToken": token, "progress": 1, "message": self.said.progress}
        step = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
        self._stream([b"data: " + json.dumps(each).encode() + b"\n\n" for each in (step, answer)])

    def _stream(self, pieces: list[bytes]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        with suppress(OSError):  # the server has read enough
            for piece in pieces:
                self.wfile.write(piece)

    def _send(self, media_type: str, body: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("content-type", media_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(b"" if self.command == "HEAD" else body)

    def log_message(self, *_: Any) -> None:
        pass


def _results(given: Mapping[str, Any], called: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results of the MCP server's methods."""
    tool = {"name": "say", "description": "Says it.", "inputSchema": {"type": "object"}}
    text = json.dumps(called)
    return {
        "initialize": {
            "protocolVersion": given.get("protocolVersion"),
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
            "serverInfo": {"name": "said", "version": "1"},
        },
        "tools/list": {"tools": [tool]},
        "tools/call": called,
        "resources/list": {"resources": [{"uri": "a:b", "name": text[:100_000]}]},
        "resources/read": {"contents": [{"uri": "a:b", "mimeType": "text/html", "text": text}]},
        "prompts/list": {"prompts": [{"name": "p", "description": text[:100_000]}]},
        "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]},
    }


def _vectors(asked: Mapping[str, Any]) -> dict[str, Any]:
    rows = [{"index": n, "embedding": [1.0 + n % 7] * SIZE} for n in range(len(asked["input"]))]
    return {"data": rows}


def _ranking(asked: Mapping[str, Any]) -> dict[str, Any]:
    rows = [{"index": n, "relevance_score": 0.5} for n in range(len(asked["documents"]))]
    return {"results": rows}


_RIGHT = {"/v1/embeddings": _vectors, "/rerank": _ranking}
