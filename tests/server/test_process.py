"""`groundhook serve` as a process: what it prints, when it refuses, how it ends."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import anyio
import anyio.lowlevel
import httpx
import httpx2
import psutil
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from groundhook import UsageError
from groundhook.host.server.process import listen
from tests.parts.command import run_command, start_command
from tests.server.conftest import (
    APP,
    OTHER,
    serving,
    settings,
    sse,
    started,
    write,
)


@pytest.fixture
def app(tmp_path: Path) -> Path:
    return write(tmp_path / "app", APP)


def connected(at: dict[str, Any]) -> httpx.Client:
    headers = {"authorization": f"Bearer {at['key']}"} if at["key"] else {}
    transport = httpx.HTTPTransport(retries=5)
    return httpx.Client(base_url=at["url"], headers=headers, timeout=60, transport=transport)


def pasted(app: Path, **variables: str) -> tuple[str, list[str]]:
    """What `groundhook serve` prints, and the answers to the line of curl and to the program, each
    pasted as it is into a shell with these variables."""
    home = {"HOME": str(app.parent)}
    command = ["serve", "--app", str(app), "--port", "0"]
    with start_command(command, folder=app.parent, environment=home) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            shown = "".join(iter(process.stdout.readline, "  from openai import OpenAI\n"))
            python = "".join(process.stdout.readline() for _ in range(2))
            while not process.stderr.readline().endswith(" ready\n"):
                pass
            curl = next(line for line in shown.splitlines() if "curl" in line)
            exports = [line for line in shown.splitlines() if "export" in line]
            client = f"from openai import OpenAI\n{dedent(python)}"
            answers = [
                subprocess.run(
                    ["/bin/sh", "-c", script],
                    env={"PATH": os.environ["PATH"], "PROGRAM": client, **variables},  # noqa: TID251
                    capture_output=True,
                    text=True,
                    timeout=60,
                    check=True,
                ).stdout
                for script in (curl, "\n".join([*exports, f'{sys.executable} -c "$PROGRAM"']))
            ]
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0
        finally:
            process.kill()
    return shown, answers


def suggest(app: Path, **more: Any) -> None:
    """Let the assistant `tea` be the one that is asked first."""
    tea = {"name": "Tea", "connector": "titles", "placeholder": "Which tea?", **more}
    write(app, {"assistants/tea/package.yao": json.dumps(tea)})


def are_answers(answers: list[str]) -> bool:
    return "event: stream_end" in answers[0] and "ChatCompletionMessage(content=" in answers[1]


def test_what_it_prints_works_after_a_key_was_added_and_so_does_what_it_printed_before(
    app: Path,
) -> None:
    suggest(app)
    with started(app) as (_, at):
        before = at["key"]
    added = run("keys", "add", "web", app=app)
    assert added.returncode == 0
    shown, answers = pasted(app)
    assert are_answers(answers)
    # What others may read, such as a journal, has no key with every scope.
    assert before not in shown
    with started(app) as (_, at):
        assert at["key"] == before
        with connected(at) as client:
            assert client.get("/api/me").status_code == 200
            web = {"authorization": f"Bearer {added.stdout.strip()}"}
            assert client.get("/api/me", headers=web).json()["name"] == "web"


def test_where_the_key_for_this_machine_ends_that_is_printed_with_what_takes_its_place(
    app: Path,
) -> None:
    suggest(app)
    with started(app) as (_, at):
        ended = at["key"]
    key = {"name": "web", "key": OTHER}
    write(app, {"agent/agent.yml": json.dumps({"server": {"auth": {"keys": [key]}}})})
    shown, answers = pasted(app, OPENAI_API_KEY=OTHER)
    assert are_answers(answers)
    assert f"The key for this machine, {app}/.groundhook/server-local-key, is not accepted" in shown
    assert "`server.auth` in agent/agent.yml" in shown
    assert "groundhook keys add" in shown
    assert ended not in shown
    assert OTHER not in shown


@pytest.mark.parametrize("auth", [{"local": "open"}, {"anonymous": True}])
def test_what_it_prints_works_where_no_key_is_needed(app: Path, auth: dict[str, Any]) -> None:
    suggest(app, public=True)
    first = {"name": "First", "connector": "titles", "placeholder": "?"}  # not for visitors
    write(app, {"assistants/first/package.yao": json.dumps(first)})
    write(app, {"agent/agent.yml": json.dumps({"server": {"auth": auth}})})
    shown, answers = pasted(app)
    assert are_answers(answers)
    assert "Authorization" not in shown


def test_what_it_prints_without_configuration_is_ready_to_be_pasted(app: Path) -> None:
    question = """It's "tea"?"""
    tea = {"name": "Tea", "connector": "titles", "placeholder": question}
    write(app, {"assistants/tea/package.yao": json.dumps(tea)})
    shown, answers = pasted(app)
    assert re.search(r"Serving on http://127\.0\.0\.1:\d+ ", shown)
    assert "Assistants: fails, late, talks, tea\n" in shown
    assert "event: stream_end" in answers[0]
    assert "ChatCompletionMessage(content='A title'" in answers[1]


