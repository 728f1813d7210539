"""Chooses the reranker and its options: from the settings, the options of a search, and
`uses.rerank`. Pure functions."""

from __future__ import annotations

from collections.abc import Container, Sequence

from groundhook.core.ports import Ranked
from groundhook.core.settings import RerankSettings, Settings
from groundhook.core.types.search import RerankOptions, rerank_type


def options_of(settings: Settings, own: RerankOptions | None) -> RerankSettings:
    """Return the settings' options, overridden by the search's own."""
    base = settings.search.rerank
    if own is None:
        return base
    over = own.model_dump(exclude_none=True)
    if kind := rerank_type(over):
        over["type"] = kind
    return base.model_copy(update=over)


def choose(
    options: RerankSettings, uses: str, registered: Container[str]
) -> tuple[str, RerankSettings]:
    """Return the reranker's name in the registry, and its options. Without a type in the options
    `uses` chooses: `builtin`, a plug-in's name, `mcp:<server>[.<tool>]`, `connector:<id>`, or an
    assistant."""
    kind = options.type
    assistant = (
        uses
        if uses not in ("", "builtin") and not uses.startswith("mcp:") and uses not in registered
        else None
    )
    if kind is None:
        if uses.startswith("mcp:"):
            return "mcp", options.model_copy(update={"mcp": uses.removeprefix("mcp:")})
        if assistant:
            return "agent", options.model_copy(update={"agent": assistant})
        return ("score" if uses in ("", "builtin") else uses), options
    if kind == "agent" and not options.agent and assistant:
        return kind, options.model_copy(update={"agent": assistant})
    if kind == "mcp" and not options.mcp and uses.startswith("mcp:"):
        return kind, options.model_copy(update={"mcp": uses.removeprefix("mcp:")})
    return kind, options


def misfit(ranked: Sequence[Ranked], count: int) -> str:
    """Return the problem with a reranker's judgement of `count` items, or ""."""
    if not isinstance(ranked, Sequence):
        return f"a value of {ranked.__class__.__name__}, not a sequence of Ranked"
    for one in ranked:
        if not isinstance(one, Ranked):
            return f"a value of {one.__class__.__name__}, not a Ranked"
        if not isinstance(one.index, int) or not 0 <= one.index < count:
            return f"the index {one.index!r} for {count} items"
        # Also false for NaN.
        if not isinstance(one.score, int | float) or not 0 <= one.score <= 1:
            return f"the score {one.score!r}, which is not between 0 and 1"
    return ""
