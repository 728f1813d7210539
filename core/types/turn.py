"""Identity, messages and options of a request, and the values that hooks receive and return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BeforeValidator, ConfigDict, Field, StrictBool, model_validator

from groundhook.core.types.base import FEW, Few, Several, Value, defaults_of
from groundhook.core.types.search import Certainty, SearchType
from groundhook.core.types.tools import ToolOutcome

Role = Literal["system", "developer", "user", "assistant", "tool"]
DataSourceType = Literal["model", "kb_collection", "kb_document", "mcp_resource", "table", "api"]


class Constraints(Value):
    """Limits of an identity's access, set by the program that authenticated it."""

    owner_only: bool = False
    creator_only: bool = False
    editor_only: bool = False
    team_only: bool = False
    extra: dict[str, Any] = {}


class Identity(Value):
    """The user, team and tenant of a request, set by the program that authenticated it. Hooks and
    models cannot change it. Every search filters by it."""

    user_id: str = ""
    team_id: str = ""
    tenant_id: str = ""
    scope: str = ""
    constraints: Constraints = defaults_of(Constraints)


class Client(Value):
    """The program that sent the request."""

    type: str = ""
    user_agent: str = ""
    ip: str = ""


class DataSource(Value):
    """A source that a message refers to. `name` is a model, collection or `collection/document`."""

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
            _to_text(part.get("text")) for part in self.content or () if part.get("type") == "text"
        )

    def wire(self) -> dict[str, Any]:
        """Return the message as the model's API and hooks expect it, without fields that are
        None."""
        return self.model_dump(mode="json", exclude_none=True)


def _to_text(value: Any) -> str:
    return "" if value is None else str(value)


MOST_CONNECTORS = 8


def _check_connectors(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and not 0 < len(value) <= MOST_CONNECTORS:
        raise ValueError(f"must name between one and {MOST_CONNECTORS} connectors")
    if not all(
        isinstance(name, str) for name in (value if isinstance(value, (list, tuple)) else [value])
    ):
        raise ValueError("must be the id of a connector, or a list of ids")
    return value


# One language model, or several: the next one is used if one fails before its first token.
ConnectorNames = Annotated[str | Several[str], BeforeValidator(_check_connectors)]


def connector_ids(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return the connectors in the order of use, each once."""
    return (names,) if isinstance(names, str) else tuple(dict.fromkeys(names))


class TurnOptions(Value):
    """Options of a request. None: the value of the configuration."""

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
    client: Client = defaults_of(Client)
    metadata: dict[str, Any] = {}


class SearchChoice(Value):
    """Create's `search` in its long form: whether to search automatically, and which types."""

    need_search: StrictBool = True
    search_types: Few[tuple[SearchType, ...]] | None = Field(
        default=None, validation_alias=AliasChoices("search_types", "types", "searchTypes")
    )


class CitationOverride(Value):
    """Create's `citation`: values for this turn in place of the configuration."""

    format: str | None = None
    auto_inject_prompt: StrictBool | None = Field(
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


class AnswerMessage(Value):
    """A message that a hook answers with."""

    role: Literal["assistant"] = "assistant"
    content: str


def _check_answer(value: Any) -> Any:
    if value in ("", [], ()):
        raise ValueError("is empty: leave the key away to let the model answer")
    return value


class CreateReturn(Value):
    """The result of a Create hook. `answer` is the answer of the turn, as a text or as messages of
    the assistant: nothing is searched, and no model is asked."""

    # Strict types: the text "no" is true for JavaScript, and pydantic would read it as false.

    answer: Annotated[
        str | Few[tuple[AnswerMessage, ...]] | None, BeforeValidator(_check_answer)
    ] = None
    messages: Few[tuple[Message, ...]] | None = None
    search: StrictBool | SearchChoice | None = None
    citation: CitationOverride | None = None
    temperature: float | None = Field(default=None, ge=0, le=2, strict=True)
    max_tokens: int | None = Field(default=None, ge=0, strict=True)
    max_completion_tokens: int | None = Field(default=None, ge=0, strict=True)
    connector: ConnectorNames | None = None
    prompt_preset: str | None = None
    disable_global_prompts: StrictBool | None = None
    mcp_servers: list[Any] | None = None
    tools: list[Any] | None = None
    confirm: Annotated[list[str], FEW] | None = None
    uses: Annotated[dict[str, str], FEW] | None = None
    metadata: dict[str, Any] | None = None
    locale: str | None = None
    theme: str | None = None
    route: str | None = None
    delegate: Delegation | None = None

    @model_validator(mode="after")
    def _check_ways(self) -> CreateReturn:
        if self.answer is not None and self.delegate is not None:
            raise ValueError("has both answer and delegate: an answer ends the assistant's part")
        return self

    @property
    def answer_text(self) -> str | None:
        """The answer of the hook, messages as paragraphs; None without one."""
        if self.answer is None or isinstance(self.answer, str):
            return self.answer
        return "\n\n".join(message.content for message in self.answer)


class Usage(Value):
    """Tokens of a model call as the endpoint counts them; 0: not reported."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0


class Completion(Value):
    """The answer of the model."""

    content: str = ""
    model: str = ""
    finish_reason: str = ""
    usage: Usage = defaults_of(Usage)
    tool_calls: tuple[dict[str, Any], ...] = ()


class NextPayload(Value):
    """The argument of a Next hook."""

    messages: tuple[dict[str, Any], ...] = ()
    completion: Completion | None = None
    tools: tuple[ToolOutcome, ...] = ()
    error: str | None = None
    certainty: Certainty | None = Field(
        default=None,
        description=(
            "How far the answer can be trusted, as in `stream_end`: that of the best search whose"
            " items it cites; `none`: it cites nothing although sources were asked; null: no"
            " source was asked"
        ),
    )


class NextReturn(Value):
    """The result of a Next hook."""

    data: Any = None
    metadata: dict[str, Any] | None = None
    delegate: Delegation | None = None


# From the type of a part to the capability that it needs, and the word for it.
MEDIA = {
    "image_url": ("vision", "image"),
    "image": ("vision", "image"),
    "input_image": ("vision", "image"),
    "file": ("files", "file"),
    "document": ("files", "file"),
    "input_file": ("files", "file"),
    "input_audio": ("audio", "audio"),
    "audio": ("audio", "audio"),
    "audio_url": ("audio", "audio"),
    "video_url": ("video", "video"),
    "video": ("video", "video"),
}


def is_media(part: Any) -> bool:
    """Return whether a part of a message is an image, a file, audio or video."""
    return isinstance(part, Mapping) and str(part.get("type")) in MEDIA
