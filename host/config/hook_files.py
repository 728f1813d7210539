"""Finds the files of a package with its hook, its tools and the functions that it calls by name.
Reads tsconfig.json, and no script.

The part of a package's `tsconfig.json` that applies when its hook runs: aliases of its files
(`compilerOptions.paths`).

Everything else in it is for editors. Names of the runtime's own modules (`@yao/…`) are skipped:
they point editors at declarations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from groundhook.core.errors import ConfigError
from groundhook.core.hook_engine import HookScript
from groundhook.host.config import tree
from groundhook.host.config.documents import ConfigDocument, read_document
from groundhook.host.config.validate import ValidDocument

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


def _targets(document: ConfigDocument, pattern: str, targets: Any) -> list[Any]:
    if pattern.count("*") > 1:
        raise _make_error(document, (pattern,), f"{pattern!r} may have one star")
    if not isinstance(targets, list):
        raise _make_error(document, (pattern,), "should be a list of places")
    return targets


def _join_path(document: ConfigDocument, base: str, pattern: str, index: int, target: Any) -> str:
    if not isinstance(target, str) or target.count("*") > 1:
        raise _make_error(document, (pattern, index), "should be a path with at most one star")
    return (PurePosixPath(base) / target).as_posix()


def _make_error(document: ConfigDocument, path: tuple[str | int, ...], message: str) -> ConfigError:
    return ConfigError(message, place=document.place(("compilerOptions", "paths", *path)))


def hook_script(found: tree.FoundPath, checked: ValidDocument | None) -> HookScript | None:
    """Return the hook of a package: the files that `hooks.create` and `hooks.next` name, with or
    without a function (`src/index.ts:Next`), else the first of the usual ones. Raises ConfigError
    for a file that does not exist."""
    usual = next(iter(tree.hooks(found.path)), None)
    named = {hook: _hook_file(found, checked, hook.lower()) for hook in ("Create", "Next")}
    create, after = (path or usual for path, _ in named.values())
    entry = create or after
    if entry is None:
        return None
    return HookScript(
        entry=entry,
        next_entry=after if after != entry else None,
        root=found.path,
        shown=found.shown,
        paths=import_paths(found.path, found.shown),
        functions=tuple(
            (hook, function) for hook, (_, function) in named.items() if function not in ("", hook)
        ),
    )


TOOLS = "tools"
SCRIPTS = "scripts"  # folder of an app with functions for all its packages
_SCRIPT = re.compile(r"[\w-]+(\.[\w-]+){0,7}")
_FUNCTION = re.compile(r"[A-Za-z_$][\w$]*")
_FOLDERS = ("src", "", SCRIPTS)


def script_file(
    folder: Path, shown: str, name: str, folders: Sequence[str] = _FOLDERS
) -> HookScript | None:
    """Return the script `name` of a package, whose functions are called by their names:
    `src/<name>.ts`, `<name>.ts` or `scripts/<name>.ts` (or .js), where a dot in the name is a
    folder; None when there is no such file. Raises ConfigError for a broken tsconfig.json."""
    if not _SCRIPT.fullmatch(name):
        return None
    root = folder.resolve()
    for within in folders:
        for ending in (".ts", ".js"):
            path = folder / within / (name.replace(".", "/") + ending)
            if path.is_file() and path.resolve().is_relative_to(root):
                paths = import_paths(folder, shown)
                return HookScript(entry=path, root=folder, shown=shown, paths=paths, by_name=True)
    return None


def _hook_file(
    found: tree.FoundPath, checked: ValidDocument | None, name: str
) -> tuple[Path | None, str]:
    """Return the file that a key of `hooks` names, and the function if it names one."""
    section = checked.data.get("hooks") if checked else None
    written = section.get(name) if isinstance(section, Mapping) else None
    if checked is None or not isinstance(written, str) or not written:
        return None, ""
    file, colon, function = written.rpartition(":")
    base = found.path / (file if colon else written)
    for path in (base, *(base.with_name(f"{base.name}.{ending}") for ending in ("ts", "js"))):
        if path.is_file() and path.resolve().is_relative_to(found.path.resolve()):
            if colon and not _FUNCTION.fullmatch(function):
                raise ConfigError(
                    f"'hooks.{name}': {function!r} is not the name of a function",
                    place=checked.place(("hooks", name)),
                    hint="file and function, such as src/index.ts:Next",
                )
            return path, function if colon else ""
    raise ConfigError(
        f"'hooks.{name}': no file {written!r} in this package",
        place=checked.place(("hooks", name)),
        hint="a path below the package's folder, such as src/create.ts, or src/create.ts:Create",
    )
