"""Decide what a request may see of a collection: its permission, its tenant and its filter. Fails
closed. Pure.

The tenant comes only from the identity of the request. A filter is an additional condition on
declared fields, so that no filter reaches documents of another tenant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from groundhook.core.errors import NotPermitted, UsageError, suggestion
from groundhook.core.types.collection_spec import (
    CollectionSpec,
    PermissionSpec,
)
from groundhook.core.types.filters import Filter, fit_filter, parse_filter
from groundhook.core.types.search import KBOptions
from groundhook.core.types.turn import Identity

_LISTS = frozenset({"users", "teams", "tenants", "scopes"})


def permitted_tenant(spec: CollectionSpec, identity: Identity, partition: str = "") -> str | None:
    """Return the tenant whose documents the identity may see, or the `partition` of its team or
    user; None for a collection without tenants. Raises NotPermitted if it may not search the
    collection, or has no tenant and needs one."""
    if not _permits(spec.permission, identity):
        raise NotPermitted(
            f"not permitted: collection {spec.id!r} is not open to {_describe(identity)}",
            hint="`permission` in its .kb.yao lists who may search it",
        )
    if not spec.tenant_field:
        return None
    if partition:
        return partition
    if not identity.tenant_id:
        raise NotPermitted(
            f"not permitted: collection {spec.id!r} separates its tenants, and the request names"
            " none",
            hint="the identity needs a tenant_id",
        )
    return identity.tenant_id


def filter_of(spec: CollectionSpec, options: KBOptions) -> Filter | None:
    """Return the filter of the options, checked against the collection's fields. Raises
    UsageError."""
    parsed = parse_filter(options.filter) if options.filter else None
    return None if parsed is None else fit_filter(parsed, spec.filterable, spec.id)


def facets_of(spec: CollectionSpec, options: KBOptions) -> Sequence[str]:
    """Return the requested facets that the collection has; it may lack some."""
    return [name for name in options.facets or () if name in facetable_fields(spec)]


def facetable_fields(spec: CollectionSpec) -> list[str]:
    """Return the fields that facets may count."""
    return [name for name, field in spec.fields.items() if field.facetable]


def facet_warnings(
    specs: Sequence[CollectionSpec], options: KBOptions
) -> Iterator[tuple[str, str]]:
    """Yield (code, text) of a warning for each collection whose values a facet leaves out.
    `specs` are the collections that the request may see. Raises UsageError for a facet that none of
    them can count."""
    if not specs:
        return
    known = list(dict.fromkeys(name for spec in specs for name in facetable_fields(spec)))
    lacking = (
        f"collection {specs[0].id!r} has no" if len(specs) == 1 else "none of the collections has a"
    )
    for name in options.facets or ():
        if name not in known:
            raise UsageError(f"{lacking} facetable field {name!r}", hint=suggestion(name, known))
        for spec in specs:
            if name in spec.fields and not spec.fields[name].facetable:
                left_out = (
                    f"the facet {name!r} leaves out collection {spec.id!r}, whose field {name!r} is"
                    " not facetable"
                )
                yield "facet_not_counted", left_out


def _permits(permission: PermissionSpec, identity: Identity) -> bool:
    """Return whether the permission admits the identity."""
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


def _describe(identity: Identity) -> str:
    """Return the user and the team of the identity, for an error."""
    named = [
        f"{noun} {id!r}"
        for noun, id in (("user", identity.user_id), ("team", identity.team_id))
        if id
    ]
    return ", ".join(named) or "a request that names nobody"
