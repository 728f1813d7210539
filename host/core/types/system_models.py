"""The models that every app has: the users and teams of the host, where its database has tables of
them.

A file `models/__yao/user.mod.yao` takes the place of `__yao.user`, for another table or other
columns. They are read and never made, filled or altered; whoever asks sees his own row and those of
his team.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groundhook.host.core.types.model_spec import ModelSpec

_USER: Mapping[str, Any] = {
    "id": "__yao.user",
    "name": "User",
    "description": "The users of the host",
    "table": {"name": "__yao_user", "comment": "member, person, colleague"},
    "columns": [
        {"name": "id", "type": "ID"},
        {"name": "user_id", "type": "string", "label": "User", "unique": True},
        {"name": "name", "type": "string", "label": "Name", "nullable": True},
        {"name": "email", "type": "string", "label": "Email", "nullable": True},
        {"name": "team_id", "type": "string", "nullable": True},
    ],
    "relations": {
        "team": {"type": "hasOne", "model": "__yao.team", "key": "team_id", "foreign": "team_id"}
    },
    "option": {"permission": {"user": "user_id", "team": "team_id"}},
}
_TEAM: Mapping[str, Any] = {
    "id": "__yao.team",
    "name": "Team",
    "description": "The teams of the host's users",
    "table": {"name": "__yao_team", "comment": "group"},
    "columns": [
        {"name": "id", "type": "ID"},
        {"name": "team_id", "type": "string", "label": "Team", "unique": True},
        {"name": "name", "type": "string", "label": "Name", "nullable": True},
        {"name": "owner_id", "type": "string", "label": "Owner", "nullable": True},
    ],
    "relations": {
        "members": {
            "type": "hasMany",
            "model": "__yao.user",
            "key": "team_id",
            "foreign": "team_id",
        }
    },
    "option": {"permission": {"user": "owner_id", "team": "team_id"}},
}
SYSTEM_MODELS: Mapping[str, ModelSpec] = {
    said["id"]: ModelSpec.model_validate(said) for said in (_USER, _TEAM)
}
