"""The form that a client demands of an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from groundhook.core.types.uses import JsonReply


@dataclass(frozen=True, kw_only=True)
class Contract:
    """What the answer of a turn must be for the client that asks. `tools` are the client's own, in
    the format of OpenAI's chat completions: the model may call them beside the assistant's, and a
    call ends the turn. `choice` is "auto", "required" or the name of a tool that must be called.
    `stop` are texts that end the answer. `reply`: the answer is JSON, any object or one of a
    schema."""

    tools: tuple[Mapping[str, Any], ...] = ()
    choice: str = "auto"
    stop: tuple[str, ...] = ()
    reply: JsonReply | Literal["json"] | None = None

    @property
    def names(self) -> frozenset[str]:
        """The names of the client's tools."""
        return frozenset(tool["function"]["name"] for tool in self.tools)

    @property
    def tool_choice(self) -> str | Mapping[str, Any] | None:
        """The choice as OpenAI's chat completions have it; None: the model decides."""
        if self.choice == "auto":
            return None
        if self.choice == "required":
            return self.choice
        return {"type": "function", "function": {"name": self.choice}}


NO_CONTRACT = Contract()
