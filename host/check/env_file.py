"""Checks of the app's `.env`: lines that set nothing, and whether git keeps it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

from groundhook.core.errors import ConfigError, Place
from groundhook.core.problems import Problem, problems_of
from groundhook.host.config.env_file import ENV_FILE, read_env_file
from groundhook.host.config.environment import child_environment

_LONGEST = 10  # seconds that git may take


def env_file_problems(root: Path) -> Iterator[Problem]:
    """Yield the problems with the `.env` of an app."""
    try:
        file = read_env_file(root)
    except ConfigError as exc:
        yield from problems_of(exc)
        return
    if file is None:
        return
    for line in file.unread:
        hint = 'write NAME=value, a value with quotes or line breaks as NAME="…"'
        yield Problem("warning", "this line sets no variable", Place(ENV_FILE, line), hint)
    if _is_tracked(root):
        yield Problem(
            "warning",
            "tracked by git: who has the repository has the keys in this file",
            Place(ENV_FILE),
            "`git rm --cached .env`, add it to .gitignore, and replace the keys",
        )


def _is_tracked(root: Path) -> bool:
    """Return whether the file is tracked by git; False without git, or outside a repository."""
    # A repository may name a program that git runs for this question.
    command = ["git", "-c", "core.fsmonitor=false", "ls-files", "--", ENV_FILE]
    try:
        answer = subprocess.run(
            command, cwd=root, env=child_environment(), capture_output=True, timeout=_LONGEST
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return bool(answer.stdout.strip())
