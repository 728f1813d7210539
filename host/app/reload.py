"""Reads the files of an open app again, and swaps in the changes in one step.

A broken file does not replace its last good version. All files of an assistant are read, and its
hook is compiled, before the swap, so that a later edit has no effect before the next swap."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from groundhook.core.errors import ConfigError, HostError
from groundhook.core.hook_engine import HookEngine, HookScript
from groundhook.core.problems import Problem, problems_of
from groundhook.host.config import tree
from groundhook.host.config.catalogue import Catalogue
from groundhook.host.config.package import Package
from groundhook.host.config.packages import App, load_app

# Settings of the app that a reload applies; a change of any other needs a restart.
RELOADED = frozenset({"turn_timeout_ms"})

DECLARATIONS = "the declarations"  # collections, models, connectors and MCP servers, in messages

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Swap:
    """The result of a change. `assistants` are new or were swapped; `removed` ones no longer exist.
    `problems` are those of the changed files, whose last good version stays in use; `repaired`
    names what was broken before (`assistants/x`, `the app`). `restart`: changed settings that apply
    only after the host is opened again."""

    assistants: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    declarations: bool = False
    problems: tuple[Problem, ...] = ()
    repaired: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()
    took_ms: float = 0.0


@dataclass
class Reloads:
    """Reads an app's files, one reading at a time."""

    _broken: set[str] = field(default_factory=set)
    _revision: int = 0

    async def read(
        self, old: App, hooks: HookEngine, paths: Iterable[Path] | None
    ) -> tuple[App, Swap]:
        """Return the app with the valid parts of its current files, and the last good version of
        all others. With `paths` only the parts that these files concern are read."""
        began = time.perf_counter()
        try:
            read = load_app(old.root, old.environment, old.connector_types, old.toolkit_types)
        except ConfigError as exc:
            return old, Swap(problems=tuple(problems_of(exc)), took_ms=_measure_since(began))
        touched = (
            None if paths is None else [path.relative_to(old.root).as_posix() for path in paths]
        )
        reading = _Reading(old, hooks, read, touched, self._revision + 1)
        app = await reading.run()
        self._revision += 1
        broken = set(reading.broken)
        # Only of the parts that were read: the others may still be broken.
        repaired = tuple(sorted((self._broken & reading.looked_at) - broken))
        self._broken = (self._broken - reading.looked_at) | broken
        return app, Swap(
            assistants=tuple(reading.swapped),
            removed=tuple(id for id in old.packages if id not in app.packages),
            declarations=reading.declarations and paths is not None,
            problems=tuple(dict.fromkeys(reading.problems)),
            repaired=repaired,
            restart=_find_restart_settings(old, app),
            took_ms=_measure_since(began),
        )


# ------------------------------------------------------------------------------------ reading again