def test_the_key_for_this_machine_outlives_the_server_and_is_readable_by_its_user_alone(
    app: Path,
) -> None:
    keys = []
    for _ in range(2):
        with started(app) as (process, at):
            keys.append(at["key"])
            process.send_signal(signal.SIGTERM)
            process.wait(60)
    assert keys[0] == keys[1]
    file = app / ".groundhook/server-local-key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_text("gh_short")
    refused = run("serve", "--port", "0", app=app)
    assert (refused.returncode, "delete it: a new key is made" in refused.stderr) == (1, True)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_signal_ends_open_streams_with_their_last_event_and_leaves_no_process(
    app: Path, workers: int
) -> None:
    write(app, {"agent/agent.yml": '{"server": {"drain_s": 0}}'})
    with started(app, "--workers", str(workers)) as (process, at), connected(at) as client:
        ask = {"assistant": "late", "text": "?"}
        with client.stream("POST", "/api/turns", json=ask) as answer:
            children = psutil.Process(process.pid).children(recursive=True)
            process.send_signal(signal.SIGTERM)
            events = sse(answer)
        assert [data["type"] for _, _, data in events[-2:]] == ["error", "stream_end"]
        assert events[-2][2]["code"] == "host_closed"
        assert process.wait(60) in (0, -signal.SIGTERM)
        assert psutil.wait_procs(children, timeout=60)[1] == []


def test_turns_under_way_may_end_and_new_ones_are_refused_while_it_drains(app: Path) -> None:
    slow = '{"type": "scripted", "options": {"script": [{"text": "Soon", "delay_ms": 1500, "times": 0}]}}'
    write(app, {"connectors/slow.conn.yao": slow})
    with started(app) as (process, at), connected(at) as client, connected(at) as second:
        second.get("/healthz")  # a connection from before
        ask = {"assistant": "late", "text": "?"}
        with client.stream("POST", "/api/turns", json=ask) as answer:
            process.send_signal(signal.SIGTERM)
            events = sse(answer)
        assert events[-1][2]["content"] == "Soon"
        assert process.wait(60) in (0, -signal.SIGTERM)


@pytest.mark.parametrize(("drain_s", "words"), [(10, "Soon"), (0, "the server was stopped")])
async def test_an_answer_over_mcp_may_end_as_well_or_says_that_it_could_not(
    app: Path, drain_s: int, words: str
) -> None:
    script = [{"text": "Soon", "delay_ms": 1500 if drain_s else 3600000, "times": 0}]
    slow = {"type": "scripted", "options": {"script": script}}
    write(app, {"connectors/slow.conn.yao": json.dumps(slow)})
    write(app, {"agent/agent.yml": json.dumps({"server": {"drain_s": drain_s}})})
    answers: list[str] = []

    async def ask(client: Client) -> None:
        answer = await client.call_tool("ask", {"question": "?", "assistant": "late"})
        answers.append(str(answer.content[0].text))  # type: ignore[union-attr]

    with started(app) as (process, at):
        headers = {"authorization": f"Bearer {at['key']}"}
        with connected(at) as watching:
            assert watching.get("/healthz").status_code == 200
            async with (
                httpx2.AsyncClient(headers=headers, timeout=60) as http,
                Client(streamable_http_client(f"{at['url']}/mcp", http_client=http)) as client,
                anyio.create_task_group() as tasks,
            ):
                await client.list_tools()  # which the client would request behind the answer
                tasks.start_soon(ask, client)
                while "groundhook_turns_running 1.0" not in watching.get("/metrics").text:
                    await anyio.lowlevel.checkpoint()
                    select.select([], [], [], 0.02)  # each is a line in a pipe that nobody reads
                process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (0, -signal.SIGTERM)
    assert len(answers) == 1
    assert words in answers[0]


