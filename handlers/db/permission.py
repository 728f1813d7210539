"""The rows that an identity may see in a model with `option.permission`. Pure; `joins` compiles a
`Permit` to SQL.

All of these rules must hold:

- The row's tenant is the identity's; an identity without one sees only rows without one.
- The row is the identity's own (`__yao_created_by`), or shared with its team (`__yao_share:
  "team"`) or with the whole tenant (`"tenant"`), or it has no owner and belongs to its team or,
  without a team, to the tenant.
- If the model declares its own columns of user, team and tenant (`PermissionColumns`): the row's
  tenant is the identity's, and the row's user or team.
- The identity's constraints: `owner_only` own rows, outside other teams; `creator_only` rows it
  created; `editor_only` rows it changed last; `team_only` rows of its team; `extra` {field: value
  or list} where the model has that field.

The identity comes with the request. An empty identity raises NotPermitted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from groundhook.core.errors import NotPermitted
from groundhook.core.types.model_options import PermissionColumns
from groundhook.core.types.model_spec import ModelSpec
from groundhook.core.types.turn import Constraints, Identity

SEND_IDENTITY = "send an identity with the request"


@dataclass(frozen=True)
class Permit:
    """The limits of a search of one model. Hashable, since samples of values are cached per
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
    """Return the limits of a search of this model; None if it is open to everyone. Raises
    NotPermitted if the identity is empty, or lacks an id that the model or its constraints need."""
    if not spec.option.permission:
        return None
    if not (identity.user_id or identity.team_id or identity.tenant_id):
        raise NotPermitted(
            f"not permitted: the model {spec.id!r} returns rows only to their owners, and the"
            " request has no identity",
            hint=SEND_IDENTITY,
        )
    limits = identity.constraints
    if isinstance(spec.option.permission, PermissionColumns):
        _require_columns(spec, spec.option.permission, limits)
        _require_ids(spec, spec.option.permission, identity)
    personal = [
        name for name in ("owner_only", "creator_only", "editor_only") if getattr(limits, name)
    ]
    if personal and not identity.user_id:
        raise NotPermitted(
            f"not permitted: the constraint {personal[0]!r} needs a user id in the identity"
        )
    if limits.team_only and not identity.team_id:
        raise NotPermitted(
            "not permitted: the constraint 'team_only' needs a team id in the identity"
        )
    return Permit(
        identity.tenant_id,
        identity.team_id,
        identity.user_id,
        limits.owner_only,
        limits.creator_only,
        limits.editor_only,
        limits.team_only,
        _list_extra(spec, limits.extra),
    )


def _require_columns(spec: ModelSpec, columns: PermissionColumns, limits: Constraints) -> None:
    """Raise NotPermitted if the model has no column for the identity's constraints."""
    personal = limits.owner_only or limits.creator_only or limits.editor_only
    if (personal and not columns.user) or (limits.team_only and not columns.team):
        what = "users" if personal else "teams"
        raise NotPermitted(
            f"not permitted: the identity's constraints need a column of {what}, which the model"
            f" {spec.id!r} does not have"
        )


def _require_ids(spec: ModelSpec, columns: PermissionColumns, identity: Identity) -> None:
    """Raise NotPermitted if the identity lacks the ids that the declared columns need: the tenant,
    and the user or the team."""
    whose = {"user": identity.user_id, "team": identity.team_id}
    needed = [name for name in whose if getattr(columns, name)]
    missing = ""
    if needed and not any(whose[name] for name in needed):
        missing = " or ".join(needed)
    elif columns.tenant and not identity.tenant_id:
        missing = "tenant"
    if missing:
        raise NotPermitted(
            f"not permitted: the model {spec.id!r} returns rows only to their owners, and the"
            f" request has no {missing}",
            hint=SEND_IDENTITY,
        )


def _list_extra(spec: ModelSpec, extra: dict[str, Any]) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    columns = {column.name for column in spec.columns}
    listed = (
        (name, value if isinstance(value, (list, tuple)) else (value,))
        for name, value in sorted(extra.items())
    )
    return tuple((name, tuple(values)) for name, values in listed if name in columns)