class _Reading:
    """One pass over the changes. `touched` are paths as messages name them; None means all."""

    def __init__(
        self,
        old: App,
        hooks: HookEngine,
        read: App,
        touched: Collection[str] | None,
        revision: int,
    ) -> None:
        self.problems: list[Problem] = []
        self.broken: list[str] = []
        self.looked_at: set[str] = set()
        self.swapped: list[str] = []
        self._old, self._hooks, self._read, self._revision = old, hooks, read, revision
        self._touched = touched
        self.declarations = self._concerns_any(
            lambda path: any(f"{kind}/" in path for kind in tree.ENDINGS)
        )

    async def run(self) -> App:
        """Return the app with the valid new parts, and the last good version of all others."""
        # In this order: packages are checked against the declarations and the app's settings.
        app = self._read_declared()
        app = self._read_global(app)
        packages: dict[str, Callable[[], Package]] = {}
        for id in app.packages:
            packages[id] = await self._read_package(app, id)
        return _keep_global_files(replace(app, packages=Catalogue("assistant", packages)), app)

    def _concerns_any(self, holds: Callable[[str], bool]) -> bool:
        return self._touched is None or any(map(holds, self._touched))

    def _report_found(self, owner: str, error: HostError) -> None:
        self.problems += problems_of(error)
        self.broken.append(owner)

    def _read_declared(self) -> App:
        """Read collections, models, connectors, servers and toolkits."""
        old, read = self._old, self._read
        if not self.declarations:
            return replace(
                read,
                collections=old.collections,
                models=old.models,
                connectors=old.connectors,
                servers=old.servers,
                apis=old.apis,
                toolkits=old.toolkits,
            )
        self.looked_at.add(DECLARATIONS)
        return replace(
            read,
            collections=self._keep_last_good(read.collections, old.collections),
            models=self._keep_last_good(read.models, old.models),
            connectors=self._keep_last_good(read.connectors, old.connectors),
            servers=self._keep_last_good(read.servers, old.servers),
            apis=self._keep_last_good(read.apis, old.apis),
            toolkits=self._keep_last_good(read.toolkits, old.toolkits),
        )

    def _keep_last_good(self, new: Catalogue[T], old: Catalogue[T]) -> Catalogue[T]:
        """Return each declaration as it is now, or its last good version if it is broken now."""
        values: dict[str, Callable[[], T]] = {}
        for id in new:
            values[id] = partial(new.__getitem__, id)
            try:
                new[id]
            except HostError as exc:
                if self._touched is None or _find_known(old, id) is None:
                    continue  # the turn that uses it reports the error
                values[id] = partial(old.__getitem__, id)
                self.broken.append(DECLARATIONS)
                # Once, when its file is saved, and not again with every other file.
                if exc.place is not None and exc.place.file in self._touched:
                    self.problems += problems_of(exc)
        return Catalogue(new.noun, values, {id: new[id] for id in new.built_in}, new.files)

    def _read_global(self, app: App) -> App:
        """Read the app's own files."""
        if not self._concerns_any(lambda path: path.startswith("agent/")):
            return _keep_global_files(app, self._old)
        self.looked_at.add("the app")
        try:
            _ = app.layers, app.settings, app.prompts  # read when first used: here, to see errors
        except HostError as exc:
            self._report_found("the app", exc)
            return _keep_global_files(app, self._old)
        return app

    async def _read_package(self, app: App, id: str) -> Callable[[], Package]:
        before = _find_known(self._old.packages, id)
        last_good = partial(app.packages.__getitem__, id) if before is None else lambda: before
        if id in self._old.packages and not self._concerns_any(
            lambda path: self._find_owner(path) == id
        ):
            return last_good
        shown = f"assistants/{id.replace('.', '/')}"
        self.looked_at.add(shown)
        try:
            package = await self._read_completely(app, id)
        except HostError as exc:
            self._report_found(shown, exc)
            return last_good
        self.swapped.append(id)
        return lambda: package

    async def _read_completely(self, app: App, id: str) -> Package:
        """Return the package, read completely, with its hook compiled and fixed. Raises
        ConfigError, HookError."""
        package = app.packages[id]
        app.settings_for(package)  # raises for settings that do not fit together
        for name in package.presets:
            package.presets[name]
        for name in package.locales:
            package.locales[name]
        hook, tools = await self._fix_script(package.hook), await self._fix_script(package.tools)
        return replace(package, hook=hook, tools=tools)

    async def _fix_script(self, script: HookScript | None) -> HookScript | None:
        """Return the script at this revision of its files. Raises HookError."""
        if script is None:
            return None
        # With a revision, turns use this compilation even after a later edit of a file.
        fixed = replace(script, revision=self._revision)
        await self._hooks.check(fixed)
        return fixed

    def _find_owner(self, path: str) -> str:
        """Return the assistant to which a file belongs, the innermost one; "" if it belongs to
        none."""
        steps = path.split("/")[1:-1] if path.startswith("assistants/") else []
        for end in range(len(steps), 0, -1):
            if ".".join(steps[:end]) in self._read.packages:
                return ".".join(steps[:end])
        return ""


def _keep_global_files(app: App, other: App) -> App:
    """Return `app` with the global files of `other`."""
    for name in ("agent_file", "search_file", "prompts"):
        try:
            # Cached properties: their values are in the dictionary of the instance.
            vars(app)[name] = getattr(other, name)
        except HostError:
            continue  # `app` raises it as well, for the turn that uses it
    return app


def _find_known(catalogue: Mapping[str, T], id: str) -> T | None:
    """Return the value of an id; None if it is missing or broken."""
    try:
        return catalogue.get(id)
    except HostError:
        return None


def _find_restart_settings(old: App, new: App) -> tuple[str, ...]:
    try:
        before, after = (
            old.settings.model_dump(exclude=set(RELOADED)),
            new.settings.model_dump(exclude=set(RELOADED)),
        )
    except HostError:
        return ()
    changed = [key for key in before if before[key] != after[key]]
    return (
        *changed,
        *(["server"] if _read_server(old) != _read_server(new) else []),
        *(["mcps"] if dict(_load_all(old.servers)) != dict(_load_all(new.servers)) else []),
    )


def _read_server(app: App) -> object:
    return app.agent_file.data.get("server") if app.agent_file else None


def _load_all(catalogue: Mapping[str, T]) -> Iterable[tuple[str, T | None]]:
    return ((id, _find_known(catalogue, id)) for id in catalogue)


def _measure_since(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 3)
