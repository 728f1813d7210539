"""Settings of an assistant, with every default.

A layer is a partial document with these keys. It is validated by itself against these models and
folded as plain data (`host.config.resolve`); the result is a `Settings` without gaps. The settings
of a whole app are in `core.app_settings`, those of each source in `core.source_settings`, those of
the server in `core.server_settings`, those of a type of toolkit in its own folder below
`toolkits/`.

If a field has several names, the first one is its own: messages and `host.config.normalise` rely on
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field

from groundhook.core.source_settings import (
    DBSettings,
    KBSettings,
    Sources,
    WebSettings,
)
from groundhook.core.types.base import Value, defaults_of
from groundhook.core.types.markers import usable_format
from groundhook.core.types.sampling import Sampling
from groundhook.core.types.search import Origin, RerankOptions, RerankProvider, SearchType
from groundhook.core.types.serialisation import DeclaredHost, VariableName, WebAddress
from groundhook.core.types.servers import parse_listed
from groundhook.core.types.toolkit_listing import parse_listed_toolkits
from groundhook.core.types.turn import ConnectorNames


def _unread(hint: str) -> dict[str, Any]:
    """Mark a key of published packages that Groundhook does not use; `groundhook check` reports it
    with the hint."""
    return {"unread": hint}


DISABLED = "disabled"
AUTO = "auto"  # of `uses.query`: the built-in reader, then the assistant's language model
BY_CONNECTOR = "connector:"  # a step that a language model does: `connector:<id>`


class KeywordSettings(Value):
    """Extraction of keywords for web search."""

    max_keywords: int = Field(default=10, ge=1)
    language: str = Field(
        default="auto",
        description="Language of questions, such as `en`, `pt-BR` or `thai`, or `auto`",
    )
    timeout_ms: int = Field(default=3000, ge=1, description="Deadline of what `uses.keyword` names")


class QuerySettings(Value):
    """Reading of questions to databases."""

    language: str | tuple[str, ...] = Field(
        default="auto",
        description="Language of questions: `en`, `de`, `he`, a list of those in use, or `auto`",
    )
    strict: bool = Field(
        default=False,
        description="A question that is not understood whole (`certainty: sure`) is an error",
    )
    timeout_ms: int = Field(
        default=6000,
        ge=1,
        description="Deadline of what `uses.query` names, in all tries",
    )


class RewriteSettings(Value):
    """The rewriting of questions: of follow-ups as self-contained ones, and of others as search
    words."""

    first: Literal["auto", "always", "never"] = Field(
        default="auto",
        description=(
            "Whether what `uses.rewrite` names also writes search words for a question that needs"
            " nothing of the conversation; `auto`: if its search is not `sure`"
        ),
    )
    timeout_ms: int = Field(
        default=1500,
        ge=1,
        description="Deadline of what `uses.rewrite` names",
    )


class VerifySettings(Value):
    """The verification of an answer's sentences by what `uses.verify` names."""

    when: Literal["after", "before"] = Field(
        default="after",
        description=(
            "`after`: the answer streams, and the verdicts come with its end; `before`: it is shown"
            " once it is verified"
        ),
    )
    max_sentences: int = Field(
        default=20,
        ge=1,
        le=100,
        description="Sentences of an answer that are verified, and most requests for them",
    )
    timeout_ms: int = Field(default=8000, ge=1, description="Deadline of all requests together")


