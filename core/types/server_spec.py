"""The content of `*.mcp.yao`: an MCP server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import AliasChoices, Field, ValidationInfo, field_validator

from groundhook.core.types.base import Value
from groundhook.core.types.serialisation import Headers, Seconds, Variables, web_address


class ServerSpec(Value):
    """An MCP server: a program on its standard streams (`stdio`), an address (`http`, streamable
    HTTP; `sse`, the transport before it, with answers of at most 1 MB), or functions of the package
    (`process`). `id` follows from the file's path."""

    id: str = ""
    name: str = Field(default="", description="Accepted, and not read")
    version: str = Field(default="", description="Accepted, and not read")
    capabilities: Mapping[str, Any] = Field(default={}, description="Accepted, and not read")
    label: str = ""
    description: str = ""
    transport: Literal["stdio", "http", "sse", "process"] = "stdio"
    command: str = Field(
        default="",
        validate_default=True,
        description="Program of a stdio server; runs in the app's folder",
    )
    args: tuple[str, ...] = Field(
        default=(), validation_alias=AliasChoices("args", "arguments"), description="Of the program"
    )
    env: Variables = Field(
        default={},
        description="Variables of the program, besides HOME, LOGNAME, PATH, SHELL, TERM, USER",
    )
    url: str = Field(
        default="",
        validate_default=True,
        description="Address of an http or sse server, such as https://host/mcp",
    )
    headers: Headers = Field(default={}, description="Sent with every request to an http server")
    authorization_token: str = Field(
        default="",
        description="Sent to an http server as `Authorization: Bearer …`, if `headers` has none",
    )
    timeout: Seconds = Field(
        default=30.0, gt=0, description="Seconds for one call, or a text such as `1m30s`"
    )
    start_timeout: Seconds = Field(
        default=30.0,
        gt=0,
        description="Seconds to start or connect, which are a part of the first call's time",
    )
    result_kb: int = Field(default=4096, ge=1, description="Largest answer, as JSON")
    tools: tuple[str, ...] | Mapping[str, str] = Field(
        default=(),
        validate_default=True,
        description=(
            "Tools that may be used; empty: all. Of a process server: the function of each,"
            " `scripts.<file>.<function>`, or `models.<id>.Find`, `models.<id>.Get`"
        ),
    )
    resources: Mapping[str, Any] = Field(
        default={}, description="Accepted, and not read: a process server has tools only"
    )
    read_only: tuple[str, ...] = Field(
        default=(),
        description=(
            "Tools that only read, if the server does not declare it; their calls may be repeated"
        ),
    )

    @property
    def sent_headers(self) -> dict[str, str]:
        """The headers of every request."""
        named = {name.lower() for name in self.headers}
        if not self.authorization_token or "authorization" in named:
            return dict(self.headers)
        return {**self.headers, "Authorization": f"Bearer {self.authorization_token}"}

    @field_validator("command")
    @classmethod
    def _program(cls, command: str, info: ValidationInfo) -> str:
        if not command.strip() and info.data.get("transport") == "stdio":
            raise ValueError(
                "a stdio server needs 'command', the program to run (or use transport: 'http')"
            )
        return command

    @field_validator("url")
    @classmethod
    def _address(cls, url: str, info: ValidationInfo) -> str:
        transport = info.data.get("transport")
        if transport in ("http", "sse"):
            if not url:
                raise ValueError(f"an {transport} server needs 'url', such as 'https://host/mcp'")
            web_address(url)
        return url

    @field_validator("tools")
    @classmethod
    def _functions(
        cls, tools: tuple[str, ...] | Mapping[str, str], info: ValidationInfo
    ) -> tuple[str, ...] | Mapping[str, str]:
        process = info.data.get("transport") == "process"
        if process and not (isinstance(tools, Mapping) and tools):
            raise ValueError("a process server needs {tool: 'scripts.<file>.<function>'}")
        if not process and isinstance(tools, Mapping):
            raise ValueError("should be a list of names (functions belong to transport: 'process')")
        return tools
