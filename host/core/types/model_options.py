"""What a database model says beside its columns: `option` in `*.mod.yao`."""

from __future__ import annotations

from pydantic import Field, model_validator

from groundhook.host.core.types.base import Value


class PermissionColumns(Value):
    """The columns of a table that is there already which say whom a row belongs to. Rows of the
    identity's user or team are found, of its tenant alone; nobody else's, and none at all where the
    identity does not say what they speak of."""

    user: str = Field(default="", description="Column with the user's id")
    team: str = Field(default="", description="Column with the team's id")
    tenant: str = Field(default="", description="Column with the tenant's id")

    @property
    def named(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.user, self.team, self.tenant)))

    @model_validator(mode="after")
    def _any(self) -> PermissionColumns:
        if not self.named:
            raise ValueError("needs at least one of 'user', 'team' and 'tenant'")
        return self


class ModelOptions(Value):
    timestamps: bool = Field(default=False, description="Columns created_at and updated_at")
    soft_deletes: bool = Field(
        default=False, description="Column deleted_at; rows that have it are never found"
    )
    permission: bool | PermissionColumns = Field(
        default=False,
        description=(
            "Rows are found by those they belong to, nobody else; columns __yao_* say whose they"
            " are, or those named"
        ),
    )
