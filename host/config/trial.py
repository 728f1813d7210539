"""A trial of an assistant: settings and prompts above its files and below its hook, for one turn.

A trial is written like a part of `package.yao`. It is never stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groundhook.core.errors import ConfigError, ConfigErrors, UsageError
from groundhook.core.problems import raise_all
from groundhook.core.settings_files import PackageFile
from groundhook.core.types.base import dotted
from groundhook.host.config.documents import ConfigDocument, read_document
from groundhook.host.config.environment import Environment, need
from groundhook.host.config.jsonc import parse_json
from groundhook.host.config.layers import Layer, file_layer
from groundhook.host.config.locations import Unreadable
from groundhook.host.config.package import Package
from groundhook.host.config.prompts import Prompts, inline_prompts
from groundhook.host.config.validate import check_document

# What a trial may set. What an assistant may reach (collections, models, servers, hosts) and the
# limits of its hook are set by its files alone.
SETTABLE = (
    "connector",
    "options",
    "prompt_preset",
    "disable_global_prompts",
    "locale",
    "uses",
    "search",
    "history",
    "prompts",
)
NAMES = {"kb": "collections", "db": "models"}  # what is searched, by type
OF_FILES = frozenset({"host", "hosts", "path", "api_key_env"})  # addresses and keys in `search`


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The layer of a trial. `prompts` replace those of the package; None: they stay. `shown` is the
    trial as it was written."""

    layer: Layer
    prompts: Prompts | None = None
    shown: Mapping[str, Any]


def trial_of(raw: Mapping[str, Any], package: Package) -> Trial:
    """Return the trial that a program or a client sends. Variables of the environment are refused.
    Raises UsageError that names the wrong key."""
    try:
        text = json.dumps(raw, ensure_ascii=False)
        parsed = parse_json(text)
    except (TypeError, ValueError, RecursionError, Unreadable):
        raise UsageError("the trial must be a JSON object") from None
    try:
        return _trial_in(ConfigDocument("the trial", parsed.data, text, parsed), package, {})
    except ConfigErrors as exc:
        raise _without_place(exc.errors[0]) from None
    except ConfigError as exc:
        raise _without_place(exc) from None


def read_trial(path: Path, shown: str, package: Package, environment: Environment) -> Trial:
    """Return the trial in a file, JSON with comments or YAML. Raises ConfigError with everything
    that is wrong with it."""
    if not path.is_file():
        raise ConfigError(f"there is no file {shown!r}", hint="a trial is a part of package.yao")
    return _trial_in(read_document(path, shown), package, environment)


def _without_place(error: ConfigError) -> UsageError:
    return UsageError(f"the trial: {error.message}", hint=error.hint)


def _trial_in(document: ConfigDocument, package: Package, environment: Environment) -> Trial:
    checked = check_document(PackageFile, document, environment, switch_on=True)
    refused = [
        ConfigError(
            f"{dotted(checked.normal.written(path))!r} cannot be set by a trial",
            place=document.place(checked.normal.written(path), of="key"),
            hint=f"set it in {package.shown}/package.yao",
        )
        for path in _refused(checked.data, package)
    ]
    raise_all([*refused, *checked.errors])
    need(checked.data)
    prompts = inline_prompts(document, environment, package.folder)
    if prompts.keys() - {"default"}:
        raise ConfigError(
            "'prompts' of a trial must be a text or a list of {role, content}",
            place=document.place(("prompts",)),
            hint="prompt_preset chooses another preset",
        )
    layer = file_layer("trial", checked)
    return Trial(layer=layer, prompts=prompts.get("default"), shown=document.data)


def _refused(data: Mapping[str, Any], package: Package) -> Iterator[tuple[str, ...]]:
    """Yield the canonical paths of what a trial may not set. Of the collections and models that the
    files name, it may search some."""
    yield from ((key,) for key in data if key not in SETTABLE)
    search = data.get("search")
    yield from _of_files(search, ("search",))
    for type, names in NAMES.items():
        own = package.layer.data
        listed = [
            name
            for section in (own, own.get("search"))
            if isinstance(section, Mapping) and isinstance(section.get(type), Mapping)
            for name in section[type].get(names) or ()
        ]
        tried = search.get(type) if isinstance(search, Mapping) else None
        asked = tried.get(names) if isinstance(tried, Mapping) else None
        if isinstance(asked, (list, tuple)) and not all(name in listed for name in asked):
            yield ("search", type, names)


def _of_files(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for key, inner in value.items() if isinstance(value, Mapping) else ():
        if key in OF_FILES:
            yield (*path, key)
        else:
            yield from _of_files(inner, (*path, key))