class RerankSettings(RerankOptions):
    """The reranking of results. `top_n` and `top_k` are one key. Keys that `RerankOptions` does not
    have can be set in files alone: a hook or a request must not choose addresses and API keys."""

    top_k: int = Field(
        default=10,
        ge=1,
        validation_alias=AliasChoices("top_k", "topK", "top_n", "topN"),
        description="How many sources the prompt has at most, with or without a reranker; tables"
        " count once, and attached files always stay",
    )
    timeout_ms: int = Field(
        default=8000, ge=1, description="Deadline of one reranking, with all tries"
    )
    provider: Literal["auto", RerankProvider] = Field(
        default="auto",
        description=(
            "Of `type: model`; `endpoint`: an API like /rerank at `host`; `tei`: Hugging Face TEI"
        ),
    )
    host: WebAddress = Field(
        default="", description="Address of an endpoint, or another base URL for a provider"
    )
    path: str = Field(
        default="", description="Of `onnx`: the folder with the cross-encoder, below the app's"
    )
    api_key_env: VariableName = Field(
        default="", description="Environment variable with the key (default: the provider's own)"
    )
    max_items: int = Field(
        default=100,
        ge=1,
        le=1000,
        description="Maximum items that are judged; the others stay behind them",
    )
    max_chars: int = Field(
        default=0,
        ge=0,
        description="Longest text of an item that is sent; 0: the reranker's limit",
    )


class CitationSettings(Value):
    """Markers of citations and the instructions to use them."""

    format: Annotated[str, AfterValidator(usable_format)] = Field(
        default="#ref:{id}",
        description="The marker as the model writes it, with {id} or {index}; or `xml`",
    )
    auto_inject_prompt: bool = Field(
        default=True, validation_alias=AliasChoices("auto_inject_prompt", "autoInjectPrompt")
    )
    custom_prompt: str = Field(
        default="", validation_alias=AliasChoices("custom_prompt", "customPrompt")
    )


class WeightSettings(Value):
    """Weights of results by their origin: user data, hook, automatic search."""

    user: float = Field(default=1.0, ge=0, le=100)
    hook: float = Field(default=0.8, ge=0, le=100)
    auto: float = Field(default=0.6, ge=0, le=100)

    def of(self, origin: Origin) -> float:
        """Return the weight of what has this origin."""
        return {"user": self.user, "hook": self.hook, "auto": self.auto}[origin]


class SearchOptions(Value):
    """The conditions under which automatic search runs."""

    skip_threshold: int = Field(
        default=5,
        ge=1,
        description="Results of the user's own data from which on automatic search is skipped",
    )


class SearchSettings(Sources):
    """All settings of searches."""

    web: WebSettings = defaults_of(WebSettings)
    kb: KBSettings = defaults_of(KBSettings)
    db: DBSettings = defaults_of(DBSettings)
    keyword: KeywordSettings = defaults_of(KeywordSettings)
    query: QuerySettings = Field(
        default=QuerySettings(), validation_alias=AliasChoices("query", "querydsl", "query_dsl")
    )
    rewrite: RewriteSettings = defaults_of(RewriteSettings)
    verify: VerifySettings = defaults_of(VerifySettings)
    rerank: RerankSettings = defaults_of(RerankSettings)
    citation: CitationSettings = defaults_of(CitationSettings)
    weights: WeightSettings = defaults_of(WeightSettings)
    options: SearchOptions = defaults_of(SearchOptions)


class UsesSettings(Value):
    """The part that does each step: `builtin`, `connector:<id>` (a language model), an assistant's
    id, or `mcp:<server>[.<tool>]`.
    `disabled` switches searches off: all of them (`search`) or those of one type."""

    rewrite: str = Field(
        default="builtin",
        description=(
            "Rewrites follow-ups as self-contained questions, by rules; any other part also writes"
            " search words for a question whose search is not sure (`search.rewrite.first`);"
            " `disabled`: nothing is rewritten"
        ),
    )
    keyword: str = Field(default="builtin", description="Chooses the words of a web search")
    query: str = Field(
        default=AUTO,
        validation_alias=AliasChoices("query", "querydsl", "query_dsl"),
        description=(
            "Reads questions to databases; `auto`: the built-in reader, and the assistant's own"
            " language model for what it does not read surely"
        ),
    )
    rerank: str = Field(
        default="builtin", description="Orders what was found; also the name of a plug-in's part"
    )
    web: str = Field(
        default="builtin", description="Searches the web; no language model can do this alone"
    )
    kb: Literal["builtin", "disabled"] = "builtin"
    db: Literal["builtin", "disabled"] = "builtin"
    search: str = Field(
        default="",
        description="`disabled`: no search at all",
        json_schema_extra=_unread("`disabled` is its only value; search says what is searched"),
    )
    default: str = Field(
        default="",
        description="The assistant of requests that name none; in agent/agent.yml",
    )
    title: str = Field(
        default="builtin",
        description="Of kept conversations; `builtin`: the first words of the question",
    )
    verify: str = Field(
        default="",
        description=(
            "Says whether the sources of an answer support the sentences that cite them"
            " (`search.verify`); empty: nothing does"
        ),
    )
    vision: str = Field(
        default="",
        description=(
            "Describes pictures in messages that the assistant's language model does not see;"
            " empty: nothing does"
        ),
    )
    audio: str = Field(default="", json_schema_extra=_unread("no part of a message is sound"))
    fetch: str = Field(
        default="builtin",
        description="Reads pages of the web; no language model can do this alone",
    )

    def disables(self, type: SearchType) -> str:
        """Return the key that switches searches of this type off, or ''."""
        return next((key for key in ("search", type) if getattr(self, key) == DISABLED), "")


