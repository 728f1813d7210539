"""The published MCP inspector over standard input and output: `make test-peers` installs it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import COMMAND
from tests.toolkits.conftest import synchronised

pytestmark = pytest.mark.peers
INSTALLED = Path(__file__).parents[2] / "build/peers/node_modules/.bin"
WHO = ("--team", "red", "--tenant", "acme")
ANSWERED, TOOL_FAILED = 0, 5

__all__ = ["synchronised"]  # a fixture of this module


@dataclass(frozen=True)
class Inspector:
    """The program, before a server of one app."""

    app: Path

    def __call__(self, method: str, *options: str) -> Any:
        return self.ended(ANSWERED, method, *options)

    def ended(self, code: int, method: str, *options: str) -> Any:
        """Return what it prints as JSON, once it has ended with this code."""
        program = shutil.which("mcp-inspector", path=str(INSTALLED))
        assert program, f"no inspector in {INSTALLED}: run `make test-peers`"
        server = [str(COMMAND), "mcp", "serve", "--app", str(self.app), "--connector", *WHO]
        ran = subprocess.run(
            [program, "--cli", *server, "--method", method, *options],
            env={"PATH": f"{INSTALLED}:/usr/bin:/bin", "HOME": str(self.app)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert ran.returncode == code, ran.stderr or ran.stdout
        return json.loads(ran.stdout)


@pytest.fixture
def catalogue(synchronised: Callable[[str], Path]) -> Inspector:
    return Inspector(synchronised("catalogue"))


@pytest.fixture
def memory(synchronised: Callable[[str], Path]) -> Inspector:
    return Inspector(synchronised("memory"))


def test_it_lists_the_tools_and_finds_their_schemas_portable(catalogue: Inspector) -> None:
    listed = catalogue("tools/list", "--strict")["tools"]
    names = {tool["name"] for tool in listed}
    assert names == {"ask", "search", "fetch", "searchDatasets", "searchResources"}


def test_it_calls_a_tool_whose_answer_has_a_schema(catalogue: Inspector) -> None:
    arguments = ("--tool-name", "searchDatasets", "--tool-arg", "query=air quality", "limit=1")
    answer = catalogue("tools/call", *arguments)["structuredContent"]
    assert [each["title"] for each in answer["datasets"]] == ["Air quality measurements"]


def test_it_calls_a_tool_whose_answer_is_a_list(memory: Inspector) -> None:
    arguments = ("--tool-name", "batch_fetch", "--tool-arg", 'doc_refs=[[1,"backend"]]')
    [found] = memory("tools/call", *arguments)["structuredContent"]["result"]
    assert found["title"] == "Rate limits by token bucket"


def test_it_shows_what_is_wrong_with_arguments(catalogue: Inspector) -> None:
    arguments = ("--tool-name", "searchDatasets", "--tool-arg", "query=air", "limit=0")
    answer = catalogue.ended(TOOL_FAILED, "tools/call", *arguments)
    assert answer["isError"]
    assert answer["content"][0]["text"].startswith("wrong arguments: limit: ")


def test_it_searches_and_fetches_as_a_chat_client_does(catalogue: Inspector) -> None:
    arguments = ("--tool-name", "search", "--tool-arg", "query=air quality")
    found = catalogue("tools/call", *arguments)["structuredContent"]["results"]
    arguments = ("--tool-name", "fetch", "--tool-arg", f"id={found[0]['id']}")
    whole = catalogue("tools/call", *arguments)["structuredContent"]
    assert set(whole) == {"id", "title", "text", "url", "metadata"}


def test_it_lists_and_reads_documents_as_resources(catalogue: Inspector) -> None:
    first = catalogue("resources/list")["resources"][0]
    [content] = catalogue("resources/read", "--uri", first["uri"])["contents"]
    assert content["text"].startswith(first["name"])
