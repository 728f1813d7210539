"""The section `option` of a database model in `*.mod.yao`."""

from __future__ import annotations

from pydantic import Field, model_validator

from groundhook.core.types.base import Value


class PermissionColumns(Value):
    """The owner columns of an existing table. A search finds the rows of the identity's user or
    team, and of its tenant alone; without the identity that a column needs it finds none."""

    user: str = Field(default="", description="Column with the user's id")
    team: str = Field(default="", description="Column with the team's id")
    tenant: str = Field(default="", description="Column with the tenant's id")

    @property
    def named(self) -> tuple[str, ...]:
        """The names of the columns that are set."""
        return tuple(filter(None, (self.user, self.team, self.tenant)))

    @model_validator(mode="after")
    def _any(self) -> PermissionColumns:
        if not self.named:
            raise ValueError("needs at least one of 'user', 'team' and 'tenant'")
        return self


class DatabaseModelOptions(Value):
    """Options of a database model that add columns or restrict its rows."""

    timestamps: bool = Field(default=False, description="Columns created_at and updated_at")
    soft_deletes: bool = Field(
        default=False, description="Column deleted_at; rows with a value in it are never found"
    )
    permission: bool | PermissionColumns = Field(
        default=False,
        description=(
            "Only its owners find a row; columns __yao_*, or those named here, hold the owners"
        ),
    )
    trackings: bool = Field(default=False, description="Accepted, and not read")
    logging: bool = Field(default=False, description="Accepted, and not read")
    readonly: bool = Field(default=False, description="Accepted, and not read")
