"""`agent/agent.yml` with the section `server`.

A module of its own, since most commands read none of the server's settings."""

from __future__ import annotations

from groundhook.core.server_settings import ServerSettings
from groundhook.core.settings_files import AgentFile
from groundhook.core.types.base import defaults_of


class ServedAgentFile(AgentFile):
    """The content of `agent/agent.yml` where it has settings of the HTTP server."""

    server: ServerSettings = defaults_of(ServerSettings)
