"""Settings of the search sources, with every default: a part of `core.settings`."""

from __future__ import annotations

from pydantic import Field

from groundhook.core.types.base import Value, defaults_of
from groundhook.core.types.serialisation import DeclaredHost, VariableName, WebAddress


class Switched(Value):
    """A section that `true` and `false` switch on and off: `web: true` is `web: {enabled:
    true}`."""

    enabled: bool = Field(default=False, description="Search this source automatically")


class Sources(Value):
    """A section of sources, which `false` switches off together: `search: false` is `{web: false,
    kb: false, db: false}`."""


class PageSettings(Value):
    """The reading of pages that a web search found."""

    timeout_ms: int = Field(
        default=4000,
        ge=1,
        description="Deadline of one page, with its site's robots.txt and redirects",
    )
    max_kb: int = Field(default=2048, ge=1, description="Largest page, after decompression")
    redirects: int = Field(default=5, ge=0, le=20, description="Redirects to follow")
    robots: bool = Field(
        default=True,
        description="Skip pages that their site's robots.txt disallows",
    )
    hosts: tuple[DeclaredHost, ...] = Field(
        default=(),
        description=("Private addresses that may be read, such as `10.1.2.3` or `10.0.0.0/8`"),
    )


class WebCacheSettings(Switched):
    """The cache of provider answers; their lifetime depends on the time range of the search."""

    enabled: bool = Field(default=True, description="Cache answers")
    entries: int = Field(default=256, ge=1, le=10_000, description="Maximum answers kept")
    day_s: float = Field(
        default=300, ge=0, description="Lifetime in seconds of an answer for the last day"
    )
    week_s: float = Field(default=900, ge=0, description="The same for the last week")
    month_s: float = Field(default=1800, ge=0, description="The same for the last month")
    year_s: float = Field(default=3600, ge=0, description="The same for the last year")
    any_s: float = Field(
        default=900, ge=0, description="Lifetime in seconds of an answer without a time range"
    )


class BreakerSettings(Value):
    """The circuit breaker, which skips a failing provider for a while."""

    failures: int = Field(
        default=5,
        ge=0,
        description="Failures in a row after which a provider is skipped; 0: never",
    )
    pause_s: float = Field(default=30, gt=0, description="Seconds until one search tries it again")


class WebSettings(Switched):
    """Web search: the provider, its limits, and which pages are read."""

    provider: str = Field(
        default="auto", description="`auto`, a provider's name, `mcp:<server>` or an assistant"
    )
    host: WebAddress = Field(default="", description="Another base URL for the provider")
    api_key_env: VariableName = Field(
        default="", description="Environment variable with the key (default: the provider's own)"
    )
    max_results: int = Field(default=10, ge=1, le=100)
    timeout_ms: int = Field(default=8000, ge=1, description="Deadline of one search")
    exclude_sites: tuple[str, ...] = Field(default=(), description="Sites whose pages are omitted")
    language: str = Field(
        default="", max_length=35, description="Language of the results, such as `en`; empty: any"
    )
    fetch: int = Field(
        default=0,
        ge=0,
        le=10,
        description="Number of first results whose pages are read",
    )
    pages: PageSettings = defaults_of(PageSettings)
    retries: int = Field(
        default=1,
        ge=0,
        le=5,
        description="Retries after a temporary failure, within the deadline",
    )
    breaker: BreakerSettings = defaults_of(BreakerSettings)
    cache: WebCacheSettings = defaults_of(WebCacheSettings)


class KBSettings(Switched):
    """Search of knowledge bases."""

    collections: tuple[str, ...] = Field(
        default=(), description="Collections to search automatically (default: kb.collections)"
    )
    threshold: float = Field(
        default=0.3, ge=0, le=1, description="Minimum similarity, the same scale for every model"
    )
    graph: bool = False
    groups: int = Field(
        default=0,
        ge=0,
        le=1000,
        description="Maximum passages of one document; 0: no limit",
    )
    neighbours: int = Field(
        default=0,
        ge=0,
        le=20,
        description="Passages before and after each hit that are added to its content",
    )
    passage_tokens: int = Field(
        default=200,
        ge=0,
        le=100_000,
        description="Tokens of the content: the part of a longer chunk that answers; 0: all",
    )
    diversity: float = Field(
        default=0.0, ge=0, le=1, description="How far passages that repeat others are ranked down"
    )
    max_results: int = Field(default=10, ge=1, le=1000)
    timeout_ms: int = Field(default=8000, ge=1)


class DBSettings(Switched):
    """Search of databases."""

    models: tuple[str, ...] = Field(
        default=(), description="Models to query automatically (default: db.models)"
    )
    max_results: int = Field(default=50, ge=1, le=1000)
    timeout_ms: int = Field(default=8000, ge=1)
