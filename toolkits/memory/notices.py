"""The notices beside the results of a search, and the documents that are no memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groundhook.core.tool_ports import ToolScope
from groundhook.core.types.collection_queries import CollectionAnswer, CollectionMatch
from groundhook.toolkits.memory.documents import number_of
from groundhook.toolkits.memory.settings import MemoryToolkitSettings


def of_search(answer: CollectionAnswer, newer: Mapping[str, Sequence[str]]) -> list[str]:
    """Return sentences for the model: which memories are superseded, and what is not shown."""
    notes = [f"Memory {old} is superseded by {', '.join(ids)}." for old, ids in newer.items()]
    if answer.below:
        notes.append(f"{answer.below} more are below the threshold; pass a lower `threshold`.")
    if answer.total > len(answer.matches):
        more = answer.total - len(answer.matches)
        least = "at least " if answer.total_is == "at_least" else ""
        notes.append(f"There are {least}{more} more; pass a higher `limit`.")
    return notes


async def memories_of(
    scope: ToolScope, shelf: str, matches: Sequence[CollectionMatch]
) -> list[CollectionMatch]:
    """Return the matches that are memories, and warn once of documents that are none."""
    others = [match.id for match in matches if number_of(match.id) is None]
    if others:
        await scope.warn(
            "not_a_memory",
            f"documents of {shelf!r} whose ids are no whole numbers are left out, such as"
            f" {others[0][:100]!r}",
        )
    return [match for match in matches if match.id not in others]


async def explain_nothing(
    scope: ToolScope,
    settings: MemoryToolkitSettings,
    toolkit: str,
    answer: CollectionAnswer,
    *,
    filtered: bool,
) -> None:
    """Warn if a shelf, or the part of it that the identity owns, has no memories at all. The latter
    is not known of a search that was `filtered`."""
    owner = settings.owner
    if not answer.filled:
        if settings.source:
            await scope.warn(
                "not_indexed", f"nothing is indexed (run: groundhook tools sync {toolkit})"
            )
    elif filtered or answer.below:
        return
    elif owner in ("team", "user") and not scope.identity.tenant_id:
        # In the same words whether or not some tenant has such a team or user.
        await scope.warn(
            "no_tenant",
            f"nothing was found for a {owner} without a tenant: if it belongs to a tenant, the"
            " request must name that as well",
        )
