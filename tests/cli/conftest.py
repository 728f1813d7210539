"""The command `groundhook` as a child process, and an app for it: a shop with one table and connectors that follow a script."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import MakeApp

COMMAND = Path(sys.executable).with_name("groundhook")
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "xterm-256color"}

SHOP = {
    "agent/agent.yml": "connector: cites\n",
    "connectors/cites.conn.yao": """\
        {"label": "Cites", "type": "scripted", "options": {"script": [
            {"text": "The red pen is cheap {ref:0}, the blue one is not #ref:zz9z.", "times": 0}
        ]}}
        """,
    "connectors/plain.conn.yao": """\
        {"label": "Plain", "type": "scripted", "options": {"script": [{"text": "Hello there.", "times": 0}]}}
        """,
    "connectors/slow.conn.yao": """\
        {"label": "Slow", "type": "scripted", "options": {"script": [{"text": "Never", "delay_ms": 3600000}]}}
        """,
    "connectors/cut.conn.yao": """\
        {"label": "Cut", "type": "scripted", "options": {"script": [{"text": "Half an", "cut": true}]}}
        """,
    "connectors/long.conn.yao": json.dumps(
        {"label": "Long", "type": "scripted", "options": {"script": [{"text": "more and more " * 20000}]}}
    ),
    "models/product.mod.yao": """\
        {
          "name": "Product",
          "table": { "name": "product" },
          "columns": [
            { "name": "id", "type": "ID" },
            { "name": "name", "type": "string", "label": "Name" },
            { "name": "price", "type": "float", "label": "Price" }
          ],
          "values": [
            { "id": 1, "name": "Red pen", "price": 2.5 },
            { "id": 2, "name": "Blue pen", "price": 250 }
          ]
        }
        """,
    "assistants/shop/package.yao": """\
        {
          "name": "Shop",
          "db": { "models": ["product"] },
          "search": { "db": true }
        }
        """,
}


@dataclass(frozen=True)
class Ran:
    """How a run of the command ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


Groundhook = Callable[..., Ran]


@pytest.fixture
def shop(make_app: MakeApp) -> Path:
    return make_app(SHOP)


@pytest.fixture
def groundhook(shop: Path) -> Groundhook:
    """Runs the command in the shop's folder. `TERM` and the like are fixed; `environment` adds to them."""

    def run(*arguments: str, environment: dict[str, str] | None = None) -> Ran:
        done = subprocess.run(
            [COMMAND, *arguments],
            cwd=shop,
            env={**ENVIRONMENT, "HOME": str(shop), **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=50,
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))

    return run


@pytest.fixture
def loaded(groundhook: Groundhook) -> None:
    """The shop's table is filled."""
    assert groundhook("db", "load").code == 0
