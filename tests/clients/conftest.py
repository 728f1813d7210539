"""A server for clients of others: an app whose assistants cite, call a tool of the client, answer
with JSON, and wait for an approval."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from groundhook.host.server.identity.keys import make_key
from tests.server.conftest import Served, filled, serving, settings, write

__all__ = ["filled"]

# Of a client that shows no annotations: `groundhook keys add … --citations links`.
LINKS = make_key()


def _script(*entries: object) -> str:
    return json.dumps({"label": "S", "type": "scripted", "options": {"script": [*entries]}})


def _call(name: str, **arguments: object) -> dict[str, object]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


FILES = {
    "connectors/picks.conn.yao": _script(_call("pick", of="tea"), {"text": "Green."}),
    "assistants/picks/package.yao": '{"name": "Picks", "connector": "picks"}',
    "connectors/json.conn.yao": _script({"text": '{"teas": ["Assam"]}', "times": 0}),
    "assistants/json/package.yao": '{"name": "JSON", "connector": "json"}',
    "mcps/teas.mcp.yao": json.dumps(
        {"transport": "process", "label": "Teas", "tools": {"one": "models.tea.Find"}}
    ),
    "connectors/orders.conn.yao": _script(_call("teas__one", id=1), {"text": "It is Assam."}),
    "assistants/orders/package.yao": json.dumps(
        {
            "name": "Orders",
            "connector": "orders",
            "mcp": {"servers": ["teas"]},
            "db": {"models": ["tea"]},
            "options": {"confirm": ["teas__one"]},
        }
    ),
}


@contextmanager
def fresh(filled: Path) -> Iterator[Served]:
    """A server of its own, since scripts of models go on from where they are."""
    with tempfile.TemporaryDirectory() as folder:
        app = shutil.copytree(filled, Path(folder) / "app")
        # Without a script: a server that ends while it compiles one hears of it too late.
        shutil.rmtree(app / "assistants/talks")
        keys = {"keys": [{"name": "links", "key": LINKS, "user": "links", "citations": "links"}]}
        write(app, {**FILES, "agent/agent.yml": settings(auth=keys)})
        with serving(app) as server:
            yield server


@pytest.fixture
def clients_server(filled: Path) -> Iterator[Served]:
    with fresh(filled) as server:
        yield server
