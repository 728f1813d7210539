"""The examples of docs/tools.md, and the command line on an installed toolkit."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from groundhook.host.cli.main import run
from groundhook.host.config.jsonc import parse_jsonc
from tests.conftest import MakeApp
from tests.tool_calls.conftest import EXAMPLE

DOCUMENT = Path(__file__).parents[2] / "docs/tools.md"

RunTools = Callable[..., tuple[int, str, str]]


@pytest.fixture
def tools(
    make_app: MakeApp,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> RunTools:
    """`groundhook tools …` on an app whose assistant lists a toolkit of an installed plug-in."""
    site = tmp_path / "site"
    info = site / "shelf-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shelf\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[groundhook.plugins]\nshelf = groundhook_example_toolkit:plugin\n"
    )
    shutil.copy(EXAMPLE / "groundhook_example_toolkit.py", site)
    monkeypatch.syspath_prepend(str(site))
    app = make_app(
        {
            "assistants/a/package.yao": '{"tools": [{"toolkit": "shelf", "as": {"findBooks": "find"}}]}',
            "assistants/a/toolkits/shelf.toolkit.yao": '{"type": "shelf"}',
            "assistants/a/kb/books.kb.yao": '{"embedding": {"provider": "hash"}}',
        }
    )

    def run_tools(*arguments: str) -> tuple[int, str, str]:
        with ThreadPoolExecutor(1) as apart:  # a fixture's loop may be open in this thread
            code = apart.submit(run, ["tools", *arguments, "--app", str(app)]).result()
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return run_tools


def test_tools_are_listed_shown_and_called_on_the_command_line(tools: RunTools) -> None:
    code, out, _ = tools("list", "--json")
    listed = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [(each["name"], each["canonical"], each["needs"]["identity"]) for each in listed] == [
        ("findBooks", "shelf.findBooks", {}),
        ("addBook", "shelf.addBook", {"user": "user"}),
    ]
    _, out, _ = tools("list", "--assistant", "a")
    assert re.search(r"^find\tshelf\.findBooks", out, re.MULTILINE)
    code, out, _ = tools("show", "shelf.addBook")
    assert "needs user\nmay change something\n" in out
    book = '{"id": "1", "title": "On pears", "text": "Pears ripen in autumn."}'
    code, out, error = tools("call", "shelf.addBook", book)
    assert (code, out) == (1, "")
    assert "not permitted: addBook needs a user, and the request names none" in error
    code, out, _ = tools("call", "shelf.addBook", book, "--user", "u")
    assert (code, json.loads(out)) == (0, {"added": 1, "replaced": 0})
    found = ("call", "find", '{"query": "When do pears ripen?"}', "--assistant", "a", "--json")
    code, out, _ = tools(*found)
    answer = json.loads(out)
    assert (code, answer["error"]) == (0, None)
    assert list(answer) == [
        "name", "result", "text", "error", "items", "warnings", "duration_ms"
    ]  # fmt: skip
    assert [item["title"] for item in answer["items"]] == ["On pears"]
    _, out, _ = tools(*found, "--events")
    types = [json.loads(line).get("type") for line in out.splitlines()]
    assert [type for type in types if type != "trace"] == [
        "tool_start",
        "tool_progress",
        "tool_result",
        None,
    ]
    code, _, error = tools("show", "shelf.addBok")
    assert code == 1
    assert "did you mean 'shelf.addBook'?" in error


def test_the_examples_of_the_document_can_be_read() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for kind, block in re.findall(r"```(\w+)\n(.*?)```", text, re.DOTALL):
        if kind in ("json", "jsonc"):
            assert parse_jsonc(block).data
        elif kind == "python":
            compile(block, "docs/tools.md", "exec")
