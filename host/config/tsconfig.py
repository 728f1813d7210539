"""The part of a package's `tsconfig.json` that applies when its hook runs: aliases of its files
(`compilerOptions.paths`).

Everything else in it is for editors. Names of the runtime's own modules (`@yao/…`) are skipped:
they point editors at declarations.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

from groundhook.core.errors import ConfigError
from groundhook.host.config.documents import Document, read_document

FILE = "tsconfig.json"
RUNTIME = "@yao/"

Paths = tuple[tuple[str, tuple[str, ...]], ...]


def import_paths(folder: Path, shown: str) -> Paths:
    """Return the patterns with their paths below `folder`; () without the file. Raises
    ConfigError."""
    path = folder / FILE
    if not path.is_file():
        return ()
    document = read_document(path, f"{shown}/{FILE}")
    base = document.at(("compilerOptions", "baseUrl"))
    paths = document.at(("compilerOptions", "paths"))
    if paths is None:
        return ()
    if not isinstance(paths, dict):
        raise _make_error(document, (), 'should be an object such as {"@lib/*": ["./src/lib/*"]}')
    below = base if isinstance(base, str) else "."
    return tuple(
        (
            pattern,
            tuple(
                _join_path(document, below, pattern, index, target)
                for index, target in enumerate(_targets(document, pattern, targets))
            ),
        )
        for pattern, targets in paths.items()
        if not pattern.startswith(RUNTIME)
    )


def _targets(document: Document, pattern: str, targets: Any) -> list[Any]:
    if pattern.count("*") > 1:
        raise _make_error(document, (pattern,), f"{pattern!r} may have one star")
    if not isinstance(targets, list):
        raise _make_error(document, (pattern,), "should be a list of places")
    return targets


def _join_path(document: Document, base: str, pattern: str, index: int, target: Any) -> str:
    if not isinstance(target, str) or target.count("*") > 1:
        raise _make_error(document, (pattern, index), "should be a path with at most one star")
    return (PurePosixPath(base) / target).as_posix()


def _make_error(document: Document, path: tuple[str | int, ...], message: str) -> ConfigError:
    return ConfigError(message, place=document.place(("compilerOptions", "paths", *path)))
