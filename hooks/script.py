"""The linker: makes one program for an isolate of a package's TypeScript files. Reads the files and
resolves their imports: relative paths, and names that the package maps to paths. After following
symbolic links, an import must be inside the package. `transpiling` is the compiler; with a warm
cache (`hooks/compiled_cache.py`) none is needed.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread

from groundhook.hooks.compiled_cache import CompiledFile, cache_key, load, save
from groundhook.hooks.exported import Linked, exported_functions, require_schemas
from groundhook.hooks.program import (
    RUNTIME_MODULE,
    Module,
    Program,
    link_text,
    not_a_function,
)
from groundhook.hooks.sourcemap import original
from groundhook.host.core.errors import HookSyntaxError, Place
from groundhook.host.core.hook_engine import HookScript

# file name, source → the JSON that transpile.js describes
Transpile = Callable[[str, str], Awaitable[str]]
Transpiling = Callable[[], AbstractAsyncContextManager[Transpile]]

SUFFIXES = (".ts", ".js", ".json")
MOST_FILES = 256
RUNTIME = Path("@yao/runtime")  # modules of the runtime itself (`@yao/…`)
LARGEST_FILE = 8 * 1024 * 1024  # bytes of one file


class Linker:
    """Links packages and keeps each program until one of its files changes. The folder `cache` is
    made when it is first written to."""

    def __init__(self, cache: Path, transpiling: Transpiling) -> None:
        self._cache = cache
        self._transpiling = transpiling
        self._linking = anyio.Lock()
        self._linked: dict[HookScript, tuple[list[tuple[Path, object]], Program]] = {}

    async def link(self, script: HookScript) -> Program:
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

    def _find(self, script: HookScript) -> Program | None:
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
            await transpile("ready.ts", "")
            yield


class _Linking:
    """One pass over a package, from the entry outwards."""

    def __init__(
        self, script: HookScript, cache: Path, transpiling: Transpiling, stack: AsyncExitStack
    ) -> None:
        # files that were read, and absent ones that an import would have found first
        self.seen: list[Path] = []
        self._script = script
        self._root = script.root.resolve()
        self._entries = [entry.resolve() for entry in script.entries]
        self._cache = cache
        self._transpiling = transpiling
        self._stack = stack
        self._transpile: Transpile | None = None

    async def run(self) -> Program:
        self.seen += self._script.entries
        paths, modules = list(self._entries), list[Module]()
        files: dict[Path, Linked] = {}
        for entry in self._entries:
            if not entry.is_file() or not entry.is_relative_to(self._root):
                raise HookSyntaxError(
                    "the hook is not a file of its package",
                    place=Place(f"{self._script.shown}/{entry.name}"),
                )
        while len(modules) < len(paths):
            path = paths[len(modules)]
            compiled = await self._load(path)
            requires = {}
            for name, line, column in compiled.requires:
                target = self._resolve(path, name, self._place(path, compiled, line, column))
                if target not in paths:
                    paths.append(target)
                requires[name] = paths.index(target)
            files[path] = compiled, {name: paths[index] for name, index in requires.items()}
            if len(paths) > MOST_FILES:
                raise HookSyntaxError(
                    f"the hook consists of more than {MOST_FILES} files",
                    place=Place(self._shown(path)),
                )
            modules.append(Module(self._shown(path), compiled.code, compiled.mappings, requires))
        functions = [
            each for path in self._entries for each in exported_functions(path, files, self._shown)
        ]
        if self._script.by_name:
            require_schemas(functions)
        called = [each.name for each in functions] if self._script.by_name else ()
        text = link_text(modules, len(self._entries), called)
        return Program(tuple(modules), text, json.dumps(text), tuple(functions))

    async def _load(self, path: Path) -> CompiledFile:
        """Return a compiled file, from the cache if it is there."""
        if path == RUNTIME:
            return CompiledFile(RUNTIME_MODULE)
        self.seen.append(path)
        source = await anyio.to_thread.run_sync(self._read, path)
        if path.suffix == ".json":
            return CompiledFile(_json_module(source, self._shown(path)))
        key = cache_key(path.suffix, source)
        found = await anyio.to_thread.run_sync(load, self._cache, key)
        if found is None:
            found = await self._compile(path, source)
            await anyio.to_thread.run_sync(save, self._cache, key, found)
        return found

    async def _compile(self, path: Path, source: str) -> CompiledFile:
        if self._transpile is None:
            self._transpile = await self._stack.enter_async_context(self._transpiling())
        answer = json.loads(await self._transpile(path.name, source))
        for error in answer["errors"]:
            raise HookSyntaxError(
                error["message"],
                place=Place(self._shown(path), error["line"] + 1, error["column"] + 1),
            )
        hooks = path in self._entries and not self._script.by_name
        for value in answer["values"] if hooks else ():
            raise not_a_function(
                value["name"],
                value["kind"],
                Place(self._shown(path), value["line"] + 1, value["column"] + 1),
            )
        requires = [(entry["name"], entry["line"], entry["column"]) for entry in answer["requires"]]
        return CompiledFile(
            answer["code"], answer["mappings"], requires, answer["functions"], answer["reexports"]
        )

    def _read(self, path: Path) -> str:
        try:
            if path.stat().st_size > LARGEST_FILE:
                raise HookSyntaxError(
                    f"is larger than {LARGEST_FILE // 1024**2} MB",
                    place=Place(self._shown(path)),
                    hint="a hook reads large data by searching it",
                )
            return path.read_text(encoding="utf-8-sig")
        except OSError as exc:
            raise HookSyntaxError(
                f"cannot be read: {exc.strerror}", place=Place(self._shown(path))
            ) from exc
        except UnicodeDecodeError as exc:
            raise HookSyntaxError("is not UTF-8 text", place=Place(self._shown(path))) from exc

    def _resolve(self, importer: Path, name: str, place: Place) -> Path:
        if name.startswith("@yao/"):
            return RUNTIME
        bases = list(self._bases(importer, name))
        if not bases:
            raise HookSyntaxError(f"cannot import {name!r}", place=place, hint=_import_hint(name))
        for candidate in (candidate for base in bases for candidate in _candidates(base)):
            self.seen.append(candidate)
            if not _is_file(candidate):
                continue
            found = candidate.resolve()
            if not found.is_relative_to(self._root):
                hint = "imports must stay inside the package; copy the file into it"
                raise HookSyntaxError(
                    f"the import {name!r} leads outside {self._script.shown}",
                    place=place,
                    hint=hint,
                )
            if found.suffix not in SUFFIXES:
                raise HookSyntaxError(
                    f"the import {name!r} is not a script",
                    place=place,
                    hint="only .ts, .js and .json can be imported",
                )
            return found
        if not any(Path(os.path.normpath(base)).is_relative_to(self._root) for base in bases):
            hint = "imports must stay inside the package"
            raise HookSyntaxError(
                f"the import {name!r} leads outside {self._script.shown}", place=place, hint=hint
            )
        raise HookSyntaxError(
            f"the import {name!r} finds no file",
            place=place,
            hint="tried .ts, .js, .json, /index.ts and /index.js",
        )

    def _bases(self, importer: Path, name: str) -> Iterator[Path]:
        """Yield the paths that an import may mean, by the package's pattern that matches best."""
        if name.startswith(("./", "../")) or name in (".", ".."):
            yield importer.parent / name
            return
        fitting = [
            (fit, targets)
            for pattern, targets in self._script.paths
            if (fit := _match(pattern, name)) is not None
        ]
        best = max((fit for fit, _ in fitting), default=None)
        for fit, targets in fitting:
            if fit == best:
                yield from (self._root / target.replace("*", fit[1]) for target in targets)

    def _place(self, path: Path, compiled: CompiledFile, line: int, column: int) -> Place:
        found = original(compiled.mappings, line, column) or (0, 0)
        return Place(self._shown(path), found[0] + 1, found[1] + 1)

    def _shown(self, path: Path) -> str:
        return (
            RUNTIME.as_posix()
            if path == RUNTIME
            else f"{self._script.shown}/{path.relative_to(self._root).as_posix()}"
        )