def run(*command: str, app: Path) -> subprocess.CompletedProcess[str]:
    arguments, home = [*command, "--app", str(app)], {"HOME": str(app.parent)}
    code, out, err = run_command(arguments, folder=app.parent, environment=home, stdin=b"")
    return subprocess.CompletedProcess(arguments, code, out.decode(), err.decode())


def test_off_loopback_it_refuses_to_start_when_nobody_could_sign_in(app: Path) -> None:
    refused = run("serve", "--host", "0.0.0.0", "--port", "0", app=app)
    assert refused.returncode == 1
    assert "no way to sign in is configured" in refused.stderr
    assert "groundhook keys add" in refused.stderr


def test_a_port_in_use_and_wrong_settings_are_errors_in_words(app: Path) -> None:
    with started(app) as (process, at):
        port = at["url"].rpartition(":")[2]
        taken = run("serve", "--port", port, app=app)
        # A hook worker that is starting holds the port for a moment as well.
        workers = psutil.Process(process.pid).children(recursive=True)
    assert taken.returncode == 1
    assert f"127.0.0.1:{port} cannot be used" in taken.stderr
    named = re.search(r"by the process (\d+) \(", taken.stderr.replace("\n", " "))
    assert named is not None
    assert int(named[1]) in (process.pid, *(worker.pid for worker in workers))
    write(app, {"agent/agent.yml": '{"server": {"prot": 1}}'})
    wrong = run("serve", app=app)
    assert "agent/agent.yml:1:13: unknown key 'server.prot' (did you mean 'port'?)" in (
        wrong.stderr.replace("\n", " ")
    )
    unset = json.loads(settings())
    unset["server"]["auth"]["keys"][0]["key"] = "$ENV.NOT_THERE"
    write(app, {"agent/agent.yml": json.dumps(unset)})
    assert "the key 'other' of server.auth.keys is empty" in run("serve", app=app).stderr


def test_a_process_that_has_the_port_of_another_address_is_not_blamed() -> None:
    with socket.socket() as silent, listen("127.0.0.2", 0) as other:
        port = other.getsockname()[1]
        silent.bind(("127.0.0.1", port))  # which no process listens on
        with pytest.raises(UsageError) as taken:
            listen("127.0.0.1", port)
        assert taken.value.message == f"127.0.0.1:{port} cannot be used: Address already in use"


def test_saved_files_are_read_again_where_that_is_wanted(app: Path) -> None:
    write(app, {"agent/agent.yml": settings()})
    with serving(app, reload=True) as served, served.client() as client:
        while not client.get("/readyz").json()["ready"]:
            pass
        write(app, {"assistants/new/package.yao": '{ "name": "New", "connector": "titles" }'})
        while client.get("/api/assistants/new").status_code == 404:
            pass
        answer = client.post("/api/turns", json={"assistant": "new", "text": "?"})
        assert sse(answer)[-1][1] == "stream_end"


def test_a_server_that_is_killed_leaves_its_address_to_the_next(app: Path) -> None:
    write(
        app,
        {
            "kb/notes.kb.yao": '{ "name": "Notes" }',
            "connectors/extractive.conn.yao": '{"type": "extractive"}',
            "assistants/notes/package.yao": (
                '{"name": "Notes", "connector": "extractive", "search": {"kb": true},'
                ' "kb": {"collections": ["notes"]}}'
            ),
        },
    )
    with started(app) as (process, at):
        port = at["url"].rpartition(":")[2]
        with connected(at) as client:
            # The worker of the vector engine begins, which outlives the server.
            client.post("/api/turns", json={"assistant": "notes", "text": "What?"}).read()
        process.kill()
        process.wait()
        with started(app, "--port", port) as (_, again), connected(again) as client:
            assert client.get("/healthz").json() == {"ok": True}


def test_it_opens_the_page_in_the_browser_that_is_set(app: Path, tmp_path: Path) -> None:
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}\n')
    browser.chmod(0o755)
    command = ["serve", "--app", str(app), "--port", "0", "--json", "--open-browser"]
    variables = {"HOME": str(app.parent), "BROWSER": f"{browser} %s"}
    with start_command(command, folder=app.parent, environment=variables) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        at = json.loads(process.stdout.readline())
        while not process.stderr.readline().endswith(" ready\n"):
            pass
        assert opened.read_text() == at["page"]
        process.kill()
