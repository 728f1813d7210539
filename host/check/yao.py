"""Finds the parts of an app written for Yao that do not exist here or behave differently: folders,
keys of packages, and calls in scripts, each with its place. Reads text; executes nothing.

`docs/coming-from-yao.md` gives the reasons.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from groundhook.core.errors import Place
from groundhook.core.problems import Problem
from groundhook.hooks.api.table import MISSING_FUNCTIONS, MISSING_ON_CTX
from groundhook.host.config import tree

_NO_PAGES = "there are no pages; clients use the HTTP API (`groundhook docs http`)"
# Folders of an app, or of a package, that nothing reads.
FOLDERS = {
    "aigcs": "make each an assistant",
    "apis": (
        "*.api.yao are sources (`groundhook docs turns`); the host serves its own API"
        " (`groundhook docs http`)"
    ),
    "data": "hooks have no file system; declare a collection or a model",
    "flows": "call functions of the package, or other assistants by ctx.agent.Call",
    "forms": _NO_PAGES,
    "pages": _NO_PAGES,
    "plugins": "use an MCP server, or a Python plug-in (`groundhook docs plugins`)",
    "public": _NO_PAGES,
    "robots": "there are no robots; call an assistant from a scheduler",
    "schedules": "run `groundhook chat` or `groundhook tools sync` from a scheduler",
    "services": "use functions of the package (`groundhook docs tools-and-mcp`)",
    "stores": "use ctx.memory",
    "tables": _NO_PAGES,
    "tasks": "run commands from a scheduler",
}
_KEYS = {
    "sandbox": "hooks and tools start no programs; use an MCP server",
    "workspace": "hooks have no file system; use ctx.memory",
    "robot": "there are no robots; call an assistant from a scheduler",
    "skills": "put the instructions into prompts.yml, and functions into src/tools.ts",
}
_CALLS = {
    **{rf"\bnew\s+{name}\(": hint for name, hint in MISSING_FUNCTIONS.items()},
    r"\bnew\s+WebSocket\(": "use http, or an MCP server",
    r"\bStudio\(": "Studio does not exist here",
}
# An argument, which may have calls and objects in it.
_ARGUMENT = r"(?:[^(){};]|\((?:[^();]|\([^();]*\))*\)|\{[^{};]*\})*?"
_KEPT_FOR = re.compile(
    rf"\bmemory(?:\?\.|\.)\w+(?:\?\.|\.)Set\({_ARGUMENT},{_ARGUMENT},\s*\d[\d\s_*]*\)"
)
_PROCESS = re.compile(r"""\bProcess\(\s*["'`]([\w.\-]+)""")
_OFFERED = re.compile(
    r"text\.(?:ExtractJSON|HTMLToMarkdown|MarkdownToHTML)|models\..+\.(?:Find|Get)|scripts\..+",
    re.IGNORECASE,
)
_CTX = re.compile(r"\bctx\.([A-Za-z_]\w*(?:\.[A-Z]\w*)?)")
_CREATE_MESSAGES = re.compile(r"return\s*\{[^}]*\bmessages\b")
_DECIDED = re.compile(r"\b(?:search|delegate)\b\s*:")
_COMMENT = re.compile(
    r"""("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)|//[^\n]*|/\*.*?\*/""", re.DOTALL
)
_HIGH_THRESHOLD = re.compile(r"""\bthreshold["']?\s*:\s*((?:0?\.[6-9]\d*|1(?:\.0*)?)(?![\d.]))""")
_NEAR = 200  # characters after `messages` in which the same object may set `search`


def yao_notes(root: Path, only: str = "") -> list[Problem]:
    """Return a warning for each such place in an app; with `only`, in one assistant."""
    found: list[Problem] = []
    if not only:
        found += _check_folders(root, root)
        for path in sorted((root / "scripts").rglob("*.[jt]s")):
            if "node_modules" not in path.parts:
                found += _check_calls(path, tree.shown(path, root))
        for path in (
            *sorted((root / "agent").glob("search.y*")),
            *sorted((root / "kb").glob("*.kb.yao")),
        ):
            found += _check_thresholds(_read_text(path), tree.shown(path, root))
    for package in tree.assistants(root):
        if only in ("", package.id):
            found += _check_folders(package.path, root)
            found += _check_keys(package)
            own = (package.path / name for name in tree.PACKAGES)
            for path in (*own, *sorted(package.path.glob("kb/*.kb.yao"))):
                found += _check_thresholds(_read_text(path), tree.shown(path, root))
            for path in sorted(package.path.rglob("*.[jt]s")):
                inner = path.relative_to(package.path).parts
                if not {"node_modules", "tests"}.intersection(inner):
                    found += _check_calls(path, tree.shown(path, root), package.id)
    return list(dict.fromkeys(found))  # the files of a package may be inside of another one


def _make_note(file: str, line: int, column: int, message: str, hint: str) -> Problem:
    return Problem("warning", message, Place(file, line, column), hint, "yao")


def _check_folders(folder: Path, root: Path) -> Iterator[Problem]:
    for name, hint in FOLDERS.items():
        if (folder / name).is_dir() and not any((folder / name).rglob("*.api.yao")):
            shown = tree.shown(folder / name, root)
            yield _make_note(shown, 0, 0, "nothing reads this folder", hint)


def _check_keys(package: tree.FoundPath) -> Iterator[Problem]:
    name = next(name for name in tree.PACKAGES if (package.path / name).is_file())
    text, file = _read_text(package.path / name), f"{package.shown}/{name}"
    for key, hint in _KEYS.items():
        for place in re.finditer(rf'"{key}"\s*:|^{key}\s*:', text, re.MULTILINE):
            yield _make_note(
                file, *_find_position(text, place.start()), f"{key!r} has no effect", hint
            )


def _check_thresholds(text: str, shown: str) -> Iterator[Problem]:
    for place in _HIGH_THRESHOLD.finditer(text):
        message = f"a threshold of {place[1]} drops more here: similarities are no cosines"
        hint = "the default is 0.3 (`groundhook docs knowledge-bases`)"
        yield _make_note(shown, *_find_position(text, place.start()), message, hint)


def _check_calls(path: Path, shown: str, id: str = "") -> Iterator[Problem]:
    text = _read_text(path)
    for pattern, hint in _CALLS.items():
        for place in re.finditer(pattern, text):
            name = place[0].rstrip("(")
            yield _make_note(
                shown, *_find_position(text, place.start()), f"{name} does not exist", hint
            )
    yield from _check_thresholds(text, shown)
    for place in _KEPT_FOR.finditer(text):
        message = "the time to live is in milliseconds"
        yield _make_note(
            shown,
            *_find_position(text, place.start()),
            message,
            "multiply seconds by 1000",
        )
    for place in _PROCESS.finditer(text):
        name = place[1]
        if not _OFFERED.fullmatch(name) and not name.startswith(f"agents.{id}."):
            hint = (
                "models are read only: Find and Get"
                if name.startswith("models.")
                else "`groundhook docs hooks` lists the processes"
            )
            yield _make_note(
                shown,
                *_find_position(text, place.start()),
                f"the process {name!r} does not exist",
                hint,
            )
    for place in _CTX.finditer(text):
        whole, first = place[1], place[1].partition(".")[0]
        missing = next((name for name in (whole, first) if name in MISSING_ON_CTX), None)
        if missing is not None:
            at = _find_position(text, place.start())
            yield _make_note(shown, *at, f"ctx.{missing} does not exist", MISSING_ON_CTX[missing])
    if path.name in ("index.ts", "index.js"):
        for place in _CREATE_MESSAGES.finditer(text):
            if _DECIDED.search(text, place.start(), place.end() + _NEAR):
                continue
            message = "a Create that returns messages ends the automatic search of the turn"
            yield _make_note(
                shown,
                *_find_position(text, place.start()),
                message,
                "return search: true as well to search nevertheless",
            )


def _read_text(path: Path) -> str:
    """Return the text of a file, with blanks in place of comments; "" if it cannot be read, which
    another check reports."""
    try:
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return ""
    return _COMMENT.sub(lambda found: found[1] or re.sub(r"[^\n]", " ", found[0]), text)


def _find_position(text: str, offset: int) -> tuple[int, int]:
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