class HookLimits(Value):
    """Limits of hooks; exceeding one raises HookLimit."""

    cpu_ms: int = Field(
        default=2000, ge=1, description="CPU time inside V8; the clock stops during host calls"
    )
    wall_ms: int = Field(
        default=30000, ge=1, description="Longest time of one hook, with its host calls"
    )
    call_ms: int = Field(default=15000, ge=1, description="Longest time of one host call")
    heap_mb: int = Field(default=128, ge=8, description="Largest V8 heap of one isolate")
    memory_mb: int = Field(
        default=512,
        ge=64,
        description="Largest growth of a worker's resident memory during one run",
    )
    calls: int = Field(default=10000, ge=0, description="Maximum host calls of one turn")
    argument_kb: int = Field(
        default=1024, ge=1, description="Largest arguments of one host call, as JSON"
    )
    result_kb: int = Field(
        default=4096, ge=1, description="Largest result of a host call or of the hook, as JSON"
    )


class HookSettings(Value):
    """Hooks: their limits, and whether a failed one ends the turn."""

    on_error: Literal["fail", "continue"] = "fail"
    limits: HookLimits = defaults_of(HookLimits)
    create: str = Field(
        default="",
        description="File with Create, such as `src/create.ts` or `a.ts:Create`; empty: index.ts",
    )
    next: str = Field(
        default="", description="File with Next, such as `a.ts:After`; empty: index.ts"
    )


class ModelSettings(Sampling):
    """Options of the model; 0 or absent: the model's own default."""

    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=0)
    max_completion_tokens: int | None = Field(default=None, ge=0)
    tool_rounds: int = Field(
        default=5, ge=0, description="Maximum rounds of tool calls in one turn"
    )
    confirm: tuple[str, ...] = Field(
        default=(),
        description="Tools whose calls run only when the user approves; `*`: all that do more than"
        " read",
    )
    tool_result_kb: int = Field(
        default=64,
        ge=1,
        description="Longest result of a tool in the prompt; the rest is cut",
    )


class ListSection(Value):
    """A section with one list, which may be written as the list alone: `db: ["order"]` is `db:
    {models: ["order"]}`."""


class AvailableCollections(ListSection):
    """Collections of an assistant."""

    collections: tuple[str, ...] = Field(
        default=(), description="Collections that the assistant may use"
    )


class AvailableModels(ListSection):
    """Database models of an assistant."""

    models: tuple[str, ...] = Field(default=(), description="Models that the assistant may use")


def _check_server_entry(entry: Any) -> Any:
    if not isinstance(entry, (str, Mapping)):
        raise ValueError(
            "should be the id of a server, {id: [tools]}, or {server_id, tools, resources}"
        )
    parse_listed(entry)
    return entry


class ToolLoop(Value):
    """The rounds in which the model gets the results of tools, in the spelling of other
    packages."""

    tool_loop: bool = Field(
        default=True,
        description="`false`: the tools run once, and Next sees their results, not the model",
    )
    max_turn: int | None = Field(
        default=None,
        ge=0,
        validation_alias=AliasChoices("max_turn", "max_turns"),
        description="Maximum rounds of tool calls in one turn, in place of `options.tool_rounds`",
    )


