"""Which provider is asked, and how it is reached. Pure but for looking keys up in the environment
that it is given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from groundhook.handlers.web.providers import Access, ProviderType
from groundhook.handlers.web.urls import followable
from groundhook.host.core.errors import SourceNotConfigured, UnknownName
from groundhook.host.core.registry import Registry
from groundhook.host.core.source_settings import WebSettings

Closing = Callable[[Callable[[], Awaitable[None]]], object]


def choose(
    settings: WebSettings,
    environment: Mapping[str, str],
    types: Registry[ProviderType],
    closing: Closing,
) -> tuple[str, Access]:
    """The provider to ask and how: the one that is named, or with `auto` the first that is
    configured. `api_key_env` names another variable for the key; with `auto` it counts for the
    provider whose name is part of it, else for the first. Raises SourceNotConfigured,
    UnknownName."""
    if settings.host and not followable(settings.host):
        raise SourceNotConfigured(f"search.web.host {settings.host!r} is not an http(s) address")
    name = settings.provider
    if name != "auto" and name not in types:
        raise UnknownName("web search provider", name, ["auto", *types.names()])
    tried: list[str] = []
    for candidate in [name] if name != "auto" else types:
        kind = types.get(candidate)
        own = (
            settings.api_key_env
            if name != "auto" or _names(settings.api_key_env, candidate, types)
            else ""
        )
        variables = list(dict.fromkeys(filter(None, (own, kind.variable))))
        tried += variables
        said = next(
            (
                (variable, value)
                for variable in variables
                if (value := environment.get(variable, "").strip())
            ),
            None,
        )
        access = _access(kind, settings, said, closing, named=name != "auto")
        if access is not None:
            return candidate, access
    what = (
        "web search has no provider"
        if name == "auto"
        else f"web search by {name!r} has no {_lacks(types.get(name))}"
    )
    or_host = "" if name == "auto" or types.get(name).host else ", or search.web.host"
    raise SourceNotConfigured(
        what, hint=f"set the environment variable {' or '.join(tried)}{or_host}"
    )


def _access(
    kind: ProviderType,
    settings: WebSettings,
    said: tuple[str, str] | None,
    closing: Closing,
    *,
    named: bool,
) -> Access | None:
    """A provider with an address of its own needs a key; one without needs an address, from its
    variable or, when it is asked for by name, from the settings. Raises SourceNotConfigured for a
    variable that holds no address."""
    variable, value = said or (kind.variable, "")
    if kind.host:
        return (
            Access(key=value, variable=variable, host=settings.host or kind.host, closing=closing)
            if value
            else None
        )
    host = (settings.host or value) if named else value
    if not host:
        return None
    if not followable(host):
        raise SourceNotConfigured(f"{variable} holds {host!r}, which is not an http(s) address")
    return Access(key="", variable=variable, host=host, closing=closing)


def _lacks(kind: ProviderType) -> str:
    return "key" if kind.host else "address"


def _names(variable: str, candidate: str, types: Registry[ProviderType]) -> bool:
    named = [name for name in types if name.upper() in variable.upper()]
    return candidate in named if named else candidate == next(iter(types))
