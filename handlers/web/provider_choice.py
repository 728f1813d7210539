"""Choice of the search provider and its access, from the settings and the environment. Pure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from groundhook.handlers.web.urls import followable
from groundhook.host.core.concealed import conceal
from groundhook.host.core.errors import SourceNotConfigured, UnknownName
from groundhook.host.core.registry import Registry
from groundhook.host.core.source_settings import WebSettings
from groundhook.host.core.types.web_providers import WebAccess, WebProvider

Closing = Callable[[Callable[[], Awaitable[None]]], object]


def choose_provider(
    settings: WebSettings,
    environment: Mapping[str, str],
    providers: Registry[WebProvider],
    closing: Closing,
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
        provider = providers.get(candidate)
        own = (
            settings.api_key_env
            if name != "auto" or _is_key_of(settings.api_key_env, candidate, providers)
            else ""
        )
        variables = list(dict.fromkeys(filter(None, (own, provider.variable))))
        tried += variables
        setting = next(
            (
                (variable, value)
                for variable in variables
                if (value := environment.get(variable, "").strip())
            ),
            None,
        )
        if setting is not None:
            conceal(*setting)
        access = _access(provider, settings, setting, closing, named=name != "auto")
        if access is not None:
            return candidate, access
    what = (
        "no web search provider is configured"
        if name == "auto"
        else f"the web search provider {name!r} has no {_missing(providers.get(name))}"
    )
    or_host = "" if name == "auto" or providers.get(name).host else ", or search.web.host"
    raise SourceNotConfigured(
        what, hint=f"set the environment variable {' or '.join(tried)}{or_host}"
    )


def _access(
    provider: WebProvider,
    settings: WebSettings,
    setting: tuple[str, str] | None,
    closing: Closing,
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
                key=value, variable=variable, host=settings.host or provider.host, closing=closing
            )
            if value
            else None
        )
    host = (settings.host or value) if named else value
    if not host:
        return None
    if not followable(host):
        raise SourceNotConfigured(f"what {variable} holds is not an http(s) address")
    return WebAccess(key="", variable=variable, host=host, closing=closing)


def _missing(provider: WebProvider) -> str:
    """Return what a provider without access lacks."""
    return "key" if provider.host else "address"


def _is_key_of(variable: str, candidate: str, providers: Registry[WebProvider]) -> bool:
    """Return whether `api_key_env` applies to this provider when `provider` is `auto`."""
    named = [name for name in providers if name.upper() in variable.upper()]
    return candidate in named if named else candidate == next(iter(providers))
