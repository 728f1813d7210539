"""Finds variables in an app's prompts that have no value, each with its line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from groundhook.core.errors import ConfigError
from groundhook.core.problems import Problem
from groundhook.host.config import tree
from groundhook.host.config.documents import read_document
from groundhook.host.config.locales import Texts
from groundhook.host.config.package import Package
from groundhook.host.config.packages import PROMPTS_FILE, App
from groundhook.host.config.variables import find_unfilled, texts_by_locale

_TEXTS = ("name", "description", "placeholder", "prompts")  # of package.yao


def wrong_variables(package: Package, root: Path) -> Iterator[Problem]:
    """Yield the variables without a value in the prompts and texts of a package."""
    locales = texts_by_locale(package.folder / "locales", package.info.get("locales") or {})
    names = (*tree.PACKAGES, tree.PROMPTS)
    found = [(package.folder / name, f"{package.shown}/{name}") for name in names]
    found += [(each.path, each.shown) for each in tree.presets(package.folder, root)]
    for path, shown in found:
        yield from _check_file(path, shown, package.folder, locales)


def wrong_shared_variables(app: App) -> Iterator[Problem]:
    """Yield the variables without a value in the prompts that all assistants share."""
    yield from _check_file(app.root / PROMPTS_FILE, PROMPTS_FILE, app.root / "agent", None)


def _check_file(
    path: Path, shown: str, folder: Path, locales: Mapping[str, Texts] | None
) -> Iterator[Problem]:
    try:
        document = read_document(path, shown, top="any")
    except ConfigError:  # no such file, or one that another check reports
        return
    if isinstance(document.data, list):
        yield from find_unfilled(document, (), folder, locales)
        return
    for key in _TEXTS:
        yield from find_unfilled(document, (key,), folder, locales)
