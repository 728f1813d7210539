"""An app while its author works on it: files are watched, and what has changed is swapped in one
step.

Turns take `Live.host` when they begin and keep it, so those in flight finish on what they began
with. What is broken does not replace what was good: of an assistant, a declaration, the app's own
files each. Everything that a turn may read of an assistant is read before the swap, and its hook is
compiled then, so nothing of a later edit shows before its own swap.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from watchfiles import awatch

from groundhook.host.app.host import Host
from groundhook.host.config import tree
from groundhook.host.config.catalogue import Catalogue
from groundhook.host.config.packages import App, Package, load_app
from groundhook.host.core.errors import ConfigError, HostError
from groundhook.host.core.problems import Problem, problems_of

FOLDERS = ("agent", "assistants", *tree.ENDINGS)  # of an app; others are not watched
SETTLED_MS = 20  # without a change before changes are told
LOOK_MS = (
    1000  # files in a new folder, and new folders of an app, are seen after so long at the latest
)
FIXED = frozenset(
    {"turn_timeout_ms"}
)  # of the app's settings: all others hold from the start to the end

DECLARATIONS = "the declarations"  # collections, models, connectors and MCP servers

_SKIPPED = frozenset({"node_modules", "__pycache__"})

T = TypeVar("T")
Stamp = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class Swap:
    """What became of a change. `assistants`: those that are new or were swapped; `removed`: those
    that are gone. `problems`: what is wrong with what was changed, which stays as it was;
    `repaired`: what was broken and no longer is (`assistants/x`, `the app`). `restart`: settings
    that hold when the host is opened anew."""

    assistants: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    declarations: bool = False
    problems: tuple[Problem, ...] = ()
    repaired: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()
    took_ms: float = 0.0


@dataclass
class Live:
    """The app as it was good last. `host` is another one after each swap."""

    host: Host
    _broken: set[str] = field(default_factory=set)
    _revision: int = 0

    async def reload(self, paths: Iterable[Path] | None = None) -> Swap:
        """Take over what has changed in these files; everything for None."""
        began = time.perf_counter()
        old = self.host.app
        try:
            read = load_app(old.root, old.environment)
        except ConfigError as exc:
            return Swap(problems=tuple(problems_of(exc)), took_ms=_since(began))
        touched = (
            None if paths is None else [path.relative_to(old.root).as_posix() for path in paths]
        )
        reading = _Reading(self.host, read, touched, self._revision + 1)
        app = await reading.run()
        self._revision += 1
        self.host = self.host.with_app(app)
        broken = set(reading.broken)
        repaired = tuple(sorted((self._broken & reading.looked_at) - broken))
        self._broken = (self._broken - reading.looked_at) | broken
        return Swap(
            assistants=tuple(reading.swapped),
            removed=tuple(id for id in old.packages if id not in app.packages),
            declarations=reading.declarations and paths is not None,
            problems=tuple(dict.fromkeys(reading.problems)),
            repaired=repaired,
            restart=_restart(old, app),
            took_ms=_since(began),
        )


@asynccontextmanager
async def live(host: Host) -> AsyncIterator[Live]:
    """A host whose app is being worked on, with a compiler at hand. What is broken from the start
    raises when it is asked for."""
    async with host.runtime.hooks.compiler_at_hand():
        yield Live(host)


# ------------------------------------------------------------------------------------- reading anew


class _Reading:
    """One pass over what has changed. `touched` are paths as messages name them, None for all."""

    def __init__(
        self, host: Host, read: App, touched: Collection[str] | None, revision: int
    ) -> None:
        self.problems: list[Problem] = []
        self.broken: list[str] = []
        self.looked_at: set[str] = set()
        self.swapped: list[str] = []
        self._host, self._old, self._read, self._revision = host, host.app, read, revision
        self._touched = touched
        self.declarations = self._any(lambda path: any(f"{kind}/" in path for kind in tree.ENDINGS))

    async def run(self) -> App:
        """The app with what is good of the new, and what was good before for the rest."""
        app = self._declared()
        app = self._global(app)
        packages: dict[str, Callable[[], Package]] = {}
        for id in app.packages:
            packages[id] = await self._package(app, id)
        return _keeping(replace(app, packages=Catalogue("assistant", packages)), app)

    def _any(self, holds: Callable[[str], bool]) -> bool:
        return self._touched is None or any(map(holds, self._touched))

    def _found(self, owner: str, error: HostError) -> None:
        self.problems += problems_of(error)
        self.broken.append(owner)

    def _declared(self) -> App:
        """Collections, models, connectors and servers."""
        old, read = self._old, self._read
        if not self.declarations:
            return replace(
                read,
                collections=old.collections,
                models=old.models,
                connectors=old.connectors,
                servers=old.servers,
            )
        self.looked_at.add(DECLARATIONS)
        return replace(
            read,
            collections=self._kept(read.collections, old.collections),
            models=self._kept(read.models, old.models),
            connectors=self._kept(read.connectors, old.connectors),
            servers=self._kept(read.servers, old.servers),
        )

    def _kept(self, new: Catalogue[T], old: Catalogue[T]) -> Catalogue[T]:
        """Each declaration as it is now, or as it was when it is broken now."""
        values: dict[str, Callable[[], T]] = {}
        for id in new:
            values[id] = partial(new.__getitem__, id)
            try:
                new[id]
            except HostError as exc:
                if self._touched is None or _known(old, id) is None:
                    continue  # whoever asks for it is told
                values[id] = partial(old.__getitem__, id)
                self.broken.append(DECLARATIONS)
                if exc.place is not None and exc.place.file in self._touched:
                    self.problems += problems_of(exc)
        return Catalogue(new.noun, values)

    def _global(self, app: App) -> App:
        """The app's own files."""
        if not self._any(lambda path: path.startswith("agent/")):
            return _keeping(app, self._old)
        self.looked_at.add("the app")
        try:
            _ = app.layers, app.settings, app.prompts
        except HostError as exc:
            self._found("the app", exc)
            return _keeping(app, self._old)
        return app

    async def _package(self, app: App, id: str) -> Callable[[], Package]:
        before = _known(self._old.packages, id)
        last_good = partial(app.packages.__getitem__, id) if before is None else lambda: before
        if id in self._old.packages and not self._any(lambda path: self._owner(path) == id):
            return last_good
        shown = f"assistants/{id.replace('.', '/')}"
        self.looked_at.add(shown)
        try:
            package = await self._good(app, id)
        except HostError as exc:
            self._found(shown, exc)
            return last_good
        self.swapped.append(id)
        return lambda: package

    async def _good(self, app: App, id: str) -> Package:
        """The package, read whole, with its hook compiled and fixed. Raises ConfigError,
        HookError."""
        package = app.packages[id]
        app.settings_for(package)
        for name in package.presets:
            package.presets[name]
        for name in package.locales:
            package.locales[name]
        if package.hook is None:
            return package
        hook = replace(package.hook, revision=self._revision)
        await self._host.runtime.hooks.check(hook)
        return replace(package, hook=hook)

    def _owner(self, path: str) -> str:
        """The assistant that a file belongs to, the innermost one; "" for none."""
        steps = path.split("/")[1:-1] if path.startswith("assistants/") else []
        for end in range(len(steps), 0, -1):
            if ".".join(steps[:end]) in self._read.packages:
                return ".".join(steps[:end])
        return ""


