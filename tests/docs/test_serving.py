"""The pages about the server do what they show: commands are run, programs print, files are what a
server can start with."""

from __future__ import annotations

import io
import json
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
from urllib.parse import urlsplit

import httpx
import pytest
from ruamel.yaml import YAML

from groundhook.core.server_settings import ServerSettings
from groundhook.host.app.opening import open_host
from groundhook.host.cli.serve import command as serve_command
from groundhook.host.config.agent_file import server_settings
from groundhook.host.config.packages import load_app
from groundhook.host.server.asgi import check_settings
from groundhook.host.server.identity.keys import Key, KeyFile, hash_of, id_of, make_key
from scripts.http_doc import DOCUMENT, document
from tests.loops import run as run_apart
from tests.parts.tutorial import BLOCK
from tests.server.conftest import (
    APP,
    GROUNDHOOK,
    LOCAL,
    SPARSE,
    Served,
    serving,
    settings,
    write,
)

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
                    timeout=60,
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
    programs = [each for each in blocks("docs/clients.md", "python") if "from openai" in each]
    assert len(programs) == 2
    for program in programs:
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(program, "docs/clients.md", "exec"), {})
        assert "A hook is a script" in printed.getvalue()
        assert f"{docs.url}/api/sources/kb/docs/" in printed.getvalue()


def test_a_server_can_start_with_the_settings_of_the_page(tmp_path: Path) -> None:
    [example] = blocks("docs/production.md", "yaml")
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


def test_the_container_file_of_the_page_builds_and_starts_what_exists(docs: Served) -> None:
    [file] = blocks("docs/production.md", "dockerfile")
    lines = [line.split(" ", 1) for line in file.splitlines()]
    known = {"FROM", "RUN", "COPY", "WORKDIR", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "CMD"}
    assert {instruction for instruction, _ in lines} <= known
    given = dict(lines)
    program, name, *arguments = json.loads(given["CMD"])
    assert (program, name) == ("groundhook", "serve")
    with serve_command.make_context(name, arguments) as context:
        assert context.params["host"] == "0.0.0.0"
    assert given["EXPOSE"] == str(ServerSettings().port)
    probe = given["HEALTHCHECK"].removeprefix("CMD ")
    assert f"http://127.0.0.1:{given['EXPOSE']}/readyz" in probe
    probe = probe.replace(f"http://127.0.0.1:{given['EXPOSE']}", docs.url)
    probe = probe.replace("python", sys.executable, 1)
    with docs.client() as client:
        while not client.get("/readyz").json()["ready"]:
            pass
    subprocess.run(["/bin/sh", "-c", probe], check=True, timeout=60)
    failing = probe.replace("/readyz", "/nothing")
    refused = subprocess.run(["/bin/sh", "-c", failing], check=False, capture_output=True)
    assert refused.returncode != 0


def test_the_demo_installs_what_the_commands_after_it_need(tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    shown = subprocess.run(
        ["make", "-n", "demo"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert ".ci/install.py '.[server,mcp]'\n" in shown
    assert "kb add agents.docs.docs" in shown


def test_the_commands_that_make_keys_make_them(tmp_path: Path) -> None:
    app = write(tmp_path / "app", {"agent/agent.yml": "{}"})
    pages = ("docs/http.md", "docs/clients.md", "docs/production.md", "docs/security.md")
    text = " ".join((ROOT / page).read_text(encoding="utf-8") for page in pages)
    commands = re.findall(r"`groundhook (keys add [^`]+)`", text)
    assert len(commands) >= 2
    for command in commands:
        made = subprocess.run(
            [GROUNDHOOK, *command.replace("…", "chat").split(), "--app", app],
            env={**SPARSE, "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert made.stdout.startswith("gh_")


def test_the_endpoint_that_librechat_is_given_answers_its_users(docs: Served) -> None:
    [_, example] = blocks("docs/clients.md", "yaml")
    [endpoint] = YAML(typ="safe").load(example)["endpoints"]["custom"]
    key = make_key()
    made = Key(id=id_of(key), hash=hash_of(key), name="librechat", acts_for=True)
    KeyFile(docs.app / ".groundhook").add(made)
    [(name, value)] = endpoint["headers"].items()
    headers = {name: value.replace("{{LIBRECHAT_USER_ID}}", "u1")}
    base = urlsplit(endpoint["baseURL"]).path
    messages = [{"role": "user", "content": "What is a hook?"}]
    with docs.client(key, **headers) as client:
        assert "docs" in {each["id"] for each in client.get(f"{base}/models").json()["data"]}
        assert client.get("/api/me").json()["user"] == "librechat:u1"
        body = {"model": "docs", "messages": messages, "groundhook": {"citations": "links"}}
        answer = client.post(f"{base}/chat/completions", json=body).json()
    assert f"[[1]]({docs.url}/api/sources/kb/" in answer["choices"][0]["message"]["content"]


def test_traces_are_exported_with_the_settings_of_the_page(tmp_path: Path) -> None:
    [_, example] = blocks("docs/observability.md", "yaml")
    app = write(tmp_path / "app", {"agent/agent.yml": example})
    export = load_app(app, {"COLLECTOR_KEY": "k"}).settings.trace.export
    assert export is not None
    assert (export.type, export.url, export.content) == (
        "otlp",
        "https://collector.example",
        False,
    )
    assert export.headers == {"authorization": "k"}


def test_caddy_and_nginx_hand_requests_on_to_the_same_address() -> None:
    [caddy] = blocks("docs/production.md", "caddy")
    [nginx] = blocks("docs/production.md", "nginx")
    address = f"127.0.0.1:{ServerSettings().port}"
    assert f"reverse_proxy {address}\n" in caddy
    assert f"proxy_pass http://{address};" in nginx
    assert (caddy.count("{"), caddy.count("}")) == (1, 1)


@pytest.mark.skipif(shutil.which("caddy") is None, reason="caddy is not installed")
def test_the_block_for_caddy_is_one_that_it_takes(tmp_path: Path) -> None:
    [block] = blocks("docs/production.md", "caddy")
    (tmp_path / "Caddyfile").write_text(block)
    subprocess.run(
        ["caddy", "adapt", "--config", tmp_path / "Caddyfile", "--adapter", "caddyfile"],
        env={**SPARSE, "HOME": str(tmp_path)},
        check=True,
        capture_output=True,
    )


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
                timeout=60,
            ) as client:
                ask = {"assistant": "late", "text": "?"}
                with client.stream("POST", "/api/turns", json=ask) as answer:
                    fields = (line for line in answer.iter_lines() if ": " in line)
                    assert [next(fields) for _ in range(3)] == [
                        "retry: 1000",
                        "id: 1",
                        "event: stream_start",
                    ]
                    # The model answers after an hour: the proxy has held nothing back.
                    turn = answer.headers["x-groundhook-turn"]
                    assert client.post(f"/api/turns/{turn}/stop").status_code == 202
                    assert "event: stream_end" in list(fields)
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
