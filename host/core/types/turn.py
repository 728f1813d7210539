"""Who asks and what is said: identity, messages, data parts, and what hooks receive and return."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BeforeValidator, ConfigDict, Field

from groundhook.host.core.types.base import FEW, Few, Value
from groundhook.host.core.types.search import SearchType

Role = Literal["system", "developer", "user", "assistant", "tool"]
DataSourceType = Literal["model", "kb_collection", "kb_document", "mcp_resource", "table", "api"]


class Constraints(Value):
    """Limits on what an identity may see, as decided by whoever authenticated it."""

    owner_only: bool = False
    creator_only: bool = False
    editor_only: bool = False
    team_only: bool = False
    extra: dict[str, Any] = {}


class Identity(Value):
    """Who asks. It comes with the request and from nowhere else: no hook and no model can name
    another."""

    user_id: str = ""
    team_id: str = ""
    tenant_id: str = ""
    scope: str = ""
    constraints: Constraints = Constraints()


class Client(Value):
    """The program that sent the request."""

    type: str = ""
    user_agent: str = ""
    ip: str = ""


class DataSource(Value):
    """A source of the user's own that a message refers to. `name` is a model, collection or
    `collection/document`."""

    type: DataSourceType
    name: str = Field(validation_alias=AliasChoices("name", "id"))


class Message(Value):
    """One message of the conversation. `content` is text or a list of parts
    ({type: "text", text}, {type: "data", data: {sources: […]}}, {type: "image_url", …})."""

    model_config = ConfigDict(frozen=True, extra="allow")

    role: Role
    content: str | Few[list[dict[str, Any]]] | None = ""
    name: str | None = None
    tool_calls: Few[list[dict[str, Any]]] | None = None
    tool_call_id: str | None = None

    @property
    def text(self) -> str:
        """The text of the message, parts joined by a line break."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(
            _text(part.get("text")) for part in self.content or () if part.get("type") == "text"
        )

    def wire(self) -> dict[str, Any]:
        """As the model's API and hooks expect it: nothing that was not said."""
        return self.model_dump(mode="json", exclude_none=True)


def _text(value: Any) -> str:
    return "" if value is None else str(value)


MOST_CONNECTORS = 8


def _connectors(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and not 0 < len(value) <= MOST_CONNECTORS:
        raise ValueError(f"must name between one and {MOST_CONNECTORS} connectors")
    if not all(
        isinstance(name, str) for name in (value if isinstance(value, (list, tuple)) else [value])
    ):
        raise ValueError("must be the id of a connector, or a list of ids")
    return value


# One language model, or several: the next one is asked when one cannot be reached before its first
# word.
ConnectorNames = Annotated[str | tuple[str, ...], BeforeValidator(_connectors)]


def connector_ids(names: str | tuple[str, ...]) -> tuple[str, ...]:
    """The connectors in the order in which they are tried, each once."""
    return (names,) if isinstance(names, str) else tuple(dict.fromkeys(names))


class TurnOptions(Value):
    """What a request may say beside its messages. None: follow the layers below."""

    search: bool | None = None
    connector: ConnectorNames | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=0)
    rerank: dict[str, Any] | None = None
    locale: str = ""
    theme: str = ""
    route: str = ""
    referer: str = ""
    accept: str = ""
    chat_id: str = ""
    client: Client = Client()
    metadata: dict[str, Any] = {}


class SearchChoice(Value):
    """Create's `search` in its long form: whether to search automatically, and which types."""

    need_search: bool = True
    search_types: Few[tuple[SearchType, ...]] | None = Field(
        default=None, validation_alias=AliasChoices("search_types", "types", "searchTypes")
    )


class CitationOverride(Value):
    """Create's `citation`: what it says replaces the configuration for this turn."""

    format: str | None = None
    auto_inject_prompt: bool | None = Field(
        default=None, validation_alias=AliasChoices("auto_inject_prompt", "autoInjectPrompt")
    )
    custom_prompt: str | None = Field(
        default=None, validation_alias=AliasChoices("custom_prompt", "customPrompt")
    )


class Delegation(Value):
    """Hands the turn to another assistant."""

    agent_id: str
    messages: Few[tuple[Message, ...]] = ()
    options: dict[str, Any] = {}


class CreateReturn(Value):
    """What a Create hook may return."""

    messages: Few[tuple[Message, ...]] | None = None
    search: bool | SearchChoice | None = None
    citation: CitationOverride | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=0)
    max_completion_tokens: int | None = Field(default=None, ge=0)
    connector: ConnectorNames | None = None
    prompt_preset: str | None = None
    disable_global_prompts: bool | None = None
    mcp_servers: list[Any] | None = None
    uses: Annotated[dict[str, str], FEW] | None = None
    metadata: dict[str, Any] | None = None
    locale: str | None = None
    theme: str | None = None
    route: str | None = None
    delegate: Delegation | None = None


class Usage(Value):
    """Tokens as the model counted them; 0 where it did not say."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0


class Completion(Value):
    """What the model answered."""

    content: str = ""
    model: str = ""
    finish_reason: str = ""
    usage: Usage = Usage()
    tool_calls: tuple[dict[str, Any], ...] = ()


class ToolOutcome(Value):
    """A tool call of the turn and what came of it."""

    toolcall_id: str
    server: str = ""
    tool: str
    arguments: dict[str, Any] = {}
    result: Any = None
    error: str | None = None


class NextPayload(Value):
    """What a Next hook receives."""

    messages: tuple[dict[str, Any], ...] = ()
    completion: Completion | None = None
    tools: tuple[ToolOutcome, ...] = ()
    error: str | None = None


class NextReturn(Value):
    """What a Next hook may return."""

    data: Any = None
    metadata: dict[str, Any] | None = None
    delegate: Delegation | None = None