def _keeping(app: App, other: App) -> App:
    """`app` with the global files as `other` has read them."""
    for name in ("agent_file", "search_file", "prompts"):
        try:
            vars(app)[name] = getattr(other, name)
        except HostError:
            continue  # `app` raises it as well, for whoever asks
    return app


def _known(catalogue: Mapping[str, T], id: str) -> T | None:
    """The value of an id; None when there is none or it is broken."""
    try:
        return catalogue.get(id)
    except HostError:
        return None


def _restart(old: App, new: App) -> tuple[str, ...]:
    try:
        before, after = (
            old.settings.model_dump(exclude=set(FIXED)),
            new.settings.model_dump(exclude=set(FIXED)),
        )
    except HostError:
        return ()
    changed = [key for key in before if before[key] != after[key]]
    return (
        *changed,
        *(["mcps"] if dict(_loaded(old.servers)) != dict(_loaded(new.servers)) else []),
    )


def _loaded(catalogue: Mapping[str, T]) -> Iterable[tuple[str, T | None]]:
    return ((id, _known(catalogue, id)) for id in catalogue)


def _since(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 3)


# ----------------------------------------------------------------------------------------- watching


async def changes(root: Path, seen: Mapping[Path, Stamp]) -> AsyncGenerator[frozenset[Path]]:
    """Files of the app that were made, written or removed since `seen`, again and again. What the
    system says is a reason to look: it does not report files in a folder that was just made."""
    while True:
        folders = [folder for name in FOLDERS if (folder := root / name).is_dir()]
        watching = awatch(
            *folders,
            step=SETTLED_MS,
            debounce=10 * SETTLED_MS,
            rust_timeout=LOOK_MS,
            yield_on_timeout=True,
        )
        async with aclosing(watching) as wakes:
            async for _ in wakes:
                now = stamps(root)
                changed = frozenset(
                    path for path in seen.keys() | now.keys() if seen.get(path) != now.get(path)
                )
                seen = now
                if changed:
                    yield changed
                if [folder for name in FOLDERS if (folder := root / name).is_dir()] != folders:
                    break  # a new folder is to be watched as well


def stamps(root: Path) -> dict[Path, Stamp]:
    """Every file that an app may consist of, with what changes when it does."""
    found: dict[Path, Stamp] = {}
    for name in FOLDERS:
        for folder, inner, files in os.walk(root / name):
            inner[:] = [
                each
                for each in inner
                if not each.startswith(".") and each not in _SKIPPED and each != "tests"
            ]
            for file in files:
                if file.startswith(".") or file.endswith(("~", ".swp", ".tmp")):
                    continue
                path = Path(folder, file)
                try:
                    status = path.stat()
                except OSError:
                    continue  # gone meanwhile
                found[path] = (status.st_mtime_ns, status.st_size, status.st_ino)
    return found
