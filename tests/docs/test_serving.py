"""The pages about the server do what they show: commands are run, programs print, files are what a
server can start with."""

from __future__ import annotations

import io
import os
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import httpx
import pytest

from groundhook.host.app.opening import open_host
from groundhook.host.config.agent_file import server_settings
from groundhook.host.config.packages import load_app
from groundhook.host.core.server_settings import ServerSettings
from groundhook.host.server.asgi import check_settings
from groundhook.host.server.http_doc import DOCUMENT, document
from tests.docs.test_tutorial import BLOCK
from tests.loops import run as run_apart
from tests.server.conftest import APP, LOCAL, Served, serving, settings, write

ROOT = Path(__file__).parents[2]


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return [body for found, _, body in BLOCK.findall(text) if found == language]


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with an assistant `docs` over two sentences."""
    app = write(
        tmp_path_factory.mktemp("docs") / "app",
        {
            "agent/agent.yml": settings(),
            "kb/docs.kb.yao": '{ "name": "Docs" }',
            "connectors/extractive.conn.yao": '{"type": "extractive"}',
            "assistants/docs/package.yao": (
                '{ "name": "Docs", "connector": "extractive", "kb": { "collections": ["docs"] },'
                ' "search": { "kb": true } }'
            ),
            "connectors/slow.conn.yao": APP["connectors/slow.conn.yao"],
            "assistants/late/package.yao": APP["assistants/late/package.yao"],
            "files/hooks.md": "# Hooks\n\nA hook is a script that runs before and after a turn.\n",
        },
    )

    async def add() -> None:
        async with open_host(app) as host:
            await host.add_documents("docs", app / "files")

    run_apart(add)
    with serving(app) as served:
        yield served


def variables(served: Served) -> dict[str, str]:
    return {
        "URL": served.url,
        "OPENAI_BASE_URL": f"{served.url}/v1",
        "OPENAI_API_KEY": LOCAL,
    }


def test_the_committed_page_is_what_the_table_and_the_settings_give() -> None:
    assert (ROOT / DOCUMENT).read_text(encoding="utf-8") == document(), "run `make docs`"


def test_the_commands_of_the_page_print_what_it_shows(docs: Served) -> None:
    output, at = "", 0
    for console in blocks("docs/http.md", "console"):
        for line in console.splitlines():
            if line.startswith("$ "):
                done = subprocess.run(
                    ["/bin/sh", "-c", line[2:]],
                    env={"PATH": os.environ["PATH"], **variables(docs)},  # noqa: TID251
                    capture_output=True,
                    text=True,
                    check=True,
                    timeout=30,
                )
                output, at = done.stdout, 0
            else:
                found = output.find(line, at)
                assert found >= 0, f"{line!r} is not in {output!r}"
                at = found + len(line)


def test_the_programs_with_openais_client_print_answers(
    docs: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables(docs).items():
        monkeypatch.setenv(name, value)
    programs = blocks("docs/clients.md", "python")
    assert len(programs) == 2
    for program in programs:
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(program, "docs/clients.md", "exec"), {})
        assert "A hook is a script" in printed.getvalue()
        assert f"{docs.url}/api/sources/kb/docs/" in printed.getvalue()


def test_a_server_can_start_with_the_settings_of_the_page(tmp_path: Path) -> None:
    example, *_ = blocks("docs/production.md", "yaml")
    app = write(tmp_path / "app", {"agent/agent.yml": example})
    configured = server_settings(load_app(app, {"WEB_KEY": "k" * 40}).agent_file)
    check_settings(configured)
    assert (configured.public_url, configured.auth.keys[0].key) == (
        "https://groundhook.example",
        "k" * 40,
    )


def test_commands_in_units_and_images_are_those_of_the_command_line() -> None:
    text = (ROOT / "docs/production.md").read_text(encoding="utf-8")
    groundhook = Path(sys.executable).with_name("groundhook")
    shown = subprocess.run(
        [groundhook, "serve", "--help"], capture_output=True, text=True, check=True
    )
    for option in re.findall(r"serve[\w\s\"',.]*(--[a-z]+)", text):
        assert option in shown.stdout
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for names in re.findall(r"groundhook\[([\w,]+)\]", text):
        assert set(names.split(",")) <= set(extras["project"]["optional-dependencies"])


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
def test_the_proxy_of_the_page_hands_events_on_as_they_are_made(
    docs: Served, tmp_path: Path
) -> None:
    [location] = blocks("docs/production.md", "nginx")
    port = free_port()
    paths = "".join(
        f"{kind}_temp_path {tmp_path}/{kind}; "
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    written = location.replace("http://127.0.0.1:8420", docs.url)
    (tmp_path / "nginx.conf").write_text(
        f"daemon off; pid {tmp_path}/pid; error_log stderr; events {{}}\n"
        f"http {{ access_log off; {paths} server {{ listen 127.0.0.1:{port};\n{written} }} }}"
    )
    with subprocess.Popen(
        ["nginx", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")], stderr=subprocess.PIPE
    ) as nginx:
        try:
            with httpx.Client(
                base_url=f"http://127.0.0.1:{port}",
                headers={"authorization": f"Bearer {LOCAL}"},
                transport=httpx.HTTPTransport(retries=5),
                timeout=20,
            ) as client:
                ask = {"assistant": "late", "text": "?"}
                with client.stream("POST", "/api/turns", json=ask) as answer:
                    lines = answer.iter_lines()
                    assert "event: stream_start" in (next(lines) for _ in range(10))
                    turn = answer.headers["x-groundhook-turn"]  # it is still under way
                    assert client.post(f"/api/turns/{turn}/stop").status_code == 202
        finally:
            nginx.terminate()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_the_unit_of_the_page_is_one_that_systemd_takes(tmp_path: Path) -> None:
    [unit] = blocks("docs/production.md", "ini")
    command = Path(sys.executable).with_name("groundhook")
    started = f"{command} serve"
    assert "ExecStart=/srv/groundhook/venv/bin/groundhook serve" in unit
    file = tmp_path / "groundhook.service"
    file.write_text(unit.replace("/srv/groundhook/venv/bin/groundhook serve", started))
    verified = subprocess.run(
        ["systemd-analyze", "verify", file], capture_output=True, text=True, check=False
    )
    assert (verified.returncode, verified.stderr) == (0, "")


def test_a_backup_brings_chats_back(tmp_path: Path) -> None:
    files = {"agent/agent.yml": settings(), "assistants/a/package.yao": '{"name": "A"}'}
    app = write(tmp_path / "app", files)

    async def ask() -> str:
        async with open_host(app) as host, host.chat("a") as chat:
            async with chat.send("Hello") as events:
                async for _ in events:
                    pass
            return chat.id

    async def read(id: str) -> list[str]:
        async with open_host(app) as host, host.chat("a", chat_id=id) as chat:
            return [message.text for message in await chat.messages()]

    id = run_apart(ask)
    (console,) = blocks("docs/production.md", "console")
    for line in console.splitlines():
        subprocess.run(["/bin/sh", "-c", line[2:]], cwd=tmp_path, check=True)
    assert run_apart(read, id)[0] == "Hello"


@pytest.mark.parametrize("page", ["docs/http.md", "docs/clients.md", "docs/production.md"])
def test_every_setting_that_a_page_names_exists(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for path in re.findall(r"`server\.([\w.]+)", text):
        model: object = ServerSettings()
        for step in path.rstrip(".").split("."):
            assert hasattr(model, step), path
            model = getattr(model, step)
