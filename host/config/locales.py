"""Texts of an assistant by language: `locales/*.yml`, and the key `locales` of package.yao."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from groundhook.host.config import tree
from groundhook.host.config.catalogue import Catalogue
from groundhook.host.config.documents import read_document

Texts = Mapping[str, Any]  # a value may be a mapping of texts


def read_locales(folder: Path, root: Path) -> Catalogue[Texts]:
    """Return the files in `folder` by language, each read when it is first used."""
    paths = sorted(folder.glob("*.yml")) if folder.is_dir() else []
    return Catalogue(
        "locale", {path.stem: partial(_read, path, tree.shown(path, root)) for path in paths}
    )


def texts_of(locales: Catalogue[Texts], inline: Mapping[str, Any], locale: str) -> Texts:
    """Return the texts of a language: that of the tag, else of its language alone (`de` for
    `de-AT`), else English, else the first. Files come before package.yao. Raises ConfigError."""
    names = dict.fromkeys([*locales, *inline])
    name = _find_nearest(names, locale)
    own = inline.get(name, {})
    return {**(own if isinstance(own, Mapping) else {}), **(locales.get(name) or {})}


def _find_nearest(names: Iterable[str], locale: str) -> str:
    known = {name.replace("_", "-").lower(): name for name in names}
    wanted = locale.replace("_", "-").lower()
    for tag in (wanted, wanted.partition("-")[0], "en"):
        same = [name for key, name in known.items() if key == tag or key.startswith(f"{tag}-")]
        if tag in known or same:
            return known.get(tag, same[0] if same else "")
    return next(iter(known.values()), "")


def _read(path: Path, shown: str) -> Texts:
    data: Texts = read_document(path, shown).data
    return data
