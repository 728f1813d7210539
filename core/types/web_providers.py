"""The contract of a web search provider: its request, its results and its registration. Plug-in
packages implement it as the built-in providers do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from groundhook.core.types.closing import OnClose
from groundhook.core.types.search import TimeRange

Ability = Literal["sites", "exclude_sites", "time_range", "language"]
ABILITIES: frozenset[Ability] = frozenset({"sites", "exclude_sites", "time_range", "language"})


@dataclass(frozen=True, kw_only=True)
class WebQuery:
    """The request of one search. `sites` and `exclude_sites` are bare domains or paths below them
    (`example.com/docs`); `language` is a tag such as `en` or `pt-BR`, "" for any; `timeout` is in
    seconds and is also enforced by the caller, since no client has a total deadline."""

    query: str
    limit: int
    sites: tuple[str, ...] = ()
    exclude_sites: tuple[str, ...] = ()
    time_range: TimeRange | None = None
    language: str = ""
    timeout: float = 8.0


@dataclass(frozen=True, kw_only=True)
class WebHit:
    """One result as the provider returns it. `score` is its relevance of 0-1, None if the provider
    has none; `published` is its date in the provider's format."""

    url: str
    title: str = ""
    content: str = ""
    score: float | None = None
    published: str = ""


class WebEngine(Protocol):
    """A web search engine."""

    async def search(self, ask: WebQuery, /) -> list[WebHit]:
        """Return pages, best first. Raises SourceError."""
        ...


@dataclass(frozen=True, kw_only=True)
class WebAccess:
    """A provider's base URL and key. `variable` is the environment variable that holds the key (or
    the address, for a provider without keys), for messages; `closing` registers an async function
    to await when the source closes."""

    key: str
    variable: str
    host: str
    closing: OnClose


@dataclass(frozen=True, kw_only=True)
class WebProvider:
    """A provider's entry in the registry. The environment variable `variable` holds its key or, if
    it has no default `host`, its address. `max_results` is the largest limit that it accepts. A
    request for something outside its abilities (`can`) gives a warning. `make` opens it for an
    address and a key."""

    variable: str
    host: str
    max_results: int
    make: Callable[[WebAccess], WebEngine]
    can: frozenset[Ability] = ABILITIES
