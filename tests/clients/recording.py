"""What a client sent to a server, recorded on the way and sent again later. Ids that the server made
are placeholders, in the order in which they first came: `{id0}`."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

IDS = re.compile(r"(?<![0-9A-Za-z])[tm]_[0-9a-f]{12,24}(?![0-9a-f])")
SENT = ("accept", "content-type", "user-agent")  # headers that are recorded


@dataclass
class Ids:
    """The ids that a server has made so far."""

    seen: list[str] = field(default_factory=list)

    def note(self, answer: str) -> None:
        for id in IDS.findall(answer):
            if id not in self.seen:
                self.seen.append(id)

    def hide(self, text: str) -> str:
        for n, id in enumerate(self.seen):
            text = text.replace(id, f"{{id{n}}}")
        return text

    def show(self, text: str) -> str:
        for n, id in enumerate(self.seen):
            text = text.replace(f"{{id{n}}}", id)
        return text


@contextmanager
def recorder(target: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server in front of another: its address, and what was sent to it."""
    sent: list[dict[str, Any]] = []
    ids = Ids()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {
                name: value
                for name, value in self.headers.items()
                if name.lower() not in ("host", "connection", "accept-encoding")
            }
            with httpx.Client(timeout=60) as client:
                answer = client.request(
                    self.command, f"{target}{self.path}", content=body, headers=headers
                )
            entry = {
                "method": self.command,
                "path": ids.hide(self.path),
                "headers": {name: self.headers[name] for name in SENT if name in self.headers},
                "body": json.loads(ids.hide(body.decode())) if body else None,
                "status": answer.status_code,
            }
            sent.append(entry)
            ids.note(answer.text)
            self.send_response(answer.status_code)
            for name, value in answer.headers.items():
                if name not in ("content-length", "transfer-encoding", "connection", "date"):
                    self.send_header(name, value)
            self.send_header("content-length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        do_GET = do_POST = _pass  # noqa: N815 - the names that the base class calls

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", sent
        finally:
            server.shutdown()
            thread.join()


def replay(client: httpx.Client, recorded: list[Mapping[str, Any]]) -> list[httpx.Response]:
    """Send recorded requests again, in order; return the answers."""
    ids, answers = Ids(), []
    for entry in recorded:
        body = entry["body"]
        answer = client.request(
            entry["method"],
            ids.show(entry["path"]),
            headers=entry["headers"],
            content=ids.show(json.dumps(body)) if body is not None else None,
        )
        ids.note(answer.text)
        answers.append(answer)
    return answers
