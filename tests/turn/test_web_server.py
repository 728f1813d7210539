"""The web server of docs/python.md as a process of its own, on each event loop that such servers
use."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.conftest import MakeApp
from tests.mcp.conftest import SERVER
from tests.parts.command import run_command

ROOT = Path(__file__).parents[2]
APP = {
    "connectors/cites.conn.yao": (
        """\
        {"label": "Cites", "type": "scripted", "options": {"script": [{"text": "Four minutes {ref:0}.", "times": 0}]}}
        """
    ),
    "connectors/slow.conn.yao": (
        """\
        {"label": "Slow", "type": "scripted", "options": {"script": [{"text": "Never", "delay_ms": 3600000}]}}
        """
    ),
    "models/tea.mod.yao": (
        """\
        {
          "name": "Tea",
          "table": { "name": "tea" },
          "columns": [{ "name": "id", "type": "ID" }, { "name": "name", "type": "string" }],
          "values": [{ "id": 1, "name": "Assam" }, { "id": 2, "name": "Sencha" }]
        }
        """
    ),
    "kb/notes.kb.yao": '{ "name": "Notes" }',
    "mcps/own.mcp.yao": json.dumps(
        {"transport": "stdio", "command": sys.executable, "args": [SERVER]}
    ),
    "assistants/tea/package.yao": (
        """\
        {
          "name": "Tea", "connector": "cites",
          "kb": { "collections": ["notes"] }, "db": { "models": ["tea"] }, "mcp": { "servers": [{"server_id": "own"}] }
        }
        """
    ),
    "assistants/tea/index.ts": (
        """\
        function Create(ctx: any, messages: any[]) {
          const query = messages[messages.length - 1].content;
          const [notes, teas] = ctx.search.Parallel([{ type: "kb", query }, { type: "db", query: "all teas" }]);
          const plain = ctx.mcp.CallTool("own", "plain", { text: "hello" });
          return { metadata: { notes: notes.items.length, teas: teas.items.length, text: plain.content[0].text } };
        }
        """
    ),
    "assistants/late/package.yao": '{ "name": "Late", "connector": "slow" }',
    # A busy machine is not late.
    "agent/agent.yml": (
        "search: {kb: {timeout_ms: 60000}, db: {timeout_ms: 60000}}\n"
        "hooks: {limits: {wall_ms: 300000, call_ms: 60000}}\n"
    ),
    "notes.md": "# Tea\nBlack tea takes boiling water and four minutes.\n",
}
SPARSE = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}

QUESTION = {"messages": "How long does black tea take?"}


@contextmanager
def served(app: Path, home: Path, loop: str) -> Iterator[tuple[str, psutil.Process]]:
    """The docs' example as `uvicorn` runs it: its address and its process."""
    examples = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs/python.md").read_text(encoding="utf-8"), re.DOTALL
    )
    (example,) = (text for text in examples if "Starlette(" in text)
    (home / "server.py").write_text(example.replace("path/to/app", str(app)), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = "http://{}:{}".format(*listening.getsockname())
        command = [
            sys.executable,
            "-m",
            "uvicorn",
            "server:app",
            "--fd",
            str(listening.fileno()),
            "--loop",
            loop,
        ]
        with subprocess.Popen(
            command, cwd=home, pass_fds=(listening.fileno(),), env={**SPARSE, "HOME": str(home)}
        ) as process:
            try:
                yield address, psutil.Process(process.pid)
            finally:
                process.kill()


def ask(address: str, assistant: str) -> list[dict[str, Any]]:
    answer = httpx.post(f"{address}/chat", json={**QUESTION, "assistant": assistant}, timeout=60)
    return [json.loads(line) for line in answer.text.splitlines()]


@pytest.fixture
def app(make_app: MakeApp, tmp_path: Path) -> Path:
    app = make_app(APP)
    for command in (("db", "load"), ("kb", "add", "notes", "notes.md")):
        code, _, errors = run_command(
            command, folder=app, environment={**SPARSE, "HOME": str(tmp_path)}, stdin=b""
        )
        assert code == 0, errors
    return app


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_the_example_of_the_docs_serves_turns_that_use_every_worker_and_ends_cleanly(
    loop: str, app: Path, tmp_path: Path
) -> None:
    with served(app, tmp_path, loop) as (address, process):
        events = ask(address, "tea")
        end = events[-1]
        assert end["type"] == "stream_end", events
        assert "trace" not in {event["type"] for event in events}
        assert end["metadata"] == {"notes": 1, "teas": 2, "text": "hello"}
        assert [cited["title"] for cited in end["citations"]] == ["Tea"]
        with httpx.stream(
            "POST", f"{address}/chat", json={**QUESTION, "assistant": "late"}
        ) as answer:
            # And then the client goes away, in a turn that would never end.
            next(answer.iter_lines())
        assert ask(address, "coffee")[-1]["code"] == "unknown_name"
        children = process.children(recursive=True)
        assert children
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (0, -signal.SIGTERM)
        assert psutil.wait_procs(children, timeout=60)[1] == []
