"""The command that forks ends as the command that is started does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.parts.command import COMMAND, ENVIRONMENT, run_command


@pytest.mark.parametrize(
    "arguments", [["--version"], ["chat", "nobody"], ["--nonsense"], ["check"], ["new", "a"]]
)
def test_a_forked_command_writes_and_ends_as_a_started_one(
    tmp_path: Path, arguments: list[str]
) -> None:
    forked, started = tmp_path / "one/app", tmp_path / "two/app"
    for folder in (forked, started):
        folder.mkdir(parents=True)
    environment = {"HOME": str(tmp_path)}
    done = subprocess.run(
        [COMMAND, *arguments],
        cwd=started,
        env={**ENVIRONMENT, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    code, out, err = run_command(arguments, folder=forked, environment=environment, stdin=b"")
    assert (code, out.decode(), err.decode()) == (
        done.returncode,
        done.stdout.decode().replace("/two/", "/one/"),
        done.stderr.decode().replace("/two/", "/one/"),
    )
    assert _files(forked) == _files(started)


def _files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
