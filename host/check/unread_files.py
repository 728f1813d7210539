"""Finds files and folders of an app that look as if they had an effect, but are not read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from groundhook.core.errors import Place
from groundhook.core.problems import Problem
from groundhook.host.config import tree
from groundhook.host.config.agent_file import AGENT_FILE
from groundhook.host.config.package import Package
from groundhook.host.config.packages import PROMPTS_FILE, SEARCH_FILES

_NEAR_NAMES = {"create", "hook", "hooks", "index", "main", "next"}  # of a hook, in any case
# With a context: functions of the same names may create records.
_HOOK = re.compile(
    r"^.*\b(?:function|const|let)\s+(?:Create|Next)\b.*\(\s*_?(?:ctx|context)\b", re.M
)


def unread_files(root: Path, assistants: Sequence[tree.FoundPath]) -> Iterator[Problem]:
    """Yield a warning for each such file in the folders of an app and of these assistants."""
    for folder in (root, *(place.path for place in assistants)):
        for kind, ending in tree.ENDINGS.items():
            schemes = tree.SCHEMES if kind == "mcps" else ""
            for shown in tree.unread(folder / kind, root, ending, schemes):
                yield _make_warning(shown, f"names in {kind}/ end with {ending}")
    for place in assistants:
        for kind in ("prompts", "locales"):
            for shown in tree.unread(place.path / kind, root, ".yml"):
                yield _make_warning(shown, f"names in {kind}/ end with .yml")
    for shown, name in tree.lookalikes(root):
        yield _make_warning(shown, f"only {name} is read")
    search, *others = (f"agent/{name}" for name in SEARCH_FILES)
    names = (AGENT_FILE, search, PROMPTS_FILE)
    for shown in tree.unread(root / "agent", root, (*names, *others)):
        yield _make_warning(shown, f"only {', '.join(names)} are read")
    for shown, owner in tree.inside_package(root):
        yield Problem(
            "warning",
            f"part of the package {owner.id!r}, so this is not an assistant",
            Place(shown),
            "move the folder out of that package",
        )
    for shown, hint in tree.misplaced(root):
        message = f"a {tree.PACKAGE} in a folder that is not searched: this is not an assistant"
        yield Problem("warning", message, Place(shown), hint)
    for shown in tree.without_package(root):
        message = f"a hook without a {tree.PACKAGE}: this is not an assistant"
        yield Problem("warning", message, Place(shown))


def unread_hooks(package: Package, root: Path) -> Iterator[Problem]:
    """Yield a warning for a script of a package that seems to be meant as its hook, but is not: it
    has nearly the name of a hook, or it defines Create or Next in a package without a hook."""
    scripts = list(tree.scripts(package.folder))
    named = [path for path in scripts if path.stem.lower() in _NEAR_NAMES]
    if package.hook is None:
        found = named[:1] or [path for path in scripts if _defines_a_hook(path)][:1]
    else:
        usual = [*tree.hooks(package.folder), *package.hook.entries]
        found = [path for path in named if path not in usual and not _is_mentioned(path, package)]
    for path in found:
        if not path.is_file():
            kind = "a link that leads nowhere" if path.is_symlink() else "a folder"
            place = Place(tree.shown(path, root))
            yield Problem("warning", f"{kind}, and not a file: this hook does not run", place)
            continue
        hint = (
            "only index.ts, src/index.ts or the files that 'hooks' in package.yao names are read,"
            " and the files that they import"
        )
        yield _make_warning(tree.shown(path, root), hint)


def _is_mentioned(script: Path, package: Package) -> bool:
    """Return whether another file of the package imports a script, or names one of its functions
    for a call by name (`scripts.hook.Find`)."""
    names = [script.stem, *([script.parent.name] if script.stem == "index" else [])]
    name = "|".join(map(re.escape, names))
    mention = re.compile(
        rf"""["'`](?:[^"'`\n]*/)?(?:{name})(?:\.[jt]s)?["'`]|(?:scripts|agents)\.[\w.-]*\b(?:{name})\."""
    )
    others = (
        path
        for ending in ("*.ts", "*.js", "*.yao", *tree.PACKAGES[1:])
        for path in package.folder.rglob(ending)
        if path != script and "node_modules" not in path.parts
    )
    return any(mention.search(_read_text(path)) for path in others)


def _defines_a_hook(path: Path) -> bool:
    return bool(_HOOK.search(_read_text(path)))


def _read_text(path: Path) -> str:
    """Return the text of a file; "" if it cannot be read, which another check reports."""
    try:
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return ""


def _make_warning(shown: str, hint: str) -> Problem:
    return Problem("warning", "nothing reads this file", Place(shown), hint)
