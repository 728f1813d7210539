"""Choice of the search provider and its access, from the settings and the environment. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groundhook.core.concealed import conceal
from groundhook.core.errors import SourceNotConfigured, UnknownName
from groundhook.core.registry import Registry
from groundhook.core.source_settings import WebSettings
from groundhook.core.types.closing import OnClose
from groundhook.core.types.web_providers import WebAccess, WebProvider
from groundhook.handlers.web.urls import followable


def choose_provider(
    settings: WebSettings,
    environment: Mapping[str, str],
    providers: Registry[WebProvider],
    on_close: OnClose,
) -> tuple[str, WebAccess]:
    """Return the provider's name and access: the configured provider, or with `auto` the first that
    has a key or an address. `api_key_env` names another variable for the key; with `auto` it
    applies to the provider whose name is part of it, else to the first. Raises SourceNotConfigured,
    UnknownName."""
    if settings.host and not followable(settings.host):
        raise SourceNotConfigured("search.web.host is not an http(s) address")
    name = settings.provider
    if name != "auto" and name not in providers:
        raise UnknownName("web search provider", name, ["auto", *providers.names()])
    tried: list[str] = []
    for candidate in [name] if name != "auto" else providers:
        variables = _variables_of(candidate, settings, providers)
        tried += variables
        setting = _first_set(variables, environment)
        access = _access(
            providers.get(candidate), settings, setting, on_close, named=name != "auto"
        )
        if access is not None:
            return candidate, access
    variable = f"set the environment variable {' or '.join(tried)}"
    if name == "auto":
        raise SourceNotConfigured("no web search provider is configured", hint=variable)
    if providers.get(name).host:
        raise SourceNotConfigured(f"the web search provider {name!r} has no key", hint=variable)
    raise SourceNotConfigured(
        f"the web search provider {name!r} has no address", hint=f"{variable}, or search.web.host"
    )


def _variables_of(
    candidate: str, settings: WebSettings, providers: Registry[WebProvider]
) -> list[str]:
    """Return the environment variables that may configure a provider, in the order in which they
    are read."""
    own = settings.api_key_env
    if settings.provider == "auto" and not _is_key_of(own, candidate, providers):
        own = ""
    return list(dict.fromkeys(filter(None, (own, providers.get(candidate).variable))))


def _first_set(variables: Sequence[str], environment: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the first variable that has a value, with the value, which is concealed in errors and
    logs from now on."""
    for variable in variables:
        if value := environment.get(variable, "").strip():
            conceal(variable, value)
            return variable, value
    return None


def _access(
    provider: WebProvider,
    settings: WebSettings,
    setting: tuple[str, str] | None,
    on_close: OnClose,
    *,
    named: bool,
) -> WebAccess | None:
    """Return the access to a provider, or None if it is not configured. `setting` is the
    environment variable that is set, and its value. A provider with a default address needs a key.
    One without needs an address, from its variable or, if it is configured by name (`named`), from
    the settings. Raises SourceNotConfigured for an address that is not http(s)."""
    variable, value = setting or (provider.variable, "")
    if provider.host:
        return (
            WebAccess(
                key=value, variable=variable, host=settings.host or provider.host, closing=on_close
            )
            if value
            else None
        )
    host = (settings.host or value) if named else value
    if not host:
        return None
    if not followable(host):
        raise SourceNotConfigured(f"the value of {variable} is not an http(s) address")
    return WebAccess(key="", variable=variable, host=host, closing=on_close)


def _is_key_of(variable: str, candidate: str, providers: Registry[WebProvider]) -> bool:
    """Return whether `api_key_env` applies to this provider when `provider` is `auto`."""
    named = [name for name in providers if name.upper() in variable.upper()]
    return candidate in named if named else candidate == next(iter(providers))
