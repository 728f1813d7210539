"""The `.env` of an app: what it sets, what it does not, and that git keeps it out."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from groundhook import open_host
from groundhook.core.errors import ConfigError
from groundhook.host.config.env_file import app_environment
from tests.conftest import MakeApp
from tests.parts.command import run_command

PACKAGE = json.dumps({"connector": "extractive", "locale": "$ENV.GH_LOCALE"})
ENV = """\
# Of the desk
export GH_LOCALE=de
GH_QUOTED="a # b\\nc"  # a comment
GH_SINGLE='${GH_LOCALE} stays'
GH_JOINED=${GH_LOCALE}-AT
GH_EMPTY=
GH_NAME_ALONE
"""


@pytest.fixture
def app(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("GH_LOCALE", raising=False)
    return make_app({"assistants/a/package.yao": PACKAGE, ".env": ENV})


async def locale(app: Path, **given: str) -> str:
    async with open_host(app, environment=given or None) as host:
        return host.settings("a").locale


async def checked(app: Path) -> list[str]:
    async with open_host(app, environment={"GH_LOCALE": "en"}) as host:
        return [str(problem) for problem in await host.check()]


async def test_variables_of_the_file_are_those_of_the_app(app: Path) -> None:
    assert await locale(app) == "de"
    found = app_environment(app)
    assert {name: value for name, value in found.items() if name.startswith("GH_")} == {
        "GH_LOCALE": "de",
        "GH_QUOTED": "a # b\nc",
        "GH_SINGLE": "de stays",
        "GH_JOINED": "de-AT",
        "GH_EMPTY": "",
    }


async def test_a_variable_of_the_environment_is_never_replaced(
    app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GH_LOCALE", "fr")
    assert await locale(app) == "fr"
    assert app_environment(app)["GH_JOINED"] == "fr-AT"
    monkeypatch.setenv("GH_LOCALE", "")
    assert app_environment(app)["GH_LOCALE"] == ""


async def test_a_program_that_gives_the_environment_gets_no_other(app: Path) -> None:
    assert await locale(app, GH_LOCALE="it") == "it"
    with pytest.raises(ConfigError, match="GH_LOCALE"):
        await locale(app, OTHER="x")


def test_the_command_reads_it_as_well(app: Path) -> None:
    package = json.dumps({"connector": "$ENV.GH_CONNECTOR"})
    (app / "assistants/a/package.yao").write_text(package, encoding="utf-8")
    ask = ["chat", "a", "Hello"]
    code, _, err = run_command(ask, folder=app, environment={}, stdin=b"")
    assert code
    assert b"GH_CONNECTOR" in err
    (app / ".env").write_text("GH_CONNECTOR=extractive\n", encoding="utf-8")
    code, out, err = run_command(ask, folder=app, environment={}, stdin=b"")
    assert code == 0
    assert out.strip()
    assert b"GH_CONNECTOR" not in err


async def test_lines_that_set_nothing_are_warnings_with_their_place(app: Path) -> None:
    (app / ".env").write_text("A=1\n\n'open\nB=\"never closed\n", encoding="utf-8")
    assert [each.split(": ")[:2] for each in await checked(app)] == [
        [".env:3", "warning"],
        [".env:4", "warning"],
    ]


async def test_a_file_that_is_no_text_is_an_error(app: Path) -> None:
    (app / ".env").write_bytes(b"A=1\nB=\xff\n")
    with pytest.raises(ConfigError, match=r"\.env:2: not UTF-8"):
        await locale(app)
    assert any(".env:2: error: not UTF-8" in each for each in await checked(app))


async def test_a_file_that_git_tracks_is_a_warning(app: Path) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=app, check=True, capture_output=True)

    assert await checked(app) == []
    git("init", "-q")
    assert await checked(app) == []
    git("add", ".env")
    found = await checked(app)
    assert [each.split(" (")[0] for each in found] == [
        ".env: warning: tracked by git: who has the repository has the keys in this file"
    ]
    git("rm", "-q", "--cached", ".env")
    assert await checked(app) == []
