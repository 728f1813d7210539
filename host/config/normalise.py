"""One spelling for every key, so that layers fold onto the same one.

Aliases (`topK`, `top_n`) and camelCase become the field's own name; `web: true` becomes `web:
{enabled: true}`, and `search: false` the same for each of its sources; a section with one list may
be the list alone; a single name becomes a list where a list of names is expected. Keys
that the model does not have are dropped and reported. Pure; `host.config.validate` checks values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from groundhook.core.app_settings import AppKeys
from groundhook.core.errors import suggestion
from groundhook.core.settings import (
    HookSettings,
    ListSection,
    SearchSettings,
    Settings,
)
from groundhook.core.settings_files import PackageFile
from groundhook.core.source_settings import KBSettings, Sources, Switched
from groundhook.core.types.connector_spec import ConnectorOptions
from groundhook.host.config.environment import Unset
from groundhook.host.config.locations import Path

_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")
# Settings of earlier versions or of other hosts, which are a warning, and what to do.
_GONE: Mapping[tuple[type[BaseModel], str], str] = {
    (KBSettings, "company"): "passages are no longer compared with each other; remove the key",
    (ConnectorOptions, "thinking"): "set reasoning_effort, which switches thinking on",
}
# Keys of other hosts that are read under the name that they have here, with a warning.
_READ_AS: Mapping[tuple[type[BaseModel], str], str] = {(PackageFile, "option"): "options"}


@dataclass(frozen=True)
class Stray:
    """A key that cannot be used, at its path as written. `harmless`: it is not a misspelt key, so
    that dropping it loses nothing."""

    path: Path
    message: str
    hint: str = ""
    harmless: bool = False


@dataclass(frozen=True)
class Normal:
    """Data under canonical keys. `trail` maps a canonical path to the path as written."""

    data: dict[str, Any]
    trail: Mapping[Path, Path]
    strays: tuple[Stray, ...]

    def written(self, path: Path) -> Path:
        """Return the path as written for a canonical path, or for the nearest path around it."""
        for length in range(len(path), 0, -1):
            known = self.trail.get(path[:length])
            if known is not None:
                return (*known, *path[length:])
        return path


def normalise(model: type[BaseModel], raw: Mapping[str, Any], *, switch_on: bool) -> Normal:
    """Return `raw` in the form that `model` declares. `switch_on`: whether an object for a source
    (`kb: {…}`) switches it on, as it does in an assistant's package; in `search.yao` it only sets
    options."""
    walk = _Walk(switch_on)
    data = walk.section(model, raw, (), ())
    return Normal(data, walk.trail, tuple(walk.strays))


@cache
def spellings(model: type[BaseModel]) -> Mapping[str, str]:
    """Return every accepted key of a model with the field's own name."""
    own = {name: name for name in model.model_fields}
    for name, info in model.model_fields.items():
        choices = getattr(info.validation_alias, "choices", [info.validation_alias])
        own.update({choice: name for choice in choices if isinstance(choice, str)})
    return own


