"""The server that is attacked: its app and its limits."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from tests.server.conftest import APP, Served

FORGED = (
    "\n\nevent: error\ndata: {}\n\nid: 99\rdata: [DONE]\r\n\r\n\u2028data: x\u0085"
    "<script>alert(1)</script> ![a](http://evil.example/?q) #ref:zzzz \u001b[31m"
)


FILES = {
    **APP,
    "connectors/forges.conn.yao": json.dumps(
        {"type": "scripted", "options": {"script": [{"text": FORGED, "times": 0}]}}
    ),
    "assistants/forges/package.yao": '{ "name": "Forges", "connector": "forges" }',
    "assistants/prints/package.yao": (
        '{ "name": "Prints", "connector": "titles", "hooks": { "limits": { "wall_ms": 5000 } } }'
    ),
    "assistants/prints/index.ts": (
        """\
        function Create(ctx: any) {
          const text = "x".repeat(20000);
          while (true) ctx.Send({ type: "text", props: { content: text } });
        }
        """
    ),
    "assistants/throws/package.yao": '{ "name": "Throws", "connector": "titles" }',
    "assistants/throws/index.ts": (
        """\
        function Create(ctx: any) { throw new Error("the secret of the prompt"); }
        """
    ),
}


LIMITS = {
    "turns_per_minute": 100_000,
    "requests_per_minute": 1_000_000,
    "turns_at_once": 500,
    "turns_in_all": 500,
    "streams_at_once": 2500,
    "body_kb": 64,
    "body_s": 0.3,
}


STREAMS = {"linger_s": 0, "behind_kb": 64, "log_kb": 2048, "slow_s": 0.5, "keep_s": 1}


@contextmanager
def connected(served: Served) -> Iterator[socket.socket]:
    host, port = served.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as sock:
        yield sock
