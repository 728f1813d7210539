"""Documents that are followed as a reader would."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.parts.command import run_command

BLOCK = re.compile(r"^```(\S+)(?: file=(\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_VARIABLES = os.environ  # noqa: TID251 - of programs that a reader starts


def run(command: str, folder: Path) -> str:
    """Run one line of a console as a reader would, with `groundhook` and `python` of this
    environment."""
    words = shlex.split(command)
    if words[0] == "groundhook" and not set(command) & set("|<>&;$`*?"):
        code, out, err = run_command(
            words[1:], folder=folder, environment={**_VARIABLES, "COLUMNS": "200"}, stdin=b""
        )
        assert code == 0, f"{command}\n{out.decode()}\n{err.decode()}"
        return out.decode() + err.decode()
    path = f"{Path(sys.executable).parent}{os.pathsep}{_VARIABLES['PATH']}"
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=folder,
        env={**_VARIABLES, "PATH": path, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def follow(text: str, folder: Path) -> int:
    """Do everything that a page shows; return how many lines of output were compared."""
    compared = 0
    for language, file, body in BLOCK.findall(text):
        if file:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(body, encoding="utf-8")
        elif language == "console":
            output, at = "", 0
            for line in body.splitlines():
                if line.startswith("$ mkdir"):
                    folder = folder / shlex.split(line)[2]
                    folder.mkdir()
                elif line.startswith("$ "):
                    output, at = " ".join(run(line[2:], folder).split()), 0
                else:
                    shown = " ".join(line.split())
                    found = output.find(shown, at)
                    assert found >= 0, f"{shown!r} is not in {output!r}"
                    at, compared = found + len(shown), compared + 1
    return compared
