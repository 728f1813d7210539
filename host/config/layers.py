"""The layers of configuration: their values, and where each value is written.

defaults < global (`agent/agent.yml`, then `agent/search.yao`) < assistant (`package.yao`) < trial <
hook < request. A layer holds only the keys that are set, by their canonical names in `Settings`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from groundhook.core.errors import HookReturnInvalid, HostError, Place, UsageError
from groundhook.core.settings import Settings
from groundhook.core.types.base import UnknownKey, dotted, validation_problems
from groundhook.core.types.search import SEARCH_TYPES, RerankOptions
from groundhook.core.types.turn import CreateReturn, SearchChoice, TurnOptions
from groundhook.host.config.environment import holds_variable
from groundhook.host.config.locations import Path
from groundhook.host.config.normalise import normalise
from groundhook.host.config.validate import ValidDocument

LayerName = Literal["defaults", "global", "assistant", "trial", "hook", "request"]


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One layer. `unknown` are the keys of a hook or a request that nothing reads: a warning, not
    an error."""

    name: LayerName
    data: Mapping[str, Any] = field(default_factory=dict)
    unknown: tuple[UnknownKey, ...] = ()
    checked: ValidDocument | None = None
    prefix: Path = ()

    def place(self, path: Path) -> Place | None:
        """Return where the value at a path of `Settings` is written; None for a layer without a
        file."""
        return self.checked.place(path[len(self.prefix) :]) if self.checked else None

    def written(self, path: Path, value: Any) -> Any:
        """Return `value`, or its text as written when that text uses a variable of the
        environment."""
        if self.checked is None:
            return value
        raw = self.checked.document.at(self.checked.normal.written(path[len(self.prefix) :]))
        return raw if holds_variable(raw) else value


# Path in `Settings` → its name in what Create returns.
_RETURNED = {"search.citation": "citation", "options.": "", "mcp.servers": "mcp_servers"}

DEFAULTS = Layer(name="defaults", data=Settings().model_dump())


def file_layer(name: LayerName, checked: ValidDocument, *, under: str = "") -> Layer:
    """Return the settings of a valid file as a layer; `under` is the section that they belong to
    (`search` for `search.yao`)."""
    if under:
        return Layer(name=name, data={under: checked.data}, checked=checked, prefix=(under,))
    return Layer(name=name, data=_keep_settings(Settings, checked.data), checked=checked)


# Metadata of a turn → the setting for which it stands, its type, and that in words.
_METADATA: Mapping[str, tuple[str, type, str]] = {
    "__prompt_preset": ("prompt_preset", str, "text"),
    "__disable_global_prompts": ("disable_global_prompts", bool, "true or false"),
}


def hook_layer(returned: CreateReturn | None, metadata: Mapping[str, Any] | None = None) -> Layer:
    """Return the result of a Create hook as a layer, above the settings in the turn's `metadata`.
    Whether to search at all is not configuration: `host.search.plan` decides it. Search types that
    the hook names are switched on, the others off. Raises HookReturnInvalid."""
    found = {**(metadata or {}), **((returned.metadata if returned else None) or {})}
    told = {key: found[key] for key in _METADATA if found.get(key) is not None}
    kept = {
        _METADATA[key][0]: value
        for key, value in told.items()
        if isinstance(value, _METADATA[key][1])
    }
    unknown = tuple(
        UnknownKey(f"metadata.{key}", f"only {_METADATA[key][2]} counts")
        for key, value in told.items()
        if not isinstance(value, _METADATA[key][1])
    )
    if returned is None:
        return Layer(name="hook", data=kept, unknown=unknown)
    settings = {
        **kept,
        **_pick(returned, "connector", "prompt_preset", "disable_global_prompts", "locale", "uses"),
        "options": _pick(returned, "temperature", "max_tokens", "max_completion_tokens", "confirm"),
        "search": _search_choice(returned),
    }
    if returned.mcp_servers is not None:
        settings["mcp"] = {"servers": returned.mcp_servers}
    if returned.tools is not None:
        settings["tools"] = returned.tools
    made = _make_layer("hook", settings, HookReturnInvalid, "Create returned")
    return replace(made, unknown=(*made.unknown, *unknown))


def request_layer(options: TurnOptions | None) -> Layer:
    """Return the options of a request as a layer. Raises UsageError."""
    if options is None:
        return Layer(name="request")
    settings: dict[str, Any] = _pick(options, "connector")
    if own := _pick(options, "temperature", "max_tokens"):
        settings["options"] = own
    if options.locale:
        settings["locale"] = options.locale
    if not settings and options.rerank is None:
        return Layer(name="request")
    if options.rerank is None:
        return _make_layer("request", settings, UsageError, "the request says")
    settings["search"] = {"rerank": options.rerank}
    return _drop_file_keys(_make_layer("request", settings, UsageError, "the request says"))


def _drop_file_keys(layer: Layer) -> Layer:
    """Return a request's layer without what it may not set: it may choose the reranker, but
    addresses and names of keys come from files only."""
    rerank = layer.data["search"]["rerank"]
    strange = [key for key in rerank if key not in RerankOptions.model_fields]
    kept = {key: value for key, value in rerank.items() if key not in strange}
    unknown = [
        UnknownKey(f"search.rerank.{key}", "only files of the app may set it") for key in strange
    ]
    return replace(
        layer, data={**layer.data, "search": {"rerank": kept}}, unknown=(*layer.unknown, *unknown)
    )


def _keep_settings(model: type[BaseModel], data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a file that belongs to `Settings`; a file has more keys, also inside a
    section (`hooks.workers`)."""
    kept: dict[str, Any] = {}
    for key, value in data.items():
        if key not in model.model_fields:
            continue
        kind = model.model_fields[key].annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel) and isinstance(value, Mapping):
            value = _keep_settings(kind, value)
        kept[key] = value
    return kept


def _pick(source: CreateReturn | TurnOptions, *names: str) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(source, name)) is not None}


def _search_choice(returned: CreateReturn) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if returned.citation is not None:
        settings["citation"] = returned.citation.model_dump(exclude_none=True)
    if isinstance(returned.search, SearchChoice) and returned.search.search_types is not None:
        settings.update(
            {kind: {"enabled": kind in returned.search.search_types} for kind in SEARCH_TYPES}
        )
    return settings


def _make_layer(
    name: LayerName, settings: Mapping[str, Any], error: type[HostError], who: str
) -> Layer:
    normal = normalise(Settings, settings, switch_on=True)
    try:
        Settings.model_validate(normal.data)
    except ValidationError as exc:
        path, message = validation_problems(exc)[0]
        key = dotted(normal.written(path))
        for ours, theirs in _RETURNED.items() if name == "hook" else ():
            key = theirs + key.removeprefix(ours) if key.startswith(ours) else key
        raise error(f"{who} a wrong {key!r}: {message}") from None
    unknown = tuple(UnknownKey(dotted(stray.path), stray.hint) for stray in normal.strays)
    return Layer(name=name, data=normal.data, unknown=unknown)
