"""Whose rows an identity may see in a model with `option.permission`. Pure; `statement` turns a
`Permit` into SQL.

The rules, all of which must hold:

- The row's tenant is the identity's; an identity without one sees only rows without one.
- The row is the identity's own (`__yao_created_by`), or shared with its team (`__yao_share:
  "team"`) or with the whole tenant (`"tenant"`), or it was created by nobody in particular and
  belongs to its team or, without a team, to the tenant.
- Where the model says itself which columns hold user, team and tenant (`PermissionColumns`): the
  row's tenant is the identity's, and the row's user or team.
- The identity's constraints: `owner_only` own rows, outside other teams; `creator_only` rows it
  created; `editor_only` rows it changed last; `team_only` rows of its team; `extra` {field: value
  or list} where the model has that field.

Identity comes with the request. Nobody's identity sees nothing, which is said as "not permitted".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from groundhook.host.core.errors import NotPermitted
from groundhook.host.core.types.model_options import PermissionColumns
from groundhook.host.core.types.specs import ModelSpec
from groundhook.host.core.types.turn import Identity


@dataclass(frozen=True)
class Permit:
    """What a search of one model is limited to. Hashable: samples of values are kept for each
    permit."""

    tenant: str
    team: str
    user: str
    own: bool = False
    created: bool = False
    edited: bool = False
    of_team: bool = False
    extra: tuple[tuple[str, tuple[Any, ...]], ...] = ()


def permit_for(spec: ModelSpec, identity: Identity) -> Permit | None:
    """The limits on a search of this model; None where it is open to everyone.
    Raises NotPermitted when the identity is missing, or lacks what its own constraints speak of."""
    if not spec.option.permission:
        return None
    if not (identity.user_id or identity.team_id or identity.tenant_id):
        raise NotPermitted(
            f"not permitted: the model {spec.id!r} shows rows only to those they belong to, and the"
            " request names nobody",
            hint=(
                "send an identity with the request; on the command line --user, --team or --tenant"
            ),
        )
    limits = identity.constraints
    if isinstance(spec.option.permission, PermissionColumns):
        _need(spec, spec.option.permission, identity)
    personal = [
        name for name in ("owner_only", "creator_only", "editor_only") if getattr(limits, name)
    ]
    if personal and not identity.user_id:
        raise NotPermitted(
            f"not permitted: the constraint {personal[0]!r} holds and the identity has no user"
        )
    if limits.team_only and not identity.team_id:
        raise NotPermitted(
            "not permitted: the constraint 'team_only' holds and the identity has no team"
        )
    return Permit(
        identity.tenant_id,
        identity.team_id,
        identity.user_id,
        limits.owner_only,
        limits.creator_only,
        limits.editor_only,
        limits.team_only,
        _extra(spec, limits.extra),
    )


def _need(spec: ModelSpec, columns: PermissionColumns, identity: Identity) -> None:
    """Whether the identity says what the columns speak of. Raises NotPermitted."""
    limits = identity.constraints
    personal = limits.owner_only or limits.creator_only or limits.editor_only
    if (personal and not columns.user) or (limits.team_only and not columns.team):
        what = "users" if personal else "teams"
        raise NotPermitted(
            f"not permitted: the identity's constraints speak of {what}, and the model {spec.id!r}"
            " has no column for them"
        )
    whose = [
        value
        for name, value in ((columns.user, identity.user_id), (columns.team, identity.team_id))
        if name
    ]
    if (whose and not any(whose)) or (columns.tenant and not identity.tenant_id):
        said = (
            " or ".join(what for what in ("user", "team") if getattr(columns, what))
            if whose and not any(whose)
            else "tenant"
        )
        raise NotPermitted(
            f"not permitted: the model {spec.id!r} shows rows only to those they belong to, and the"
            f" request names no {said}",
            hint=(
                "send an identity with the request; on the command line --user, --team or --tenant"
            ),
        )


def _extra(spec: ModelSpec, extra: dict[str, Any]) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    columns = {column.name for column in spec.columns}
    listed = (
        (name, value if isinstance(value, (list, tuple)) else (value,))
        for name, value in sorted(extra.items())
    )
    return tuple((name, tuple(values)) for name, values in listed if name in columns)
