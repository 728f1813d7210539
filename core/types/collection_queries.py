"""Questions of toolkits to collections, and the answers: the values of
`core.tool_ports.Collections`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote

from groundhook.core.types.fields import Fields
from groundhook.core.types.search import FacetCount, TotalIs
from groundhook.core.types.turn import Identity

# The owner of the documents that a request may see. `app`: the collection has no `tenant_field`.
# The others need one: its values are `partition(identity, owner)`.
Owner = Literal["app", "tenant", "team", "user"]


def partition(identity: Identity, owner: Owner) -> str:
    """Return the value of a collection's `tenant_field` for an identity's documents: "" for `app`,
    the tenant's id for `tenant`, `<tenant>/team/<team>` and `<tenant>/user/<user>` for the others,
    so that users of two tenants with one id stay apart; the ids are percent-encoded. Returns "" if
    the identity lacks that part; callers refuse such a request first."""
    match owner:
        case "app":
            return ""
        case "tenant":
            return identity.tenant_id
        case "team":
            return _part(identity, "team", identity.team_id)
        case "user":
            return _part(identity, "user", identity.user_id)


def _part(identity: Identity, owner: str, id: str) -> str:
    """Slashes within ids are escaped, so that two owners never have the same value."""
    return f"{quote(identity.tenant_id, safe='')}/{owner}/{quote(id, safe='')}" if id else ""


@dataclass(frozen=True, kw_only=True)
class CollectionQuery:
    """One question to one collection.

    `collection` is a name as the toolkit's file has it: a collection of the toolkit's assistant
    (`datasets`), or of the app. `text` is what is searched for by meaning and words; "" lists the
    documents that fulfil the filter, ordered by `order_by` (a field, `title` or `id`; with a
    leading `-` descending), each with the score 1.0. `filter` has the JSON form of
    `core.types.filters`: `{"organization": "health", "year": {"gte": 2020}}`; a list of
    values is "one of", and `{"and": [{"tags": "a"}, {"tags": "b"}]}` asks for both.

    At most `limit` (1-1,000) documents from `offset` (0-1,000) on; pages of the same question are
    parts of one order. `after` is for listings of any length: only documents whose ids come after
    it ("": all). `threshold` is the least similarity, 0-1; 0 keeps everything; None is the
    collection's or the assistant's. `facets` are fields to count over all that fulfil the filter.
    `owner` names the documents that the identity sees."""

    collection: str
    text: str = ""
    filter: Mapping[str, Any] | None = None
    limit: int = 10
    offset: int = 0
    after: str = ""
    threshold: float | None = None
    facets: Sequence[str] = ()
    order_by: str = "id"
    owner: Owner = "tenant"


@dataclass(frozen=True, kw_only=True)
class CollectionMatch:
    """A document that a question found. `id` is the raw one that it was put with, `score` its
    similarity of 0-1 (never rising along the answer), `passage` its part that fits best, and
    `fields` its payload. `collection` is the full id of the collection, for the key of an item."""

    id: str
    collection: str
    title: str = ""
    url: str = ""
    passage: str = ""
    score: float = 1.0
    fields: Fields = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CollectionAnswer:
    """The answer to one question: one match for each document, best first.

    `total` counts the documents that fulfil the filter and reach the threshold, exactly or (above
    1,000) at least; it is the same for every page. `below` counts documents that fulfil the filter
    and do not reach the threshold; it is 0 where the answer has as many matches as `limit`.
    `filled` is False when nothing was ever put into the collection:
    the answer is empty then."""

    matches: tuple[CollectionMatch, ...] = ()
    total: int = 0
    total_is: TotalIs = "exact"
    below: int = 0
    facets: Mapping[str, tuple[FacetCount, ...]] = field(default_factory=dict)
    filled: bool = True


@dataclass(frozen=True, kw_only=True)
class CollectionDocument:
    """A document as it is put, and as it is read again with exactly the same `text`.

    `fields` are those that the collection declares. `about` is what searches find the document by
    beside its title and text; it is not read again. `tenant` is the value of the collection's
    `tenant_field` (`partition`), "" for a collection without one; it counts in a sync only: for a
    tool the host sets it from the identity."""

    id: str
    text: str
    title: str = ""
    url: str = ""
    fields: Fields = field(default_factory=dict)
    tenant: str = ""
    about: str = ""


@dataclass(frozen=True, kw_only=True)
class PutReport:
    """The outcome of putting documents: how many were new, replaced or unchanged, and the problems
    of those that were not stored, by id."""

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)
