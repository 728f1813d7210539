"""The models of every app: users and teams, if its database has tables of them.

A file `models/__yao/user.mod.yao` replaces `__yao.user`, for another table or other columns. The
tables are read, never created, filled or altered; an identity finds its own row and those of its
team.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groundhook.core.types.model_spec import ModelSpec

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
    model["id"]: ModelSpec.model_validate(model) for model in (_USER, _TEAM)
}
