"""From a package's TypeScript to one program for an isolate.

Owns reading the files, what may be imported (relative paths, and the names that the package gave to
paths, as long as they stay inside the package after symbolic links are followed), the on-disk cache
of compiled files, and the way back from an emitted place to the source. Compiling itself is done by
whoever is passed as `transpiling`; a start with a warm cache needs no compiler at all.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from groundhook.hooks.sourcemap import original
from groundhook.host.core.errors import HookSyntaxError, Place
from groundhook.host.core.ports import HookScript

Transpile = Callable[
    [str, str], Awaitable[str]
]  # file name, source → the JSON that transpile.js describes
Transpiling = Callable[[], AbstractAsyncContextManager[Transpile]]

VERSION = "6/typescript-5.7.3"  # of what is cached
SUFFIXES = (".ts", ".js", ".json")
MOST_FILES = 256
RUNTIME = Path(
    "@yao/runtime"
)  # what modules of the runtime's own name (`@yao/…`) are: the globals under their names
GLOBALS = """module.exports = new Proxy({}, {
  get(_, name) {
    if (name === "default") return module.exports;
    if (name === "__esModule") return true;
    if (name in globalThis) return globalThis[name];
    if (typeof name === "symbol" || name === "then") return undefined;
    throw new Error(name + " is not offered by this host, so it cannot be imported");
  },
});"""
LARGEST_FILE = 8 * 1024 * 1024  # bytes of one file
BEFORE, AFTER = "(function (exports, require, module) {\n", "\n})\n//# sourceURL=hook:"
PICK = (
    "\nreturn {"
    + ", ".join(f'{n}: typeof {n} === "undefined" ? undefined : {n}' for n in ("Create", "Next"))
    + "};"
)


@dataclass(frozen=True)
class Module:
    """One file of a program. `requires` maps what the emitted code asks for to positions in
    `Program.modules`."""

    file: str
    code: str
    mappings: str
    requires: Mapping[str, int]


@dataclass(frozen=True)
class Program:
    """A package's hook, linked: the entry first. `text` is what the prelude's `compile` takes,
    `literal` the same as a JavaScript literal."""

    modules: tuple[Module, ...]
    text: str
    literal: str

    def place(self, index: int, line: int, column: int) -> Place:
        """Where a place in the script `hook:<index>` comes from; lines and columns from 1."""
        module = self.modules[index]
        found = original(module.mappings, line - 2, column - 1)  # the wrapper is a line of its own
        return (
            Place(module.file, found[0] + 1, found[1] + 1)
            if found
            else Place(module.file, max(line - 1, 1), column)
        )


@dataclass
class _Compiled:
    """A file as the compiler left it: `requires` are (name, emitted line, emitted column)."""

    code: str
    mappings: str = ""
    requires: list[tuple[str, int, int]] = field(default_factory=list)


class Linker:
    """Links packages, remembering each until one of its files changes. `cache` is made when first
    written to."""

    def __init__(self, cache: Path, transpiling: Transpiling) -> None:
        self._cache = cache
        self._transpiling = transpiling
        self._linking = anyio.Lock()
        self._linked: dict[HookScript, tuple[list[tuple[Path, object]], Program]] = {}

    async def link(self, script: HookScript) -> Program:
        """Raises HookSyntaxError, with the place in the source."""
        known = self._known(script)
        if known is not None:
            return known
        async with self._linking, AsyncExitStack() as stack:  # turns that come at once compile once
            known = self._known(script)
            if known is not None:
                return known
            linking = _Linking(script, self._cache, self._transpiling, stack)
            program = await linking.run()
            self._linked[script] = ([(path, _stamp(path)) for path in linking.seen], program)
        return program

    def _known(self, script: HookScript) -> Program | None:
        stamps, program = self._linked.get(script, ([], None))
        return (
            program
            if script.revision or all(_stamp(path) == stamp for path, stamp in stamps)
            else None
        )

    @asynccontextmanager
    async def at_hand(self) -> AsyncIterator[None]:
        """Keep a compiler that is ready, for as long as the block lasts."""
        async with self._transpiling() as transpile:
            await transpile("ready.ts", "")
            yield


class _Linking:
    """One pass over a package, from the entry outwards."""

    def __init__(
        self, script: HookScript, cache: Path, transpiling: Transpiling, stack: AsyncExitStack
    ) -> None:
        self.seen: list[
            Path
        ] = []  # files that were read, and those that would have been taken if they had been there
        self._script = script
        self._root = script.root.resolve()
        self._cache = cache
        self._transpiling = transpiling
        self._stack = stack
        self._transpile: Transpile | None = None

    async def run(self) -> Program:
        self.seen.append(self._script.entry)
        entry = self._script.entry.resolve()
        if not entry.is_file() or not entry.is_relative_to(self._root):
            raise HookSyntaxError(
                "the hook is not a file of its package",
                place=Place(f"{self._script.shown}/{self._script.entry.name}"),
            )
        paths, modules = [entry], list[Module]()
        while len(modules) < len(paths):
            path = paths[len(modules)]
            compiled = await self._compiled(path)
            requires = {}
            for name, line, column in compiled.requires:
                target = self._resolve(path, name, self._place(path, compiled, line, column))
                if target not in paths:
                    paths.append(target)
                requires[name] = paths.index(target)
            if len(paths) > MOST_FILES:
                raise HookSyntaxError(
                    f"the hook consists of more than {MOST_FILES} files",
                    place=Place(self._shown(path)),
                )
            modules.append(Module(self._shown(path), compiled.code, compiled.mappings, requires))
        text = _text(modules)
        return Program(tuple(modules), text, json.dumps(text))

    async def _compiled(self, path: Path) -> _Compiled:
        if path == RUNTIME:
            return _Compiled(GLOBALS)
        self.seen.append(path)
        source = await anyio.to_thread.run_sync(self._read, path)
        if path.suffix == ".json":
            return _Compiled(_json_module(source, self._shown(path)))
        key = hashlib.sha256(f"{VERSION}\n{path.suffix}\n{source}".encode()).hexdigest()
        kept = self._cache / f"{key}.json"
        found = await anyio.to_thread.run_sync(_load, kept, key)
        if found is None:
            found = await self._compile(path, source)
            await anyio.to_thread.run_sync(_save, kept, key, found)
        return found

    async def _compile(self, path: Path, source: str) -> _Compiled:
        if self._transpile is None:
            self._transpile = await self._stack.enter_async_context(self._transpiling())
        answer = json.loads(await self._transpile(path.name, source))
        for error in answer["errors"]:
            raise HookSyntaxError(
                error["message"],
                place=Place(self._shown(path), error["line"] + 1, error["column"] + 1),
            )
        for value in answer["values"] if path == self._script.entry.resolve() else ():
            raise no_function(
                value["name"],
                value["kind"],
                Place(self._shown(path), value["line"] + 1, value["column"] + 1),
            )
        requires = [(entry["name"], entry["line"], entry["column"]) for entry in answer["requires"]]
        return _Compiled(answer["code"], answer["mappings"], requires)

    def _read(self, path: Path) -> str:
        try:
            if path.stat().st_size > LARGEST_FILE:
                said = f"is larger than {LARGEST_FILE // 1024**2} MB"
                raise HookSyntaxError(
                    said,
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
            raise HookSyntaxError(f"cannot import {name!r}", place=place, hint=_instead(name))
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
                    f"the import {name!r} is no script",
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
        """Where an import may lead, by the pattern of the package's own that fits it best."""
        if name.startswith(("./", "../")) or name in (".", ".."):
            yield importer.parent / name
            return
        fitting = [
            (fit, targets)
            for pattern, targets in self._script.paths
            if (fit := _fit(pattern, name)) is not None
        ]
        best = max((fit for fit, _ in fitting), default=None)
        for fit, targets in fitting:
            if fit == best:
                yield from (self._root / target.replace("*", fit[1]) for target in targets)

    def _place(self, path: Path, compiled: _Compiled, line: int, column: int) -> Place:
        found = original(compiled.mappings, line, column) or (0, 0)
        return Place(self._shown(path), found[0] + 1, found[1] + 1)

    def _shown(self, path: Path) -> str:
        return (
            RUNTIME.as_posix()
            if path == RUNTIME
            else f"{self._script.shown}/{path.relative_to(self._root).as_posix()}"
        )


