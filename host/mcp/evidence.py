"""What a connection has shown of its server, for the messages of errors."""

from __future__ import annotations

from dataclasses import dataclass

from groundhook.host.core.errors import (
    ServerError,
    ServerMalformed,
    ServerTimeout,
    ServerUnreachable,
)
from groundhook.host.core.types.specs import ServerSpec
from groundhook.host.mcp.program import Program

MOST_GARBAGE = 50  # lines that are not MCP before the first that is


@dataclass
class Evidence:
    """`heard`: a message of the protocol has come. `garbage`: how many lines came that are none,
    and `sample` the first of them. `over`: the connection is not used any more."""

    spec: ServerSpec
    program: Program | None = None
    heard: bool = False
    garbage: int = 0
    sample: str = ""
    over: bool = False

    @property
    def name(self) -> str:
        return f"MCP server {self.spec.id!r}"

    def note_garbage(self, line: bytes) -> None:
        self.garbage += 1
        self.sample = self.sample or " ".join(line[:200].decode("utf-8", "replace").split())[:80]

    @property
    def hopeless(self) -> bool:
        """It does not speak the protocol."""
        return not self.heard and self.garbage >= MOST_GARBAGE

    def about(self) -> str:
        """How the program ended and what it said, to be put behind a message; "" when there is
        nothing to say."""
        parts = []
        if self.program is not None:
            code = self.program.exit_code
            if code is not None:
                parts.append(
                    f"it ended with exit code {code}"
                    if code >= 0
                    else f"it was ended by signal {-code}"
                )
            if said := self.program.said():
                parts.append(f"it last said: {said}")
        if self.garbage:
            parts.append(f"it writes to standard output what is not MCP: {self.sample!r}")
        return "; " + "; ".join(parts) if parts else ""

    async def ended(self, asked: str, *, delivered: bool, reason: str = "") -> ServerError:
        """The connection is gone. `asked` is the request that was under way; "" while
        connecting."""
        if self.program is not None:
            await self.program.settle()
        if self.garbage and not self.heard:
            return ServerMalformed(f"{self.name} does not speak MCP{self.about()}", hint=self._hint)
        if self.program is not None:
            before = f"it answered {asked}" if asked else "it was ready"
            return ServerUnreachable(
                f"{self.name} ended before {before}{self.about()}", delivered=delivered
            )
        wanted = f" for {asked}" if asked else ""
        said = reason or "the connection ended"
        return ServerUnreachable(
            f"{self.name} cannot be reached at {self.spec.url}{wanted}: {said}", delivered=delivered
        )

    def not_ready(self) -> ServerError:
        """Starting or connecting took too long."""
        if self.garbage and not self.heard:
            return ServerMalformed(f"{self.name} does not speak MCP{self.about()}", hint=self._hint)
        hint = f"start_timeout in {_file(self.spec.id)} sets how long"
        return ServerTimeout(
            f"{self.name} was not ready after {self.spec.start_timeout:g} s{self.about()}",
            hint=hint,
        )

    def no_answer(self, asked: str) -> ServerError:
        """A call took too long."""
        hint = f"timeout in {_file(self.spec.id)} sets how long"
        return ServerTimeout(
            f"{self.name} did not answer {asked} within {self.spec.timeout:g} s{self.about()}",
            hint=hint,
        )

    @property
    def _hint(self) -> str:
        return (
            "a stdio server writes nothing but MCP messages to standard output; it may log to"
            " standard error"
        )


def _file(id: str) -> str:
    """How people name the file of a server: `agents.shop.files` is the assistant shop's."""
    return f"{id.rpartition('.')[2] if id.startswith('agents.') else id.replace('.', '/')}.mcp.yao"
