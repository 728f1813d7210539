"""The files that the imports of a package's scripts mean: relative paths, and names that the
package maps to paths. After following symbolic links, a file must be inside the package."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from groundhook.core.errors import HookSyntaxError, Place
from groundhook.core.hook_engine import HookScript

SUFFIXES = (".ts", ".js", ".json")
RUNTIME = Path("@yao/runtime")  # modules of the runtime itself (`@yao/…`)


class Imports:
    """The imports of one package. `seen` collects the files that were looked for: any of them, once
    it exists or changes, may be what an import means."""

    def __init__(self, script: HookScript, seen: list[Path]) -> None:
        self._script = script
        self._root = script.root.resolve()
        self.seen = seen

    def find(self, importer: Path, name: str, place: Place) -> Path:
        """Return the file of an import. Raises HookSyntaxError with the place of the import."""
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

    def find_types(self, importer: Path, name: str) -> Path | None:
        """Return the file of the package whose types an import means; None if there is none, which
        is no error: imports of types are dropped before anything runs."""
        for base in self._bases(importer, name):
            for candidate in (*_candidates(base), base.with_name(f"{base.name}.d.ts")):
                self.seen.append(candidate)
                if _is_file(candidate):
                    found = candidate.resolve()
                    inside = found.is_relative_to(self._root)
                    return found if inside and found.suffix in (".ts", ".js") else None
        return None

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
    """Return how a name matches a pattern: the length before the star, and the text in the star's
    place; None when it does not match."""
    before, star, after = pattern.partition("*")
    if not star:
        return (len(name) + 1, "") if name == pattern else None
    fits = (
        len(name) >= len(before) + len(after) and name.startswith(before) and name.endswith(after)
    )
    return (len(before), name[len(before) : len(name) - len(after)]) if fits else None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # for example a name that is too long
        return False
