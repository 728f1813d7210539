"""Observations of a server during one connection, and the error messages made of them."""

from __future__ import annotations

from dataclasses import dataclass

from groundhook.core.errors import (
    ServerError,
    ServerMalformed,
    ServerTimeout,
    ServerUnreachable,
)
from groundhook.core.types.server_spec import ServerSpec
from groundhook.host.tools.mcp.program import ServerProgram

MAX_INVALID_LINES = 50  # without one valid message; the connection is given up then


@dataclass
class ConnectionEvidence:
    """State of one connection. `connected`: a valid message arrived. `invalid_lines`: the number of
    lines that are not MCP, of which `sample` is the first. `over`: the connection has ended."""

    spec: ServerSpec
    program: ServerProgram | None = None
    connected: bool = False
    invalid_lines: int = 0
    sample: str = ""
    over: bool = False

    @property
    def name(self) -> str:
        return f"MCP server {self.spec.id!r}"

    def note_invalid_line(self, line: bytes) -> None:
        """Count a line that is not MCP."""
        self.invalid_lines += 1
        self.sample = self.sample or " ".join(line[:200].decode("utf-8", "replace").split())[:80]

    @property
    def is_not_mcp(self) -> bool:
        """Whether the program evidently does not use the protocol."""
        return not self.connected and self.invalid_lines >= MAX_INVALID_LINES

    def details(self) -> str:
        """Return how the program ended and its last output, to append to a message; "" if nothing
        is known."""
        parts = []
        if self.program is not None:
            code = self.program.exit_code
            if code is not None:
                parts.append(
                    f"it ended with exit code {code}"
                    if code >= 0
                    else f"it was ended by signal {-code}"
                )
            if last_output := self.program.last_output():
                parts.append(f"its last output: {last_output}")
        if self.invalid_lines:
            parts.append(f"it writes lines that are not MCP to standard output: {self.sample!r}")
        return "; " + "; ".join(parts) if parts else ""

    async def connection_lost(
        self, request: str, *, delivered: bool, reason: str = ""
    ) -> ServerError:
        """Return the error for a lost connection. `request` is the request under way, "" while
        connecting; `delivered` is whether the server may have received it."""
        if self.program is not None:
            await self.program.settle()
        if self.invalid_lines and not self.connected:
            return ServerMalformed(
                f"{self.name} does not speak MCP{self.details()}", hint=self._hint
            )
        if self.program is not None:
            before = f"it answered {request}" if request else "it was ready"
            return ServerUnreachable(
                f"{self.name} ended before {before}{self.details()}", delivered=delivered
            )
        wanted = f" for {request}" if request else ""
        cause = reason or "the connection ended"
        return ServerUnreachable(
            f"{self.name} cannot be reached at {self.spec.url}{wanted}: {cause}",
            delivered=delivered,
        )

    def not_ready(self) -> ServerError:
        """Return the error for a start or connection that took too long."""
        if self.invalid_lines and not self.connected:
            return ServerMalformed(
                f"{self.name} does not speak MCP{self.details()}", hint=self._hint
            )
        hint = f"raise start_timeout in {_file_name(self.spec.id)}"
        return ServerTimeout(
            f"{self.name} was not ready after {self.spec.start_timeout:g} s{self.details()}",
            hint=hint,
        )

    def no_answer(self, request: str) -> ServerError:
        """Return the error for a call that took too long."""
        hint = f"raise timeout in {_file_name(self.spec.id)}"
        return ServerTimeout(
            f"{self.name} did not answer {request} within {self.spec.timeout:g} s{self.details()}",
            hint=hint,
        )

    @property
    def _hint(self) -> str:
        return (
            "a stdio server must write MCP messages only to standard output, and its log to"
            " standard error"
        )


def _file_name(id: str) -> str:
    """Return the name of a server's file: `files.mcp.yao` for `agents.shop.files`."""
    return f"{id.rpartition('.')[2] if id.startswith('agents.') else id.replace('.', '/')}.mcp.yao"
