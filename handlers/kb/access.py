"""Who may see what of a collection: its permission, its tenants, and the filter of a request. Fails
closed. Pure.

The tenant comes from the request's identity and from nowhere else. A filter is a further condition
beside it, on declared fields alone, so that no filter can reach what the tenant does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from groundhook.host.core.errors import NotPermitted, UsageError, suggestion
from groundhook.host.core.types.collection_spec import (
    CollectionSpec,
    PermissionSpec,
)
from groundhook.host.core.types.filters import Filter, fit_filter, parse_filter
from groundhook.host.core.types.search import SearchRequest
from groundhook.host.core.types.turn import Identity

_LISTS = frozenset({"users", "teams", "tenants", "scopes"})


def tenant_seen(spec: CollectionSpec, identity: Identity) -> str | None:
    """Whose documents the identity may see; None in a collection without tenants. Raises
    NotPermitted when it may not search there at all, or names no tenant where one is needed."""
    if not _lets_in(spec.permission, identity):
        raise NotPermitted(
            f"collection {spec.id!r} is not open to {_who(identity)}",
            hint="`permission` in its .kb.yao says who may search it",
        )
    if not spec.tenant_field:
        return None
    if not identity.tenant_id:
        raise NotPermitted(
            f"collection {spec.id!r} keeps its tenants apart, and the request names none",
            hint="the identity needs a tenant_id",
        )
    return identity.tenant_id


def filter_of(spec: CollectionSpec, request: SearchRequest) -> Filter | None:
    """The request's filter as it fits the collection's fields. Raises UsageError."""
    parsed = parse_filter(request.filter) if request.filter else None
    return None if parsed is None else fit_filter(parsed, spec.filterable, spec.id)


def facets_of(spec: CollectionSpec, request: SearchRequest) -> Sequence[str]:
    """The fields of the collection whose values are to be counted; it may lack some of those that
    are asked for."""
    return [name for name in request.facets or () if name in facetable(spec)]


def facetable(spec: CollectionSpec) -> list[str]:
    """The fields that facets may count."""
    return [name for name, field in spec.fields.items() if field.facetable]


def fit_facets(
    specs: Sequence[CollectionSpec], request: SearchRequest
) -> Iterator[tuple[str, str]]:
    """Code and text of a warning where a count leaves out documents that have values. Raises
    UsageError for a facet that none of the collections can count; they are those that the request
    may see."""
    if not specs:
        return
    known = list(dict.fromkeys(name for spec in specs for name in facetable(spec)))
    whose = (
        f"collection {specs[0].id!r} has no" if len(specs) == 1 else "none of the collections has a"
    )
    for name in request.facets or ():
        if name not in known:
            raise UsageError(f"{whose} facetable field {name!r}", hint=suggestion(name, known))
        for spec in specs:
            if name in spec.fields and not spec.fields[name].facetable:
                left_out = (
                    f"the facet {name!r} leaves out collection {spec.id!r}, whose field {name!r} is"
                    " not facetable"
                )
                yield "facet_not_counted", left_out


def _lets_in(permission: PermissionSpec, identity: Identity) -> bool:
    if permission.named != "anyone" and not getattr(identity, f"{permission.named}_id"):
        return False
    if not permission.model_fields_set & _LISTS:
        return True
    listed = (
        (permission.users, [identity.user_id]),
        (permission.teams, [identity.team_id]),
        (permission.tenants, [identity.tenant_id]),
        (permission.scopes, identity.scope.split()),
    )
    return any(name and name in allowed for allowed, names in listed for name in names)


def _who(identity: Identity) -> str:
    named = [
        f"{noun} {id!r}"
        for noun, id in (("user", identity.user_id), ("team", identity.team_id))
        if id
    ]
    return ", ".join(named) or "a request that names nobody"
