"""What can be configured of each source of a search, with every default: a part of
`host.core.settings`."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from groundhook.host.core.types.base import Value
from groundhook.host.core.types.hosts import parse_declared
from groundhook.host.core.types.serialisation import VariableName, WebAddress


class Switched(Value):
    """A section that `true` and `false` switch on and off: `web: true` is `web: {enabled:
    true}`."""

    enabled: bool = Field(default=False, description="Search this source automatically")


class Sources(Value):
    """A section of sources, which `false` switches off together: `search: false` is `{web: false,
    kb: false, db: false}`."""


def _declarable(text: str) -> str:
    parse_declared(text)
    return text


DeclaredHost = Annotated[str, AfterValidator(_declarable)]


class PageSettings(Value):
    """How pages are read that a search listed."""

    timeout_ms: int = Field(
        default=4000, ge=1, description="One page, with its site's robots.txt and redirects"
    )
    max_kb: int = Field(default=2048, ge=1, description="Largest page, after decompression")
    redirects: int = Field(default=5, ge=0, le=20, description="Redirects to follow")
    robots: bool = Field(
        default=True,
        description="Leave pages alone that their site's robots.txt does not want read",
    )
    hosts: tuple[DeclaredHost, ...] = Field(
        default=(),
        description=(
            "Addresses that are not public and may be read all the same, such as `10.1.2.3` or"
            " `10.0.0.0/8`"
        ),
    )


class WebCacheSettings(Switched):
    """Answers of providers that are used again; how long depends on how recent they were to be."""

    enabled: bool = Field(default=True, description="Use answers again")
    entries: int = Field(default=256, ge=1, le=10_000, description="Most answers that are kept")
    day_s: float = Field(
        default=300, ge=0, description="Seconds that an answer for the last day is good for"
    )
    week_s: float = Field(default=900, ge=0)
    month_s: float = Field(default=1800, ge=0)
    year_s: float = Field(default=3600, ge=0)
    any_s: float = Field(
        default=900, ge=0, description="Seconds that an answer without a time range is good for"
    )


class BreakerSettings(Value):
    failures: int = Field(
        default=5,
        ge=0,
        description="Failures in a row after which a provider is left alone; 0: never",
    )
    pause_s: float = Field(
        default=30, gt=0, description="Seconds it is left alone, before one search tries it again"
    )


class WebSettings(Switched):
    provider: str = Field(
        default="auto", description="`auto`, a provider's name, `mcp:<server>` or an assistant"
    )
    host: WebAddress = Field(default="", description="Another base URL for the provider")
    api_key_env: VariableName = Field(
        default="", description="Environment variable with the key (default: the provider's own)"
    )
    max_results: int = Field(default=10, ge=1, le=100)
    timeout_ms: int = Field(
        default=8000, ge=1, description="Deadline of one search, whatever the client believes"
    )
    exclude_sites: tuple[str, ...] = Field(default=(), description="Sites whose pages are left out")
    language: str = Field(
        default="", max_length=35, description="Language of the results, such as `en`; empty: any"
    )
    fetch: int = Field(
        default=0,
        ge=0,
        le=10,
        description="So many of the first pages are read, and not only listed",
    )
    pages: PageSettings = PageSettings()
    retries: int = Field(
        default=1,
        ge=0,
        le=5,
        description="Tries again after a failure that may pass, within the deadline",
    )
    breaker: BreakerSettings = BreakerSettings()
    cache: WebCacheSettings = WebCacheSettings()


class KBSettings(Switched):
    collections: tuple[str, ...] = Field(
        default=(), description="Collections to search automatically (default: kb.collections)"
    )
    threshold: float = Field(
        default=0.3, ge=0, le=1, description="Least similarity, the same scale for every model"
    )
    graph: bool = False
    groups: int = Field(
        default=0,
        ge=0,
        le=1000,
        description="Most passages of one document; 0: as many as there are",
    )
    neighbours: int = Field(
        default=0,
        ge=0,
        le=20,
        description="Passages before and after each hit that its content brings along",
    )
    passage_tokens: int = Field(
        default=200,
        ge=0,
        le=100_000,
        description="Of a longer chunk, so much that answers is the content; 0: chunks as they are",
    )
    diversity: float = Field(
        default=0.0, ge=0, le=1, description="How much passages that repeat others fall behind"
    )
    max_results: int = Field(default=10, ge=1, le=1000)
    timeout_ms: int = Field(default=8000, ge=1)


class DBSettings(Switched):
    models: tuple[str, ...] = Field(
        default=(), description="Models to query automatically (default: db.models)"
    )
    max_results: int = Field(default=20, ge=1, le=1000)
    timeout_ms: int = Field(default=8000, ge=1)
