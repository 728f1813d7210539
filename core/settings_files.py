"""The two files with more keys than a layer of settings: `agent/agent.yml` and `package.yao`."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from groundhook.core.app_settings import AppKeys
from groundhook.core.settings import HookSettings, Settings
from groundhook.core.types.base import Value, defaults_of


class AppHookSettings(HookSettings):
    """The section `hooks` of `agent/agent.yml`."""

    workers: int | None = Field(
        default=None, ge=0, description="Processes that run hooks: AppSettings.hook_workers"
    )


class AgentFile(Settings, AppKeys):
    """The content of `agent/agent.yml`: settings of the app, and defaults for every assistant."""

    hooks: AppHookSettings = defaults_of(AppHookSettings)
    server: Any = Field(default=None, description="The HTTP server: `ServedAgentFile` has its keys")


class ConnectorChoice(Value):
    """The language models that a client may offer to its users. The host refuses none: a request
    may name any connector."""

    optional: bool = Field(default=False, description="Whether users may choose")
    connectors: tuple[str, ...] = Field(default=(), description="Ids to choose from; none: any")
    filters: tuple[str, ...] = Field(
        default=(), description="Capabilities that a connector must have, such as `vision`"
    )


class PackageFile(Settings):
    """The content of `package.yao`: settings, the assistant's name and prompts, and texts for
    clients (`Package.info`)."""

    name: str = ""
    description: str = ""
    prompts: Any = Field(
        default=None,
        description="[{role, content}], or {preset: [{role, content}]}; else prompts.yml",
    )
    connector_options: ConnectorChoice = defaults_of(ConnectorChoice)
    capabilities: Any = Field(default=None, description="What it can do, for people and clients")
    type: str = ""
    avatar: str = ""
    placeholder: Any = None
    tags: tuple[str, ...] = ()
    locales: dict[str, Any] = {}
    author: str = ""
    version: str = ""
    license: str = ""
    homepage: str = ""
    sort: int = 0
    modes: tuple[str, ...] = ()
    default_mode: str = ""
    automated: bool = False
    built_in: bool = False
    mentionable: bool = True
    public: bool = False
    readonly: bool = False
    share: str = ""
