"""The command `groundhook` as a child process, and an app for it: a shop with one table and
connectors that follow a script."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from groundhook.host.cli.main import run
from tests.parts.command import COMMAND, ENVIRONMENT, run_command

__all__ = ["COMMAND", "ENVIRONMENT"]  # for commands that a test itself starts

SHOP = {
    "agent/agent.yml": "connector: cites\n",
    "connectors/cites.conn.yao": (
        """\
        {"label": "Cites", "type": "scripted", "options": {"script": [
            {"text": "The red pen is cheap {ref:0}, the blue one is not #ref:zz9z.", "times": 0}
        ]}}
        """
    ),
    "connectors/plain.conn.yao": (
        """\
        {"label": "Plain", "type": "scripted", "options": {"script": [{"text": "Hello there.", "times": 0}]}}
        """
    ),
    "connectors/slow.conn.yao": (
        """\
        {"label": "Slow", "type": "scripted", "options": {"script": [{"text": "Never", "delay_ms": 3600000}]}}
        """
    ),
    "connectors/cut.conn.yao": (
        """\
        {"label": "Cut", "type": "scripted", "options": {"script": [{"text": "Half an", "cut": true}]}}
        """
    ),
    "connectors/long.conn.yao": json.dumps(
        {
            "label": "Long",
            "type": "scripted",
            "options": {"script": [{"text": "more and more " * 20000}]},
        }
    ),
    "models/product.mod.yao": (
        """\
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
        """
    ),
    "assistants/shop/package.yao": (
        """\
        {
          "name": "Shop",
          "db": { "models": ["product"] },
          "search": { "db": true }
        }
        """
    ),
}


@dataclass(frozen=True)
class Ran:
    """How a run of the command ended."""

    code: int
    out: str
    err: str

    @property
    def problems(self) -> list[str]:
        """The lines of standard error without those of progress, which a busy machine shows."""
        return [line for line in self.err.splitlines() if not re.search(r" \(\d+ %\)", line)]

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


Groundhook = Callable[..., Ran]


def run_in(
    app: Path, *arguments: str, environment: dict[str, str] | None = None, stdin: str = ""
) -> Ran:
    """The command as a child process in the app's folder. `TERM` and the like are fixed;
    `environment` adds to them."""
    given = {"HOME": str(app), **(environment or {})}
    code, out, err = run_command(arguments, folder=app, environment=given, stdin=stdin.encode())
    return Ran(code, out.decode("utf-8"), err.decode("utf-8"))


@pytest.fixture(scope="session")
def filled_shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shop with its table filled, to be copied."""
    app = tmp_path_factory.mktemp("shop")
    for name, text in SHOP.items():
        (app / name).parent.mkdir(parents=True, exist_ok=True)
        (app / name).write_text(dedent(text), encoding="utf-8")
    assert run_in(app, "db", "load").code == 0
    return app


@pytest.fixture
def shop(filled_shop: Path, tmp_path: Path) -> Path:
    return shutil.copytree(filled_shop, tmp_path / "app")


@pytest.fixture
def groundhook(shop: Path) -> Groundhook:
    """Runs the command in the shop's folder."""
    return partial(run_in, shop)


@pytest.fixture
def here(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Groundhook:
    """Runs the command line in this process: for what ends before an app is opened; what opens one
    needs a thread of its own."""
    monkeypatch.chdir(shop)

    def run_here(*arguments: str) -> Ran:
        code = run(arguments)
        return Ran(code, *capsys.readouterr())

    return run_here