def _candidates(base: Path) -> Iterator[Path]:
    """Yield the files that an import may mean, best first; `./lib.js` may mean `lib.ts`, as in
    TypeScript."""
    yield base
    if base.suffix == ".js":
        yield base.with_suffix(".ts")
    for suffix in SUFFIXES:
        yield (
            base.with_name(base.name + suffix)
            if base.name not in ("", "..")
            else base / f"index{suffix}"
        )
    yield base / "index.ts"
    yield base / "index.js"


def _import_hint(name: str) -> str:
    if name == "groundhook":
        return "it has types only: import nothing from it that is used as a value"
    return (
        "only files of the package can be imported, by a path that begins with ./ or ../ or a name"
        " in its tsconfig.json"
    )


def _match(pattern: str, name: str) -> tuple[int, str] | None:
    """Match a name against a pattern: the length before the star, and the text in the star's place;
    None when it does not match."""
    before, star, after = pattern.partition("*")
    if not star:
        return (len(name) + 1, "") if name == pattern else None
    fits = (
        len(name) >= len(before) + len(after) and name.startswith(before) and name.endswith(after)
    )
    return (len(before), name[len(before) : len(name) - len(after)]) if fits else None


def _json_module(source: str, shown: str) -> str:
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


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # for example a name that is too long
        return False


def _stamp(path: Path) -> object:
    """Return a value that changes when the file does; None while there is no file."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
