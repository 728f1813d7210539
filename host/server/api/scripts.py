"""Lines of an assistant's scripts for its authors, to which log lines and warnings lead."""

from __future__ import annotations

from pathlib import Path

from anyio import to_thread
from starlette.responses import Response

from groundhook.core.errors import UnknownName, UsageError
from groundhook.host.config import tree
from groundhook.host.config.package import Package
from groundhook.host.server.api.knowledge import json_answer
from groundhook.host.server.serving import Call

AROUND = 12  # lines before and after the one that is named
_LARGEST = 1_000_000  # bytes of a script


async def lines(call: Call) -> Response:
    """Return the lines of a script around one of them."""
    package = call.serving.package(call.caller, call.request.path_params["assistant"])
    file = call.request.query_params.get("file", "")
    line = call.request.query_params.get("line", "")
    if not (line.isascii() and line.isdecimal() and 0 < len(line) < 8):
        raise UsageError("line must be a whole number")
    root = call.serving.host.app.root
    text = await to_thread.run_sync(_read, package, file, root)
    every = text.split("\n")
    first = max(1, min(int(line), len(every)) - AROUND)
    shown = every[first - 1 : first + 2 * AROUND]
    return json_answer({"file": file, "first": first, "lines": shown})


def _read(package: Package, file: str, root: Path) -> str:
    """Return a script of the package, by its path in the package's folder or in the app's. Raises
    UnknownName, also for what a link leads out of the app to."""
    scripts = {path.relative_to(package.folder).as_posix(): path for path in _scripts(package)}
    path = scripts.get(file.removeprefix(f"{package.shown}/"))
    if path is None or not path.resolve().is_relative_to(root.resolve()):
        raise UnknownName("script", file[:200], ())
    if path.stat().st_size > _LARGEST:
        raise UsageError("the script is too large to be shown")
    return path.read_text(encoding="utf-8", errors="replace")


def _scripts(package: Package) -> list[Path]:
    return [path for path in tree.scripts(package.folder) if path.is_file()]
