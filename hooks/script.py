"""The linker: makes one program for an isolate of a package's TypeScript files. Reads the files and
follows their imports (`hooks/imports.py`). `transpiling` is the compiler; with a warm cache
(`hooks/compiled_cache.py`) none is needed.

Finds the functions of a script: those at the top level of its file, and those that it exports
from imported files. Pure; executes nothing.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from groundhook.core.errors import ConfigError, HookSyntaxError, Place
from groundhook.core.hook_engine import HookScript, ScriptFunction
from groundhook.hooks.compiled_cache import CompiledFile, cache_key, load, save
from groundhook.hooks.imports import RUNTIME, Imports
from groundhook.hooks.program import (
    RUNTIME_MODULE,
    HookProgram,
    Module,
    function_of,
    link_text,
    name_of,
    non_function_error,
)
from groundhook.hooks.sourcemap import find_original

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


# file name, source, other files with types → the JSON that transpile.js describes
Transpile = Callable[[str, str, Mapping[str, Any]], Awaitable[str]]
Transpiling = Callable[[], AbstractAsyncContextManager[Transpile]]

MOST_FILES = 256
LARGEST_FILE = 8 * 1024 * 1024  # bytes of one file


class Linker:
    """Links packages and keeps each program until one of its files changes. The folder `cache` is
    made when it is first written to."""

    def __init__(self, cache: Path, transpiling: Transpiling) -> None:
        self._cache = cache
        self._transpiling = transpiling
        self._linking = anyio.Lock()
        self._linked: dict[HookScript, tuple[list[tuple[Path, object]], HookProgram]] = {}

    async def link(self, script: HookScript) -> HookProgram:
        """Return the program of a hook. Raises HookSyntaxError, with the place in the source."""
        known = self._find(script)
        if known is not None:
            return known
        # Turns that begin together compile once.
        async with self._linking, AsyncExitStack() as stack:
            known = self._find(script)
            if known is not None:
                return known
            linking = _Linking(script, self._cache, self._transpiling, stack)
            program = await linking.run()
            self._linked[script] = ([(path, _stamp(path)) for path in linking.seen], program)
        return program

    def _find(self, script: HookScript) -> HookProgram | None:
        stamps, program = self._linked.get(script, ([], None))
        return (
            program
            if script.revision or all(_stamp(path) == stamp for path, stamp in stamps)
            else None
        )

    @asynccontextmanager
    async def keep_compiler(self) -> AsyncIterator[None]:
        """Keep a compiler ready until the block is left."""
        async with self._transpiling() as transpile:
            await transpile("ready.ts", "", {})
            yield


class _Linking:
    """One pass over a package, from the entry outwards."""

    def __init__(
        self, script: HookScript, cache: Path, transpiling: Transpiling, stack: AsyncExitStack
    ) -> None:
        # files that were read, and absent ones that an import would have found first
        self.seen: list[Path] = []
        self._script = script
        self._imports = Imports(script, self.seen)
        self._root = script.root.resolve()
        self._entries = [entry.resolve() for entry in script.entries]
        self._cache = cache
        self._transpiling = transpiling
        self._stack = stack
        self._transpile: Transpile | None = None

    async def run(self) -> HookProgram:
        self.seen += self._script.entries
        for entry in self._script.entries:
            if not entry.is_file() or not entry.resolve().is_relative_to(self._root):
                name = entry.relative_to(self._script.root).as_posix()
                raise HookSyntaxError(
                    "the hook is not a file of its package",
                    place=Place(f"{self._script.shown}/{name}"),
                    hint="copy the file to which it links" if entry.is_symlink() else "",
                )
        paths, modules = list(self._entries), list[Module]()
        files: dict[Path, Linked] = {}
        while len(modules) < len(paths):  # which grow by what each file imports
            path = paths[len(modules)]
            compiled = await self._load(path)
            if self._script.by_name:
                compiled = await self._add_imported_types(path, compiled)
            targets = self._find_targets(path, compiled)
            paths += dict.fromkeys(each for each in targets.values() if each not in paths)
            if len(paths) > MOST_FILES:
                raise HookSyntaxError(
                    f"the hook consists of more than {MOST_FILES} files",
                    place=Place(self._display_path(path)),
                )
            files[path] = compiled, targets
            requires = {name: paths.index(target) for name, target in targets.items()}
            modules.append(
                Module(self._display_path(path), compiled.code, compiled.mappings, requires)
            )
        return self._make_program(modules, files)

    def _find_targets(self, path: Path, compiled: CompiledFile) -> dict[str, Path]:
        """Return the file of each import of a file."""
        return {
            name: self._imports.find(path, name, self._place(path, compiled, line, column))
            for name, line, column in compiled.requires
        }

    def _make_program(self, modules: Sequence[Module], files: Mapping[Path, Linked]) -> HookProgram:
        functions = [
            each
            for path in self._entries
            for each in exported_functions(path, files, self._display_path)
        ]
        if self._script.by_name:
            require_schemas(functions)
        called = [each.name for each in functions] if self._script.by_name else ()
        renamed = dict(self._script.functions)
        text = link_text(modules, len(self._entries), called, renamed)
        names = [
            name_of(each, self._display_path(path))
            for path, (compiled, _) in files.items()
            for each in compiled.names
        ]
        return HookProgram(tuple(modules), text, json.dumps(text), tuple(functions), tuple(names))

    async def _load(self, path: Path) -> CompiledFile:
        """Return a compiled file, from the cache if it is there."""
        if path == RUNTIME:
            return CompiledFile(RUNTIME_MODULE)
        source = await self._read_source(path)
        if path.suffix == ".json":
            return CompiledFile(_make_json_module(source, self._display_path(path)))
        return await self._compile_cached(path, source)

    async def _add_imported_types(self, path: Path, compiled: CompiledFile) -> CompiledFile:
        """Return a file with the schemas of those of its functions that name types of other
        files."""
        unread = [each for function in compiled.functions for each in function["unread"]]
        if not any(each["imported"] for each in unread):
            return compiled
        return await self._compile_cached(
            path, await self._read_source(path), await self._collect_types(path)
        )

    async def _collect_types(self, path: Path) -> dict[str, Any]:
        """Return the files of the package that a file imports, and those that they import, for
        their types: {name: {source, targets}}, as transpile.js takes them. What is above the limits
        is omitted."""
        found: dict[str, Any] = {}
        waiting, size = [path], 0
        while waiting and len(found) < MOST_FILES and size <= LARGEST_FILE:
            path = waiting.pop(0)
            if self._display_path(path) in found:
                continue
            source = await self._read_source(path)
            imports = (await self._compile_cached(path, source)).imports
            targets = {name: self._imports.find_types(path, name) for name in imports}
            size += len(source)
            found[self._display_path(path)] = {
                "source": source,
                "targets": {
                    name: self._display_path(each) for name, each in targets.items() if each
                },
            }
            waiting += [each for each in targets.values() if each]
        return found

    async def _read_source(self, path: Path) -> str:
        self.seen.append(path)
        return await anyio.to_thread.run_sync(self._read, path)

    async def _compile_cached(
        self, path: Path, source: str, others: Mapping[str, Any] | None = None
    ) -> CompiledFile:
        """Return a compiled file, from the cache if it is there."""
        key = cache_key(path.suffix, json.dumps([source, others]) if others else source)
        found = await anyio.to_thread.run_sync(load, self._cache, key)
        if found is None:
            found = await self._compile(path, source, others or {})
            await anyio.to_thread.run_sync(save, self._cache, key, found)
        return found

    async def _compile(self, path: Path, source: str, others: Mapping[str, Any]) -> CompiledFile:
        if self._transpile is None:
            self._transpile = await self._stack.enter_async_context(self._transpiling())
        # The compiler emits nothing for a file of declarations, and fails.
        name = self._display_path(path) if others else path.name.replace(".d.ts", ".ts")
        answer = json.loads(await self._transpile(name, source, others))
        for error in answer["errors"]:
            raise HookSyntaxError(
                error["message"],
                place=Place(self._display_path(path), error["line"] + 1, error["column"] + 1),
            )
        hooks = path in self._entries and not self._script.by_name
        for value in answer["values"] if hooks else ():
            raise non_function_error(
                value["name"],
                value["kind"],
                Place(self._display_path(path), value["line"] + 1, value["column"] + 1),
            )
        requires = [(entry["name"], entry["line"], entry["column"]) for entry in answer["requires"]]
        return CompiledFile(
            answer["code"],
            answer["mappings"],
            requires,
            answer["functions"],
            answer["reexports"],
            answer["imports"],
            answer["names"],
        )

    def _read(self, path: Path) -> str:
        try:
            if path.stat().st_size > LARGEST_FILE:
                raise HookSyntaxError(
                    f"is larger than {LARGEST_FILE // 1024**2} MB",
                    place=Place(self._display_path(path)),
                    hint="a hook reads large data by searching it",
                )
            return path.read_text(encoding="utf-8-sig")
        except OSError as exc:
            raise HookSyntaxError(
                f"cannot be read: {exc.strerror}", place=Place(self._display_path(path))
            ) from exc
        except UnicodeDecodeError as exc:
            raise HookSyntaxError(
                "is not UTF-8 text", place=Place(self._display_path(path))
            ) from exc

    def _place(self, path: Path, compiled: CompiledFile, line: int, column: int) -> Place:
        found = find_original(compiled.mappings, line, column) or (0, 0)
        return Place(self._display_path(path), found[0] + 1, found[1] + 1)

    def _display_path(self, path: Path) -> str:
        return (
            RUNTIME.as_posix()
            if path == RUNTIME
            else f"{self._script.shown}/{path.relative_to(self._root).as_posix()}"
        )


def _make_json_module(source: str, shown: str) -> str:
    try:
        value = json.loads(source)
    except json.JSONDecodeError as exc:
        raise HookSyntaxError(
            f"is not JSON: {exc.msg}", place=Place(shown, exc.lineno, exc.colno)
        ) from exc
    except (ValueError, RecursionError) as exc:
        raise HookSyntaxError(
            "is JSON with a number too long or nested too deeply", place=Place(shown)
        ) from exc
    return f"module.exports = JSON.parse({json.dumps(json.dumps(value))});"


def _stamp(path: Path) -> object:
    """Return a value that changes when the file does; None while there is no file."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
