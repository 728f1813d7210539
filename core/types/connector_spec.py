"""The content of `*.conn.yao`: a language model."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from groundhook.core.types.base import Value, defaults_of
from groundhook.core.types.sampling import Sampling
from groundhook.core.types.serialisation import Headers, WebAddress

# Types of connectors that are no language models: one quotes sources, one has fixed answers.
EXTRACTIVE, SCRIPTED = "extractive", "scripted"


def _make_capabilities(value: Any) -> Any:
    return dict.fromkeys(value, True) if isinstance(value, (list, tuple)) else value


Capabilities = Annotated[
    dict[str, Any],
    BeforeValidator(_make_capabilities),
    Field(
        description=(
            "What the model can do, {vision, tool_calls, files, audio, video, …} or a list;"
            " `false`: such parts of messages are left out, no tools are offered"
        )
    ),
]


class ConnectorOptions(Sampling):
    """Options of a connector."""

    model: str = ""
    host: WebAddress = Field(default="", description="Base URL of an OpenAI-compatible endpoint")
    key: str = ""
    first_token_timeout: float = Field(
        default=60.0, gt=0, description="Seconds from the request to the first token of an answer"
    )
    timeout: float = Field(
        default=30.0, gt=0, description="Seconds from one token to the next, and to connect"
    )
    retries: int = Field(default=2, ge=0, description="Retries before the first token")
    headers: Headers = {}
    sources: Literal["user", "system"] = Field(
        default="user",
        description="Place of the sources: before the question, or in the system message",
    )
    system: Literal["first", "none"] = Field(
        default="first",
        description="`none`: the first user message begins with its text",
    )
    begins_thinking: bool = Field(
        default=False,
        description="The answer begins with the model's thinking, up to `</think>`",
    )
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(
        default=None, ge=0, description="0: the model's own limit, as if not set"
    )
    max_completion_tokens: int | None = Field(
        default=None, ge=0, description="As `max_tokens`, for models that use this name"
    )
    body: dict[str, Any] = Field(
        default={}, description="More keys for each request, for options of one endpoint"
    )
    context_tokens: int = Field(
        default=0,
        ge=0,
        description="Window of the model, with its answer; longer prompts are cut; 0: as reported",
    )
    capabilities: Capabilities = {}
    script: tuple[Any, ...] = Field(
        default=(), description="Answers of a scripted connector, in order"
    )
    plugin: dict[str, Any] = Field(default={}, description="Options of a plug-in's connector")


class Price(Value):
    """What a model costs for a million tokens, in any one currency."""

    prompt: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    completion: float = Field(default=0.0, ge=0, allow_inf_nan=False)

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return what these tokens cost."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1_000_000


class ConnectorSpec(Value):
    """A language model. `id` follows from the file's path."""

    id: str = ""
    label: str = ""
    type: str = Field(
        min_length=1,
        description="`openai`, `anthropic`, `extractive`, `scripted`, or the type of a plug-in",
    )
    options: ConnectorOptions = defaults_of(ConnectorOptions)
    capabilities: Capabilities = {}
    price: Price | None = Field(
        default=None,
        description="Price of a million tokens, {prompt, completion}: `groundhook eval` adds it up",
    )

    def lacks(self, capability: str) -> bool:
        """Return whether the file says that the model cannot do something, such as
        `tool_calls`."""
        return not self.can(capability, True)

    def can(self, capability: str, default: bool) -> bool:
        """Return whether the model can do something; `default` where the file does not say it."""
        known = {**self.capabilities, **self.options.capabilities}
        return known.get(capability, default) not in (False, None, "")
