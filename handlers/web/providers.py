"""The contract of a web search provider, narrow enough for a stranger's: what it is asked, what it
answers, how it is made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, Protocol

TimeRange = Literal["day", "week", "month", "year"]
Ability = Literal["sites", "exclude_sites", "time_range", "language"]
ABILITIES: frozenset[Ability] = frozenset({"sites", "exclude_sites", "time_range", "language"})
LARGEST = 4 * 1024 * 1024  # bytes of an answer, decompressed


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One search. `sites` and `exclude_sites` are bare domains or parts of them
    (`example.com/docs`); `language` is a tag such as `en` or `pt-BR`, empty for any; `timeout` is
    in seconds and also held by the caller, since no client has a total deadline."""

    query: str
    limit: int
    sites: tuple[str, ...] = ()
    exclude_sites: tuple[str, ...] = ()
    time_range: TimeRange | None = None
    language: str = ""
    timeout: float = 8.0


@dataclass(frozen=True, kw_only=True)
class Hit:
    """One page as the provider gave it. `score` is its relevance of 0-1, None where the provider
    has none; `published` is its date in the provider's own words."""

    url: str
    title: str = ""
    content: str = ""
    score: float | None = None
    published: str = ""


class Provider(Protocol):
    async def search(self, ask: Ask, /) -> list[Hit]:
        """Pages, best first. Raises SourceError."""
        ...


@dataclass(frozen=True, kw_only=True)
class Access:
    """Where a provider is and who asks. `variable` is the environment variable that holds the key
    (or the address, for one that has no key), for messages; `closing` takes what must be awaited
    when the source is closed."""

    key: str
    variable: str
    host: str
    closing: Callable[[Callable[[], Awaitable[None]]], object]


@dataclass(frozen=True, kw_only=True)
class ProviderType:
    """A provider as it is registered. `variable` holds its key or, when it has no `host` of its
    own, its address. `most` is the largest limit it accepts; what it `can` not do is told to
    whoever asks for it."""

    variable: str
    host: str
    most: int
    make: Callable[[Access], Provider]
    can: frozenset[Ability] = ABILITIES


def with_operators(ask: Ask) -> str:
    """The query with its sites as search engines read them in it: `(site:a.org OR site:b.org)
    -site:c.org words`."""
    wanted = " OR ".join(f"site:{site}" for site in ask.sites)
    parts = [
        f"({wanted})" if len(ask.sites) > 1 else wanted,
        *(f"-site:{site}" for site in ask.exclude_sites),
        ask.query,
    ]
    return " ".join(part for part in parts if part)
