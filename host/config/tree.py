"""The files of an app, and the ids that follow from their paths. Reads names only; opens no file.

assistants/sales/bot/package.yao             assistant sales.bot
assistants/sales/bot/models/order.mod.yao    model agents.sales.bot.order
models/shop/order.mod.yao                    model shop.order
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from groundhook.core.errors import ConfigError, Place

# Of a document with several names, one can be there: JSON with comments, or the same in YAML.
PACKAGES = ("package.yao", "package.yml", "package.yaml")
PACKAGE, PROMPTS = PACKAGES[0], "prompts.yml"
HOOKS = ("index.ts", "index.js", "src/index.ts", "src/index.js")

# Folder → the ending of the files in it.
ENDINGS = {
    "apis": ".api.yao",
    "kb": ".kb.yao",
    "models": ".mod.yao",
    "connectors": ".conn.yao",
    "mcps": ".mcp.yao",
    "toolkits": ".toolkit.yao",
}

# Schemas of tools that are functions of a package, below its mcps/; `out` has no effect.
SCHEMES = r"mapping/.+/schemes/[^/]+\.(in|out)\.yao"
_DEEPEST = 8  # a link to a folder above would otherwise never end
_CONFIGURATION = {".yao", ".json", ".jsonc", ".yml", ".yaml"}
_NEVER = {"node_modules", "__pycache__"}
# Folders of a package that hold parts of it. Outside of a package they are groups like any other.
PARTS = {*ENDINGS, "locales", "prompts", "src", "tests"}


@dataclass(frozen=True)
class FoundPath:
    """A file or folder with the id that follows from its path; `shown` is its path in messages,
    relative to the app's folder."""

    id: str
    path: Path
    shown: str


def only_name(folder: Path, shown: str, names: Sequence[str]) -> str:
    """Return which of these names a file in a folder has; "" if there is none. Raises ConfigError
    for two, since a change of one would have no effect."""
    found = [name for name in names if (folder / name).is_file()]
    if len(found) > 1:
        raise ConfigError(
            f"{found[0]!r} and {found[1]!r} are the same document in two forms",
            place=Place(f"{shown}/{found[1]}"),
            hint="remove one of them",
        )
    return found[0] if found else ""


def has_package(folder: Path) -> bool:
    """Return whether a folder is an assistant, also where its document is there twice."""
    return any((folder / name).is_file() for name in PACKAGES)


def assistants(root: Path) -> Iterator[FoundPath]:
    """Yield the folders under `assistants/` that have a package.yao, by id. A folder without one
    is a group, whatever its name; folders in PARTS are not searched inside a package."""
    found = _packages(root / "assistants", root, (), within=False)
    yield from sorted(found, key=lambda found: found.id)


def inside_package(root: Path) -> Iterator[tuple[str, FoundPath]]:
    """Yield the folders with a package.yao that are no assistants because they belong to a package,
    with the package: `assistants/sales/tests/x` where `assistants/sales` is one."""
    for package in assistants(root):
        for part in sorted(PARTS):
            for path in _package_files(package.path / part):
                if not _NEVER.intersection(path.parts):
                    yield shown(path.parent, root), package


def declared(folder: Path, root: Path, *, kind: str, prefix: str = "") -> Iterator[FoundPath]:
    """Yield the files of one kind (a key of ENDINGS) under `folder`/`kind`; ids begin with
    `prefix`."""
    yield from _files(folder / kind, root, ENDINGS[kind], prefix)


def presets(folder: Path, root: Path) -> Iterator[FoundPath]:
    """Yield the prompt presets of an assistant: `prompts/friendly.yml` is `friendly`."""
    yield from _files(folder / "prompts", root, ".yml", "")


def hooks(folder: Path) -> list[Path]:
    """Return the entry files of an assistant's hook; the first one counts."""
    return [folder / name for name in HOOKS if (folder / name).is_file()]


def scripts(folder: Path) -> Iterator[Path]:
    """Yield the scripts of a package where a hook could be meant to be: in its folder, in `src`
    and in `hooks`, without those of declarations and tests."""
    for inner in (folder, folder / "src", folder / "hooks"):
        for path in sorted(inner.iterdir()) if inner.is_dir() else ():
            if path.suffix in (".ts", ".js") and not path.stem.endswith((".d", ".test", "_test")):
                yield path


def unread(
    folder: Path, root: Path, endings: str | tuple[str, ...], besides: str = ""
) -> Iterator[str]:
    """Yield the configuration files under `folder` that nothing reads because their names have
    another ending, and whose paths below `folder` do not match the pattern `besides`."""
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        name, below = shown(path, root), path.relative_to(folder).as_posix()
        is_read = name.endswith(endings) or (besides and re.fullmatch(besides, below))
        if path.suffix in _CONFIGURATION and not is_read:
            yield name


def without_package(root: Path) -> Iterator[str]:
    """Yield the folders under `assistants/` that have a hook but no package.yao and are not part of
    a package."""
    packages = {found.path for found in assistants(root)}
    for name in ("index.ts", "index.js"):
        for path in sorted((root / "assistants").rglob(name)):
            if (
                not packages.intersection(path.parents)
                and "node_modules" not in path.parts
                and not has_package(path.parent)
            ):
                yield shown(path.parent, root)


def misplaced(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the folders with a package.yao that are no assistants, with what to do: `assistants/`
    itself, and those that are too far below it."""
    top = root / "assistants"
    for path in _package_files(top):
        steps = path.parent.relative_to(top).parts
        if not steps:
            yield shown(top, root), "give the package a folder of its own"
        elif len(steps) > _DEEPEST and not _NEVER.intersection(steps):
            yield shown(path.parent, root), f"at most {_DEEPEST} folders below assistants/ are read"


def lookalikes(root: Path) -> Iterator[tuple[str, str]]:
    """Yield files with nearly the name of a file that is read, with that name."""
    packages = {found.path for found in assistants(root)}
    for path in sorted(path for folder in packages for path in folder.iterdir()):
        if path.stem == "prompts" and path.suffix in _CONFIGURATION - {".yml"}:
            yield shown(path, root), PROMPTS
    for path in sorted((root / "assistants").rglob("package.*")):
        if (
            path.suffix in _CONFIGURATION
            and path.name not in PACKAGES
            and not packages.intersection(path.parents)
            and "node_modules" not in path.parts
        ):
            yield shown(path, root), PACKAGE


def shown(path: Path, root: Path) -> str:
    """Return a file's path in messages: relative to the app's folder, with `/` on every system."""
    return path.relative_to(root).as_posix()


def _package_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("package.*") if path.name in PACKAGES)


def _packages(
    folder: Path, root: Path, steps: tuple[str, ...], *, within: bool
) -> Iterator[FoundPath]:
    if len(steps) > _DEEPEST or not folder.is_dir():
        return
    if steps and has_package(folder):
        within = True
        yield FoundPath(".".join(steps), folder, shown(folder, root))
    skipped = _NEVER | PARTS if within else _NEVER
    for inner in folder.iterdir():
        if inner.name not in skipped and not inner.name.startswith(".") and inner.is_dir():
            yield from _packages(inner, root, (*steps, inner.name), within=within)


def _files(folder: Path, root: Path, ending: str, prefix: str) -> Iterator[FoundPath]:
    for path in sorted(folder.rglob(f"*{ending}")) if folder.is_dir() else ():
        name = path.relative_to(folder).as_posix().removesuffix(ending).replace("/", ".")
        if path.is_file() and name:
            yield FoundPath(prefix + name, path, shown(path, root))