@dataclass
class _Walk:
    switch_on: bool
    trail: dict[Path, Path] = field(default_factory=dict)
    strays: list[Stray] = field(default_factory=list)

    def section(
        self, model: type[BaseModel], raw: Mapping[str, Any], path: Path, written: Path
    ) -> dict[str, Any]:
        names, made = spellings(model), dict[str, Any]()
        for key, value in raw.items():
            name = names.get(key) or names.get(_CAPITAL.sub(r"_\1", key).lower())
            if name is None and (meant := _READ_AS.get((model, key))) and meant not in raw:
                hint = f"write {meant!r}"
                self.strays.append(Stray((*written, key), f"read as {meant!r}", hint, True))
                name = meant
            if name is None:
                self.strays.append(_make_stray(model, key, (*written, key)))
            elif name in made:
                other = self.trail[(*path, name)][-1]
                self.strays.append(
                    Stray((*written, key), f"the same key as {other!r}", "keep one of them")
                )
            else:
                annotation = model.model_fields[name].annotation
                made[name] = self.value(annotation, value, (*path, name), (*written, key))
        return made

    def value(self, annotation: Any, raw: Any, path: Path, written: Path) -> Any:
        self.trail[path] = written
        if isinstance(raw, Unset):
            return raw
        kind = _drop_none(annotation)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return self._model(kind, raw, path, written)
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is dict and isinstance(raw, Mapping):
            return {
                key: self.value(arguments[1], entry, (*path, key), (*written, key))
                for key, entry in raw.items()
            }
        if origin is tuple and isinstance(raw, (list, tuple)) and _is_model(arguments[0]):
            return [
                self.value(arguments[0], entry, (*path, n), (*written, n))
                for n, entry in enumerate(raw)
            ]
        if origin is tuple and isinstance(raw, str):
            return [raw]
        return raw

    def _model(self, model: type[BaseModel], raw: Any, path: Path, written: Path) -> Any:
        if issubclass(model, Switched) and isinstance(raw, bool):
            self.trail[(*path, "enabled")] = written
            return {"enabled": raw}
        if issubclass(model, Sources) and isinstance(raw, bool):
            return self._sources(model, raw, path, written)
        if issubclass(model, ListSection) and isinstance(raw, (list, tuple, str)):
            name, info = next(iter(model.model_fields.items()))
            return {name: self.value(info.annotation, raw, (*path, name), written)}
        if not isinstance(raw, Mapping):
            return raw
        made = self.section(model, raw, path, written)
        if issubclass(model, Switched) and self.switch_on and "enabled" not in made:
            self.trail[(*path, "enabled")] = written
            made["enabled"] = True
        return made

    def _sources(
        self, model: type[Sources], raw: bool, path: Path, written: Path
    ) -> dict[str, Any]:
        names = [name for name, info in model.model_fields.items() if _is_switched(info.annotation)]
        if raw:  # searching all would query sources that are not configured
            hint = f'name it, as in {{"{names[0]}": true}}; known: {", ".join(names)}'
            self.strays.append(Stray(written, "true does not say what to search", hint))
            return {}
        return {
            name: self.value(model.model_fields[name].annotation, raw, (*path, name), written)
            for name in names
        }


def _make_stray(model: type[BaseModel], key: str, written: Path) -> Stray:
    """Return the stray for an unknown key, with a hint: the section where it is valid, or the
    nearest key that is valid here."""
    if (model, key) in _GONE:
        return Stray(written, "unknown key", _GONE[model, key], harmless=True)
    elsewhere, near = _hint_elsewhere(model, key), _is_near_miss(model, key)
    inside = "" if near else _hint_inside(model, key)
    hint = elsewhere or inside or suggestion(key, sorted(model.model_fields))
    return Stray(written, "unknown key", hint, not elsewhere and not near)


def _is_near_miss(model: type[BaseModel], key: str) -> bool:
    """Return whether a known key differs in one or two letters; a short one in a single letter."""
    from rapidfuzz.distance import OSA  # only files with an unknown key need it

    name = _CAPITAL.sub(r"_\1", key).lower()
    most = 2 if len(name) > 5 else 1 if len(name) > 2 else 0
    return any(OSA.distance(name, known) <= most for known in spellings(model))


def _hint_elsewhere(model: type[BaseModel], key: str) -> str:
    if (key in AppKeys.model_fields and issubclass(model, Settings)) or (
        key == "workers" and model is HookSettings
    ):
        return "it applies to the whole app: set it in agent/agent.yml"
    if key == "search" and model is SearchSettings:
        return "this file holds its keys directly: web, kb, db, …"
    return ""


def _hint_inside(model: type[BaseModel], key: str) -> str:
    """Return the hint for a key of one of the model's sections; "" if none or several have it."""
    sections = {name: _drop_none(info.annotation) for name, info in model.model_fields.items()}
    found = [
        name
        for name, kind in sections.items()
        if _is_model(kind) and key in kind.model_fields and not _is_unread(kind.model_fields[key])
    ]
    return f"did you mean '{found[0]}.{key}'?" if len(found) == 1 else ""


def _is_unread(info: FieldInfo) -> bool:
    return isinstance(info.json_schema_extra, dict) and "unread" in info.json_schema_extra


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _is_switched(kind: Any) -> bool:
    return _is_model(kind) and issubclass(kind, Switched)


def _drop_none(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, UnionType):
        kinds = [kind for kind in get_args(annotation) if kind is not NoneType]
        return kinds[0] if len(kinds) == 1 else annotation
    return annotation
