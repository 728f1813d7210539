"""The settings of a run: the layers folded into one `Settings`, and the origin of each value.

Folds layers of plain data into one, and records which layer set each leaf. Pure: no mapping is
changed. A leaf is every value that is not a mapping; a later leaf wins, also `False`, `0`, `None`
and an empty list, and mappings are folded key by key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from groundhook.core.app_settings import AppSettings
from groundhook.core.errors import Place
from groundhook.core.settings import Settings
from groundhook.core.types.base import UnknownKey
from groundhook.core.types.search import rerank_type
from groundhook.host.config.environment import holds_variable, need
from groundhook.host.config.layers import DEFAULTS, Layer, LayerName
from groundhook.host.config.validate import ValidDocument

_Name = TypeVar("_Name")
Origins = dict[tuple[str, ...], _Name]


def fold(
    layers: Iterable[tuple[_Name, Mapping[str, Any]]],
) -> tuple[dict[str, Any], Origins[_Name]]:
    """Return the data of layers, given as `(name, data)` from the lowest up, and for the path of
    each leaf the name of the layer that set it."""
    value: dict[str, Any] = {}
    origins: Origins[_Name] = {}
    for name, layer in layers:
        _lay(name, layer, value, (), origins)
    return value, origins


def _lay(
    name: _Name,
    layer: Mapping[str, Any],
    into: dict[str, Any],
    path: tuple[str, ...],
    origins: Origins[_Name],
) -> None:
    for key, new in layer.items():
        where = (*path, key)
        old = into.get(key)
        if isinstance(new, Mapping):
            if not isinstance(old, dict):
                origins.pop(where, None)
                old = into[key] = {}
            _lay(name, new, old, where, origins)
        else:
            if isinstance(old, dict):
                _forget(where, origins)
            into[key] = new
            origins[where] = name


def _forget(path: tuple[str, ...], origins: Origins[_Name]) -> None:
    for where in [where for where in origins if where[: len(path)] == path]:
        del origins[where]


_Key = tuple[str, ...]

# A list that no layer sets → the list that it then equals.
_FOLLOWS: dict[_Key, _Key] = {
    ("search", "kb", "collections"): ("kb", "collections"),
    ("search", "db", "models"): ("db", "models"),
}


_PASSWORD = re.compile(r"(://[^/@:]*:)[^@]+@")  # in an address


@dataclass(frozen=True)
class Resolved:
    """Settings of one run. `origins` holds the layer of every leaf, by path; `unknown` are keys
    of the hook's and the request's layers that nothing reads."""

    settings: Settings
    origins: Mapping[_Key, Layer]
    unknown: tuple[UnknownKey, ...] = ()

    def place(self, *path: str) -> Place | None:
        """Return where the effective value is written: `resolved.place("connector")`. None for
        defaults, hooks and requests."""
        origin = self.origins.get(path)
        return origin.place(path) if origin else None


@dataclass(frozen=True)
class Explained:
    """One line of `groundhook config explain`. `value` is as written where it uses a variable of
    the environment."""

    key: str
    value: Any
    layer: LayerName
    place: Place | None


def resolve(layers: Sequence[Layer]) -> Resolved:
    """Return the settings of `layers`, folded over the defaults, lowest first. Raises ConfigError
    when an effective value needs a variable that is not set. Lists of collections and models to
    search equal `kb.collections` and `db.models` unless a layer sets them."""
    value, origins = fold([(layer, layer.data) for layer in (DEFAULTS, *layers)])
    for path, source in _FOLLOWS.items():
        if origins[path] is DEFAULTS and origins[source] is not DEFAULTS:
            _set(value, path, _get(value, source))
    _decide_reranker(layers, value, origins)
    need(value)
    unknown = tuple(key for layer in layers for key in layer.unknown)
    return Resolved(Settings.model_validate(value), origins, unknown)


def _decide_reranker(
    layers: Sequence[Layer], value: dict[str, Any], origins: dict[_Key, Layer]
) -> None:
    """Set the reranker from the highest layer that names one: `search.rerank` (`agent: "x"` means
    the type `agent`), else `uses.rerank`, which applies where no type is set."""
    path = ("search", "rerank", "type")
    for layer in reversed(layers):
        rerank = layer.data.get("search", {}).get("rerank", {})
        kind = rerank_type(rerank)
        if kind or layer.data.get("uses", {}).get("rerank"):
            _set(value, path, kind)
            origins[path] = layer if kind else DEFAULTS
            return


def explain(resolved: Resolved) -> list[Explained]:
    """Return every leaf of the settings with its value, layer and place, in the order of the
    schema."""
    return [
        _explain_leaf(resolved, path, value)
        for path, value in _leaves(resolved.settings.model_dump(), ())
    ]


def explain_app(settings: AppSettings, file: ValidDocument | None) -> list[Explained]:
    """Return the same for the settings of the whole app (`agent/agent.yml`). Keys and passwords are
    not shown."""
    written = Layer(name="global", data=file.data if file else {}, checked=file)
    leaves = [
        *_leaves(settings.model_dump(exclude={"hook_workers"}), ()),
        (("hooks", "workers"), settings.hook_workers),
    ]
    layers = (
        (path, value, written if _has(written.data, path) else DEFAULTS) for path, value in leaves
    )
    return [
        Explained(
            ".".join(path),
            _hide_secret(path, layer.written(path, value)),
            layer.name,
            layer.place(path),
        )
        for path, value, layer in layers
    ]


def _has(value: Any, path: _Key) -> bool:
    for step in path:
        if not isinstance(value, Mapping) or step not in value:
            return False
        value = value[step]
    return True


def _hide_secret(path: _Key, value: Any) -> Any:
    """Return the value without a secret that is written in the file; a variable of the environment
    is shown by its name."""
    if not isinstance(value, str) or holds_variable(value):
        return value
    if path[-1] in ("key", "api_key"):
        return "(hidden)" if value else ""
    return _PASSWORD.sub(r"\1(hidden)@", value)


def _explain_leaf(resolved: Resolved, path: _Key, value: Any) -> Explained:
    source = path
    while source and source not in resolved.origins:
        source = source[:-1]  # inside a value that was set as a whole
    if (follows := _FOLLOWS.get(path)) and resolved.origins[path] is DEFAULTS and value:
        source = follows
    layer = resolved.origins.get(source, DEFAULTS)
    return Explained(".".join(path), layer.written(source, value), layer.name, layer.place(source))


def _leaves(value: Mapping[str, Any], path: _Key) -> Iterator[tuple[_Key, Any]]:
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _leaves(inner, (*path, key))
        else:
            yield (*path, key), inner


def _get(value: Mapping[str, Any], path: _Key) -> Any:
    for step in path:
        value = value[step]
    return value


def _set(value: dict[str, Any], path: _Key, new: Any) -> None:
    for step in path[:-1]:
        value = value[step]
    value[path[-1]] = new
