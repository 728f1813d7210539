"""Diagnostics of a hook before it runs: whether it compiles, fits its types, and defines something
to run.

Also makes the app's names in TypeScript, and the file that editors read. Nothing here runs a
hook."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from groundhook.core.errors import (
    ConfigError,
    HookCrashed,
    HookError,
    HostError,
    Place,
    UnknownName,
)
from groundhook.core.hook_engine import (
    HookEngine,
    HookScript,
    WrittenName,
)
from groundhook.core.problems import Problem, problems_of
from groundhook.hooks.typecheck import COMPILER_OPTIONS, type_errors
from groundhook.hooks.typings import AppNames, typings
from groundhook.host.check.scripts import script_problems
from groundhook.host.config.package import Package
from groundhook.host.config.packages import App

DECLARATIONS = "types/groundhook.d.ts"
CONFIG = "tsconfig.json"

_NOT_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`""", re.DOTALL
)
# Names of hooks, and exports of what another file may define.
_HOOK = re.compile(
    r"\b(?:Create|Next)\b|\bexport\s*(?:\*|\{[^}]*\bdefault\b)"
    r"|\bexport\s+default\s+(?!async\b|class\b|function\b|null\b|undefined\b)[\w$]+\s*(?:;|$)",
    re.MULTILINE,
)
_NEARLY = re.compile(
    r"\bfunction\s+(create|next)\b|\b(?:const|let|var)\s+(create|next)\s*=", re.IGNORECASE
)


def declarations(app: App, tools: Iterable[str] = ()) -> str:
    """Return the app's `groundhook.d.ts`. `tools` are the names of tools that the host offers."""
    packages = list(app.packages)
    return typings(
        AppNames(
            collections=_list_callable_names(app.collections, packages),
            models=[*_list_callable_names(app.models, packages), *sorted(app.models.built_in)],
            servers=_list_callable_names(app.servers, packages),
            toolkits=_list_callable_names(app.toolkits, packages),
            connectors=_list_callable_names(app.connectors, packages),
            assistants=packages,
            tools=list(tools),
        )
    )


def editor_config() -> str:
    """Return a `tsconfig.json` with which an editor checks an app's hooks as `groundhook check`
    does."""
    return (
        json.dumps(
            {"compilerOptions": COMPILER_OPTIONS, "include": [DECLARATIONS, "assistants"]}, indent=2
        )
        + "\n"
    )


async def hook_problems(
    app: App, ids: Sequence[str], engine: HookEngine, tools: Iterable[str] = ()
) -> list[Problem]:
    """Return the problems of these assistants' hooks, without those of their configuration. Raises
    UnknownName."""
    found: list[Problem] = []
    unknown: list[Problem] = []
    compiled: list[HookScript] = []
    for id in ids:
        try:
            script = app.hook(id)
            if script is not None:
                await engine.check(script)
                compiled.append(script)
        except HookError as exc:
            found += problems_of(exc)
        except ConfigError:
            continue  # reported by the check of the configuration
    found += [problem for script in compiled for problem in _check_not_empty(script)]
    for id in ids:
        with suppress(ConfigError):  # reported by the check of the configuration
            package = app.package(id)
            found += await script_problems(app, package, engine)
            unknown += await _find_unknown_names(app, package, engine)
            compiled += [package.tools] if package.tools else []
    compiled += [test for id in ids for test in _find_tests(app, id)]
    text = declarations(app, tools)
    types = await _check_types(compiled, text)
    wrong = {problem.place for problem in types}
    # Where `ctx` has a type, a name that does not exist is also a type error: one report is enough.
    found += [problem for problem in unknown if problem.place not in wrong]
    return list(dict.fromkeys([*found, *types, *_find_stale(app.root, text)]))


async def _find_unknown_names(app: App, package: Package, engine: HookEngine) -> list[Problem]:
    """Return a warning for each collection and model that the package's scripts name and that does
    not exist. The check of each script reports what does not compile."""
    found: list[Problem] = []
    for script in (package.hook, package.tools):
        names: Sequence[WrittenName] = ()
        with suppress(HostError):
            names = await engine.names(script) if script is not None else ()
        resolvers = {"collection": app.resolve_collection, "model": app.resolve_model}
        for name in names:
            if (resolve := resolvers.get(name.noun)) is None:
                continue
            try:
                resolve(package.id, name.name, place=name.place)
            except UnknownName as exc:
                found += problems_of(exc, "warning")
            except ConfigError:
                continue  # reported by the check of that file
    return found


async def _check_types(scripts: Sequence[HookScript], text: str) -> list[Problem]:
    try:
        errors = await type_errors(scripts, text)
    except HookCrashed as exc:
        return problems_of(exc, "warning")
    return [problem for error in errors for problem in problems_of(error)]


def _list_callable_names(ids: Iterable[str], packages: Sequence[str]) -> list[str]:
    """Return every id, and the short name that its own assistant may use."""
    names = dict.fromkeys(ids)
    for id in list(names):
        for package in packages:
            if id.startswith(f"agents.{package}."):
                names[id.removeprefix(f"agents.{package}.")] = None
    return list(names)


def _find_tests(app: App, id: str) -> list[HookScript]:
    """Return the package's test files, whose types are checked as those of hooks."""
    try:
        package = app.package(id)
    except ConfigError:
        return []
    paths = sorted((package.folder / "tests").glob("*.test.[jt]s"))
    script = package.hook or HookScript(
        entry=package.folder, root=package.folder, shown=package.shown
    )
    return [replace(script, entry=path, next_entry=None) for path in paths]


def _check_not_empty(script: HookScript) -> list[Problem]:
    """Return a warning for a hook that defines nothing to run."""
    texts = [entry.read_text(encoding="utf-8-sig") for entry in script.entries]
    code = _NOT_CODE.sub("''", "\n".join(texts))
    if script.functions:
        return [
            Problem(
                "warning",
                f"the hook has no function {name!r}",
                Place(script.shown_entry),
                f"'hooks.{hook.lower()}' of package.yao names it",
            )
            for hook, name in script.functions
            if not re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", code)
        ]
    if _HOOK.search(code):
        return []
    near = _NEARLY.search(code)
    name = (near[1] or near[2]).capitalize() if near else ""
    hint = f"did you mean {name!r}?" if name else "the host calls functions of these names"
    return [
        Problem(
            "warning", "the hook defines neither Create nor Next", Place(script.shown_entry), hint
        )
    ]


def _find_stale(root: Path, text: str) -> list[Problem]:
    path = root / DECLARATIONS
    if not path.is_file() or path.read_text(encoding="utf-8") == text:
        return []
    message = "names or calls have changed since this file was written"
    return [Problem("warning", message, Place(DECLARATIONS), "`groundhook types` writes it again")]
