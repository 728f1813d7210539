"""The contract of a web search provider, narrow enough for a stranger's: what it is asked, what it answers, how it is made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, Protocol

TimeRange = Literal["day", "week", "month", "year"]


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One search. `sites` are bare domains or parts of them (`example.com/docs`); `timeout` is in seconds and also held by
    the caller, since no client has a total deadline."""

    query: str
    limit: int
    sites: tuple[str, ...] = ()
    time_range: TimeRange | None = None
    timeout: float = 8.0


@dataclass(frozen=True, kw_only=True)
class Hit:
    """One page as the provider gave it. `score` is its relevance of 0-1, None where the provider has none."""

    url: str
    title: str = ""
    content: str = ""
    score: float | None = None


class Provider(Protocol):
    async def search(self, ask: Ask, /) -> list[Hit]:
        """Pages, best first. Raises SourceError."""
        ...


@dataclass(frozen=True, kw_only=True)
class Access:
    """Where a provider is and who asks. `variable` is the environment variable that holds the key, for messages;
    `closing` takes what must be awaited when the source is closed."""

    key: str
    variable: str
    host: str
    closing: Callable[[Callable[[], Awaitable[None]]], object]


@dataclass(frozen=True, kw_only=True)
class ProviderType:
    """A provider as it is registered. `most` is the largest limit it accepts."""

    variable: str
    host: str
    most: int
    make: Callable[[Access], Provider]
