"""What hooks ask models and other assistants, and what they are answered."""

from __future__ import annotations

from typing import Any

from pydantic import AliasChoices, Field

from groundhook.host.core.types.base import Value
from groundhook.host.core.types.events import Cited
from groundhook.host.core.types.turn import Message, Usage


class Skipped(Value):
    """What a called assistant is to leave out, in the spelling of some packages: `skip: {search:
    true}`."""

    search: bool | None = None
    history: bool | None = None
    output: bool | None = None


class AgentOptions(Value):
    """How another assistant is called."""

    search: bool | None = Field(
        default=None, description="Whether it searches automatically; none: as it is configured"
    )
    history: bool = Field(
        default=False, description="Put this turn's conversation before the messages"
    )
    forward: bool = Field(
        default=False, description="Show its text and its messages to the client as well"
    )
    connector: str | None = Field(default=None, description="Which model answers")
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=0)
    locale: str | None = None
    metadata: dict[str, Any] = Field(
        default={}, description="What its hooks find in `ctx.metadata`"
    )
    skip: Skipped = Field(
        default=Skipped(),
        description="The same as `search`, `history` and `forward`, the other way round",
    )


class ModelOptions(Value):
    """How a language model is asked."""

    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=0)
    max_completion_tokens: int | None = Field(default=None, ge=0)
    tools: tuple[dict[str, Any], ...] = Field(
        default=(), description="Tools that the model may ask for, as OpenAI's API takes them"
    )


class AgentAsk(Value):
    """One call of another assistant."""

    agent: str = Field(
        validation_alias=AliasChoices("agent", "agent_id", "assistant", "assistant_id")
    )
    messages: tuple[Message, ...]
    options: AgentOptions = AgentOptions()


class ModelAsk(Value):
    """One call of a language model."""

    connector: str
    messages: tuple[Message, ...]
    options: ModelOptions = ModelOptions()


class AgentResult(Value):
    """What another assistant answered. `error` says why it could not; what had arrived is in
    `content`."""

    agent_id: str
    content: str = ""
    citations: tuple[Cited, ...] = ()
    data: Any = Field(default=None, description="What its Next hook returned as `data`")
    metadata: dict[str, Any] = Field(
        default={}, description="What its hooks returned as `metadata`"
    )
    finish_reason: str = Field(default="", description="`stopped`: `onChunk` wanted no more")
    usage: Usage = Usage()
    error: str | None = None


class ModelResult(Value):
    """What a language model answered. `error` says why it could not; what had arrived is in
    `content`."""

    connector: str
    content: str = ""
    model: str = ""
    finish_reason: str = Field(default="", description="`stopped`: `onChunk` wanted no more")
    tool_calls: tuple[dict[str, Any], ...] = Field(default=(), description="{id, name, arguments}")
    usage: Usage = Usage()
    error: str | None = None


Ask = AgentAsk | ModelAsk
Answered = AgentResult | ModelResult
