"""Reads `agent/agent.yml`: settings of the app, and of its server where it has some."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from groundhook.core.problems import raise_all
from groundhook.core.settings_files import AgentFile
from groundhook.host.config.documents import read_document
from groundhook.host.config.environment import Environment, without_unset
from groundhook.host.config.validate import ValidDocument, check_document

if TYPE_CHECKING:
    from groundhook.core.server_settings import ServerSettings

AGENT_FILE = "agent/agent.yml"


def read_agent_file(root: Path, environment: Environment) -> ValidDocument | None:
    """Return the file, validated; None without the file. Raises ConfigError when it cannot be
    read."""
    path = root / AGENT_FILE
    if not path.is_file():
        return None
    document = read_document(path, AGENT_FILE)
    model: type[AgentFile] = AgentFile
    if isinstance(document.data, Mapping) and "server" in document.data:
        # Imported here, and below, because most commands need no settings of the server.
        from groundhook.core.served_files import ServedAgentFile

        model = ServedAgentFile
    # Where keys decide who signs in, an unknown one is an error and not a warning.
    return check_document(model, document, environment, lenient=model is AgentFile)


def server_settings(file: ValidDocument | None) -> ServerSettings:
    """Return the section `server`, with its defaults. Raises ConfigError."""
    from groundhook.core.server_settings import ServerSettings

    if file is None:
        return ServerSettings()
    raise_all(file.errors)
    return ServerSettings.model_validate(without_unset(file.data.get("server") or {}))