def no_function(name: str, kind: str, place: Place) -> HookSyntaxError:
    """A hook's name stands for a value."""
    article = "an" if kind[0] in "aeiou" else "a"
    hint = f"the host calls {name}: make it a function, or name what it is otherwise"
    return HookSyntaxError(f"{name} is {article} {kind}, not a function", place=place, hint=hint)


def _text(modules: list[Module]) -> str:
    entries = []
    for index, module in enumerate(modules):
        # The runtime's own module is no place in the package: what it throws was thrown by whoever
        # asked it.
        end = AFTER + ("runtime" if module.code == GLOBALS else str(index))
        code = BEFORE + module.code + (PICK if index == 0 else "") + end
        entries.append({"code": code, "requires": module.requires})
    return json.dumps(entries)


def _candidates(base: Path) -> Iterator[Path]:
    """Files that an import may mean, best first; `./lib.js` may mean `lib.ts`, as TypeScript has
    it."""
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


def _instead(name: str) -> str:
    if name == "groundhook":
        return "it offers types only: import nothing from it that is used as a value"
    return (
        "only files of the package can be imported, by a path that begins with ./ or ../ or a name"
        " in its tsconfig.json"
    )


def _fit(pattern: str, name: str) -> tuple[int, str] | None:
    """How well a pattern fits (the length of what stands before the star) and what its star stands
    for; None when it does not."""
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
    except OSError:  # such as a name that is too long
        return False


def _stamp(path: Path) -> object:
    """Changes when the file does; None while there is none."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _load(path: Path, key: str) -> _Compiled | None:
    """What was kept under `key`; None when there is nothing, or when it is not what was kept: then
    it is compiled again."""
    try:
        if not path.is_file() or path.stat().st_size > 4 * LARGEST_FILE:
            return None
        raw: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        requires = [(str(name), int(line), int(column)) for name, line, column in raw["requires"]]
        found = _Compiled(str(raw["code"]), str(raw["mappings"]), requires)
        return found if raw["digest"] == _digest(key, found) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _save(path: Path, key: str, compiled: _Compiled) -> None:
    fresh = path.with_suffix(f".{os.getpid()}")
    with suppress(OSError):  # a cache that cannot be written costs time, nothing else
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.unlink(missing_ok=True)
        with fresh.open(
            "x", encoding="utf-8"
        ) as file:  # never through a link that somebody has put there
            file.write(json.dumps({**vars(compiled), "digest": _digest(key, compiled)}))
        fresh.replace(path)


def _digest(key: str, compiled: _Compiled) -> str:
    """Binds what was compiled to what it was compiled from: an entry that was cut, or copied from
    another, does not fit."""
    whole = json.dumps([key, compiled.code, compiled.mappings, compiled.requires])
    return hashlib.sha256(whole.encode()).hexdigest()
