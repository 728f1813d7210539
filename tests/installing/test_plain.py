"""A plain install: what it runs, and what it names of what it lacks."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import MakeApp

APP = {
    "assistants/docs/package.yao": '{"search": {"kb": true}, "kb": {"collections": ["docs"]}}',
    "assistants/docs/index.ts": (
        "export function Create(ctx: any) { return { metadata: { seen: 1 } }; }"
    ),
    "assistants/far/package.yao": '{"connector": "far"}',
    "connectors/far.conn.yao": '{"type": "openai", "options": {"model": "m", "key": "k"}}',
    "mcps/tools.mcp.yao": '{"transport": "http", "url": "http://127.0.0.1:9/mcp"}',
    "kb/docs.kb.yao": '{"embedding": {"provider": "hash"}}',
    "kb/voyage.kb.yao": '{"embedding": {"provider": "voyage"}}',
    "models/thing.mod.yao": """
        {"name": "Thing", "table": {"name": "thing"}, "values": [{"id": 1, "name": "lamp"}],
         "columns": [{"name": "id", "type": "ID"}, {"name": "name", "type": "string"}]}
        """,
    "bridge.md": "# Bridge\n\nThe Alder bridge opens at nine in the morning.\n",
    "page.html": "<p>The Alder bridge</p>",
    "file.pdf": "%PDF-1.4",
}
# Modules that need an extra by themselves; the modules that import them ask for it.
DOORS = {
    "host.output.trace_export",
    "host.llm.anthropic_events",
    "handlers.db.engines.servers",
    "core.readers.pdf_columns",
    "core.readers.pdf_glyphs",
    "core.readers.pdf_rows",
    "handlers.kb.reading.pdf",
    "handlers.kb.reading.pdf_around",
    "handlers.kb.reading.pdf_tables",
    "handlers.kb.server.collections",
    "handlers.kb.server.existing",
    "handlers.kb.server.foreign_points",
    "handlers.kb.server.names",
    "handlers.kb.server.filter",
    "handlers.kb.server.layout",
    "handlers.kb.server.connection",
    "handlers.kb.server.writer",
    "handlers.kb.server.search",
    "handlers.kb.server.reader",
    "handlers.kb.server.store",
    "handlers.web.providers.bounded_body",
    "host.llm.openai_events",
    "host.tools.mcp.sdk.counted",
    "host.tools.mcp.sdk.errors",
    "host.tools.mcp.sdk.session",
    "host.tools.mcp.sdk.stdio",
    "host.chats.storage.connection",
}
IMPORT_ALL = """
import importlib, json, pkgutil, groundhook
missing = []
for module in pkgutil.walk_packages(groundhook.__path__, "groundhook."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ImportError:
            missing.append(module.name.removeprefix("groundhook."))
print(json.dumps(missing))
"""

# Commands, the variable that they have, and the extra that they need.
NEED = [
    (("search", "web", "bridge"), "TAVILY_API_KEY", "web"),
    (("search", "web", "bridge"), "SERPER_API_KEY", "web"),
    (("kb", "add", "voyage", "bridge.md"), "VOYAGE_API_KEY", "voyage"),
    (("chat", "far", "hello"), "", "openai"),
    (("mcp", "call", "tools", "x"), "", "mcp"),
    (("mcp", "serve"), "", "mcp"),
    (("dev",), "", "authoring"),
]
# Prints the exit code and the errors of each command.
RUN_EACH = """
import contextlib, io, json, os, sys
from groundhook.host.cli.main import main
ends = []
variables = dict(os.environ)
for command, variable, _ in json.loads(sys.argv[1]):
    sys.argv[1:] = command
    os.environ.clear()
    os.environ.update(variables | ({variable: "k"} if variable else {}))
    with contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            code = main()
        except SystemExit as ended:
            code = ended.code
    ends.append([code, said.getvalue()])
print(json.dumps(ends))
"""


@pytest.fixture
def app(make_app: MakeApp) -> Path:
    folder = make_app(APP)
    with zipfile.ZipFile(folder / "file.docx", "w") as archive:
        archive.writestr("word/document.xml", "<w:document/>")
    return folder


def run(
    plain: Path, app: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [plain, "-P", "-m", "groundhook", *arguments],
        cwd=app,
        env={"PATH": "/usr/bin:/bin", "HOME": str(app), **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_plain_install_checks_adds_loads_and_answers(plain: Path, app: Path) -> None:
    checked = run(plain, app, "check", "docs")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    added = run(plain, app, "kb", "add", "docs", "bridge.md")
    assert added.returncode == 0, added.stderr
    loaded = run(plain, app, "db", "load")
    assert loaded.returncode == 0, loaded.stderr
    result = run(plain, app, "chat", "docs", "When does the Alder bridge open?", "--json")
    events: list[dict[str, Any]] = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.returncode == 0, result.stderr
    assert "nine in the morning" in events[-1]["content"]
    rows = run(plain, app, "search", "db", "things", "--json")
    assert json.loads(rows.stdout)["items"][0]["data"]["name"] == "lamp"


def test_the_error_for_a_missing_extra_names_the_command_that_installs_it(
    plain: Path, app: Path
) -> None:
    """In one process, since most of the time of each is its start."""
    result = subprocess.run(
        [plain, "-P", "-c", RUN_EACH, json.dumps(NEED)],
        cwd=app,
        env={"PATH": "/usr/bin:/bin", "HOME": str(app)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    ends = json.loads(result.stdout.splitlines()[-1])
    for (command, _, extra), (code, said) in zip(NEED, ends, strict=True):
        assert code == 1, command
        assert f"pip install 'groundhook[{extra}]'" in " ".join(said.split()), command
        assert f"needs the extra '{extra}'" in " ".join(said.split()), command
        assert "Traceback" not in said, command


def test_documents_that_a_plain_install_cannot_read_are_named_with_what_installs_it(
    plain: Path, app: Path
) -> None:
    result = run(plain, app, "kb", "add", "docs", "page.html", "file.docx", "file.pdf", "bridge.md")
    assert result.returncode == 1
    for name, kind in (("page.html", "HTML"), ("file.docx", "DOCX"), ("file.pdf", "PDF")):
        needs = f"'{name}' was not added: reading {kind} files needs the extra 'documents'"
        assert needs in " ".join(result.stderr.split())
    assert result.stderr.count("(pip install 'groundhook[documents]')") == 3
    assert "1 document" in result.stdout


def test_a_check_warns_of_what_an_app_declares_and_is_not_installed(plain: Path, app: Path) -> None:
    result = run(plain, app, "check")
    assert result.returncode == 0
    for extra in ("openai", "mcp", "authoring"):
        assert f"pip install 'groundhook[{extra}]'" in result.stderr


@pytest.mark.parametrize(
    ("agent", "extra"),
    [
        ("qdrant: {url: 'http://127.0.0.1:9'}", "qdrant"),
        ("database: {url: 'postgresql://u@127.0.0.1:9/x'}", "postgresql"),
        ("database: {url: 'mariadb://u@127.0.0.1:9/x'}", "mariadb"),
    ],
)
def test_a_server_whose_client_is_not_installed_is_named_with_what_installs_it(
    plain: Path, app: Path, agent: str, extra: str
) -> None:
    (app / "agent").mkdir()
    (app / "agent" / "agent.yml").write_text(agent, encoding="utf-8")
    result = run(plain, app, *(("kb", "list") if extra == "qdrant" else ("db", "load")))
    assert result.returncode == 1
    assert f"pip install 'groundhook[{extra}]'" in result.stderr
    assert "Traceback" not in result.stderr


def test_only_doors_need_an_extra_to_be_imported(plain: Path) -> None:
    result = subprocess.run(
        [plain, "-c", IMPORT_ALL], capture_output=True, text=True, check=True
    ).stdout
    missing = {name for name in json.loads(result) if not name.startswith("host.server.")}
    assert missing == DOORS


def test_importing_groundhook_loads_no_other_package(plain: Path) -> None:
    code = "import sys; before = set(sys.modules); import groundhook; "
    code += "print({name.split('.')[0] for name in set(sys.modules) - before}"
    code += " - {'groundhook', *sys.stdlib_module_names} or '')"
    result = subprocess.run([plain, "-c", code], capture_output=True, text=True, check=True).stdout
    assert result.strip() == ""
