"""Finds the functions of a script: those at the top level of its file, and those that it exports
from imported files. Pure; executes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from groundhook.core.errors import ConfigError
from groundhook.core.hook_engine import ScriptFunction
from groundhook.hooks.compiled_cache import CompiledFile
from groundhook.hooks.program import function_of

Linked = tuple[CompiledFile, Mapping[str, Path]]  # a file, and what the names of its imports mean


def exported_functions(
    path: Path,
    files: Mapping[Path, Linked],
    shown: Callable[[Path], str],
    above: tuple[Path, ...] = (),
) -> list[ScriptFunction]:
    """Return the functions of a file and those that it exports from other files, by their exported
    names. Its own functions replace others of the same name."""
    compiled, targets = files[path]
    found = {each["name"]: function_of(each, shown(path)) for each in compiled.functions}
    for reexport in compiled.reexports:
        target = targets.get(reexport["from"])
        if target is None or target in (path, *above):  # none: types alone
            continue
        functions = exported_functions(target, files, shown, (*above, path))
        others = {each.name: each for each in functions if each.exported}
        # As in JavaScript, `export *` leaves out what is exported as `default`.
        names = reexport["names"] or {name: name for name in others if name != "default"}
        for name, theirs in names.items():
            function = others.get(
                _find_default(files[target][0]) if theirs == "default" else theirs
            )
            if function is not None:
                found.setdefault(name, replace(function, name=name))
    return list(found.values())


def require_schemas(functions: Iterable[ScriptFunction]) -> None:
    """Raise ConfigError for a function whose entry in `schemas` is not an object."""
    for function in functions:
        if not isinstance(function.parameters, Mapping):
            raise ConfigError(
                f"schemas.{function.name} is not a JSON Schema: must be an object",
                place=function.place,
                hint="write {type: 'object', properties: {…}}, or leave it out",
            )


def _find_default(compiled: CompiledFile) -> str:
    """Return the name of the function that a file exports as its default; "" without one."""
    return next((each["name"] for each in compiled.functions if each["is_default"]), "")
