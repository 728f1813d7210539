"""Calls of models and other assistants by hooks: requests, options and results."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AliasChoices, Field

from groundhook.core.types.base import Value, defaults_of
from groundhook.core.types.events import Cited
from groundhook.core.types.sampling import Sampling
from groundhook.core.types.turn import Message, Usage


class Skipped(Value):
    """Parts that a called assistant skips, in the spelling of some packages: `skip: {search:
    true}`."""

    search: bool | None = None
    history: bool | None = None
    output: bool | None = None
    trace: bool | None = Field(
        default=None, description="Leave its steps out of the trace; its `agent` node stays"
    )


class AgentOptions(Value):
    """Options of a call of another assistant."""

    search: bool | None = Field(
        default=None, description="Whether it searches automatically; none: as configured"
    )
    history: bool = Field(
        default=False, description="Put this turn's conversation before the messages"
    )
    forward: bool = Field(
        default=False, description="Show its text and its messages to the client as well"
    )
    connector: str | None = Field(default=None, description="Connector of the model")
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=0)
    locale: str | None = None
    metadata: dict[str, Any] = Field(default={}, description="`ctx.metadata` of its hooks")
    mode: str | None = Field(
        default=None, description="Accepted, and nothing acts on it: a turn has no modes"
    )
    skip: Skipped = Field(
        default=Skipped(),
        description="The opposites of `search`, `history` and `forward`; and `trace`",
    )


class ModelOptions(Sampling):
    """Options of a call of a language model."""

    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=0)
    max_completion_tokens: int | None = Field(default=None, ge=0)
    tools: tuple[dict[str, Any], ...] = Field(
        default=(), description="Tools that the model may call, in the format of OpenAI's API"
    )
    tool_choice: Literal["auto", "none", "required"] | dict[str, Any] | None = Field(
        default=None,
        description="Whether one of `tools` is called, and which, as OpenAI's API takes it",
    )
    user: str = Field(default="", description="Sent to the endpoint as the end user's id")


class AgentAsk(Value):
    """One call of another assistant."""

    agent: str = Field(
        validation_alias=AliasChoices("agent", "agent_id", "assistant", "assistant_id")
    )
    messages: tuple[Message, ...]
    options: AgentOptions = defaults_of(AgentOptions)


class ModelAsk(Value):
    """One call of a language model."""

    connector: str
    messages: tuple[Message, ...]
    options: ModelOptions = defaults_of(ModelOptions)


class AgentResult(Value):
    """The answer of another assistant. `error` is the reason of a failure; `content` then has the
    text that had arrived."""

    agent_id: str
    content: str = ""
    citations: tuple[Cited, ...] = ()
    data: Any = Field(default=None, description="`data` that its Next hook returned")
    metadata: dict[str, Any] = Field(default={}, description="`metadata` that its hooks returned")
    finish_reason: str = Field(default="", description="`stopped`: `onChunk` returned false")
    usage: Usage = defaults_of(Usage)
    error: str | None = None


class ModelResult(Value):
    """The answer of a language model. `error` is the reason of a failure; `content` then has the
    text that had arrived."""

    connector: str
    content: str = ""
    model: str = ""
    finish_reason: str = Field(default="", description="`stopped`: `onChunk` returned false")
    tool_calls: tuple[dict[str, Any], ...] = Field(default=(), description="{id, name, arguments}")
    usage: Usage = defaults_of(Usage)
    error: str | None = None


Ask = AgentAsk | ModelAsk
Answered = AgentResult | ModelResult