class AvailableServers(ListSection):
    """MCP servers of an assistant."""

    servers: tuple[Annotated[str | dict[str, Any], BeforeValidator(_check_server_entry)], ...] = (
        Field(
            default=(),
            description='MCP servers: "id", {id: [tools]}, or {server_id, tools, resources}',
        )
    )
    options: ToolLoop = defaults_of(ToolLoop)


_Saying = str | Mapping[str, str]


class MessageSettings(Value):
    """Sentences of the host for people, in place of its own, which are in the language of the
    conversation. Each is a text, or texts by language: `{en: …, de: …}`."""

    nothing_found: _Saying = Field(default="", description="The search found nothing that answers")
    nearest: _Saying = Field(
        default="", description="The same, above the nearest passages that an answer quotes"
    )
    not_sure: _Saying = Field(default="", description="Above passages that may not answer")
    answers: _Saying = Field(default="", description="Above passages that answer")
    others: _Saying = Field(default="", description="Above passages that follow records")
    failed: _Saying = Field(default="", description="A part of the search failed")
    unavailable: _Saying = Field(default="", description="The search failed and found nothing")
    no_answer: _Saying = Field(default="", description="The language model sent no text")
    hello: _Saying = Field(
        default="", description="The answer to a greeting, where no language model answers"
    )
    thanks: _Saying = Field(default="", description="The answer to thanks, likewise")


class HistorySettings(Value):
    """The part of a kept conversation that a turn gets: the newest messages within both limits."""

    messages: int = Field(default=40, ge=0, description="Maximum messages before the question")
    tokens: int = Field(
        default=16_000, ge=0, description="Maximum tokens of these messages, estimated"
    )
    summarise: bool = Field(
        default=False,
        description="Whether the turn's model summarises what is omitted, in a call of its own",
    )
    summary_timeout_ms: int = Field(
        default=10_000, ge=1, description="Deadline of the summary, which is omitted after it"
    )


def _check_toolkit_entry(entry: Any) -> Any:
    parse_listed_toolkits(entry)
    return entry


class HttpSettings(ListSection):
    """Hosts that hooks may send requests to, and the limits of a request."""

    hosts: tuple[DeclaredHost, ...] = Field(
        default=(),
        description=(
            "`api.example.org`, `*.example.org`, `10.1.2.3`, `10.0.0.0/8`, optionally with `:port`;"
            " `*`: any public host"
        ),
    )
    timeout_ms: int = Field(
        default=10000, ge=1, description="Deadline of a request with its redirects"
    )
    max_kb: int = Field(
        default=4096, ge=1, description="Largest body of an answer, after decompression"
    )
    redirects: int = Field(
        default=5, ge=0, description="Redirects to follow; 0: return the redirect itself"
    )


class Settings(Value):
    """The settings of one turn of an assistant, without gaps."""

    connector: ConnectorNames = Field(
        default="extractive",
        description="Language model; of a list, the next one is used when one cannot be reached",
    )
    prompt_preset: str = ""
    disable_global_prompts: bool = False
    locale: str = "en"
    options: ModelSettings = defaults_of(ModelSettings)
    uses: UsesSettings = defaults_of(UsesSettings)
    search: SearchSettings = defaults_of(SearchSettings)
    hooks: HookSettings = defaults_of(HookSettings)
    kb: AvailableCollections = defaults_of(AvailableCollections)
    db: AvailableModels = defaults_of(AvailableModels)
    mcp: AvailableServers = defaults_of(AvailableServers)
    tools: tuple[Annotated[str | dict[str, Any], BeforeValidator(_check_toolkit_entry)], ...] = (
        Field(
            default=(),
            description='Toolkits: "id", {id: [tools]}, or {toolkit, tools, scopes, when, as}',
        )
    )
    http: HttpSettings = defaults_of(HttpSettings)
    history: HistorySettings = defaults_of(HistorySettings)
    messages: MessageSettings = defaults_of(MessageSettings)
