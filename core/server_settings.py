"""Settings of the HTTP server, with their defaults: the section `server` of `agent/agent.yml`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from groundhook.core.types.base import MOST_ENTRIES, Value, defaults_of
from groundhook.core.types.serialisation import WebAddress

ServerScope = Literal["chat", "search", "chats", "author", "kb", "metrics", "admin"]
READER_SCOPES: tuple[ServerScope, ...] = ("chat", "search", "chats")
CitationStyle = Literal["numbers", "links", "markers", "none"]


class KeySettings(Value):
    """A key of the server from the app's files, for containers; `groundhook keys` keeps others."""

    name: str = Field(min_length=1, description="Name in logs")
    key: str = Field(default="", description="The key, as $ENV.NAME; at least 32 characters")
    user: str = Field(default="", description="`user_id` of the identity")
    team: str = ""
    tenant: str = ""
    scopes: tuple[ServerScope, ...] = READER_SCOPES
    assistants: tuple[str, ...] | None = Field(
        default=None, description="Assistants that it may use (none: all that are offered)"
    )
    acts_for: bool = Field(default=False, description="Its requests may name their user")
    jwt_secret: str = Field(
        default="",
        description="Secret of Open WebUI's signed user token; plain user headers are refused then",
    )
    client: Literal["", "openwebui"] = Field(
        default="", description="`openwebui`: chunks carry Open WebUI's events"
    )
    citations: CitationStyle | None = Field(
        default=None, description="Instead of `server.openai.citations`"
    )


class ClaimSettings(Value):
    """The claims of a token that the identity is read from; dots lead into objects."""

    user: str = Field(default="sub", min_length=1)
    team: str = ""
    tenant: str = ""
    scopes: str = Field(default="", description="A list, or text with spaces; empty: all readers'")


class JWTSettings(Value):
    """An issuer of tokens: an OpenID Connect provider, or another service with a key."""

    issuer: str = Field(default="", description="`iss` of its tokens")
    audience: str | tuple[str, ...] = Field(
        default="",
        description="`aud` of its tokens for this server; a list if /api and /mcp have one each",
    )
    jwks_url: WebAddress = Field(default="", description="Its key set; https unless on loopback")
    public_key: str = Field(default="", description="Its public key (PEM), instead of a key set")
    secret: str = Field(default="", description="A shared secret, instead of a key set")
    algorithms: tuple[str, ...] = Field(
        default=(), description="Accepted signatures (none: RS256 and ES256; HS256 with `secret`)"
    )
    claims: ClaimSettings = defaults_of(ClaimSettings)
    cache_s: float = Field(
        default=600.0, ge=1, description="Seconds for which a fetched key set is used"
    )


class ForwardedSettings(Value):
    """Identity from headers of a proxy that has signed the user in."""

    addresses: tuple[str, ...] = Field(
        default=(), description="Addresses or networks of the proxy, such as 10.0.0.0/8"
    )
    secret: str = Field(default="", description="Value of X-Forwarded-Secret, where it is set")
    user: str = Field(default="X-Forwarded-User", description="Header with the user's id")
    team: str = Field(default="", description="Header with the team's id")
    tenant: str = Field(default="", description="Header with the tenant's id")


class AuthSettings(Value):
    """The ways in which clients sign in."""

    anonymous: bool = Field(
        default=False,
        description="Clients that do not sign in may use assistants with `public: true`",
    )
    local: Literal["token", "open"] = Field(
        default="token",
        description="On loopback, where no way to sign in is configured: `token`, a key that is"
        " printed, or `open`, no key",
    )
    keys: tuple[KeySettings, ...] = Field(
        default=(),
        description="Keys from the app's files, a list: each has `name` and `key`, and may have"
        " `user`, `team`, `tenant`, `scopes`, `assistants`, `acts_for`, `jwt_secret`, `client` and"
        " `citations`",
    )
    jwt: tuple[JWTSettings, ...] = Field(
        default=(),
        description="Issuers of tokens, a list: each has `issuer`, `audience` and one of"
        " `jwks_url`, `public_key` and `secret`, and may have `algorithms`, `claims` (`user`,"
        " `team`, `tenant`, `scopes`) and `cache_s`",
    )
    forwarded: ForwardedSettings | None = Field(
        default=None,
        description="Headers of a proxy that signs users in: `addresses`, `secret`, and the names"
        " of the headers `user`, `team` and `tenant`",
    )
    session_h: float = Field(
        default=12.0, gt=0, description="Hours for which a browser stays signed in"
    )


class AllowSettings(Value):
    """The options that requests may choose."""

    connectors: tuple[str, ...] = Field(
        default=(), description="Connectors that a request may name (none: no choice)"
    )


class LimitSettings(Value):
    """Limits of the server. A request that exceeds one is refused at once."""

    requests_per_minute: int = Field(default=600, ge=1, description="Requests of one person")
    turns_per_minute: int = Field(default=30, ge=1, description="Turns of one person")
    turns_at_once: int = Field(
        default=4, ge=1, description="Turns of one person that run at the same time"
    )
    turns_in_all: int = Field(
        default=64, ge=1, description="Turns of one process that run at the same time"
    )
    streams_at_once: int = Field(
        default=32,
        ge=1,
        description="Open streams of one person (at least `turns_at_once`); visitors of one address"
        " who do not sign in are one person",
    )
    streams_per_address: int = Field(
        default=256,
        ge=1,
        description="Open streams of all persons at one address; those of this machine, and those"
        " for whom a program or a proxy speaks, do not count",
    )
    streams_in_all: int = Field(default=2000, ge=1, description="Open streams of one process")
    connections: int = Field(
        default=4096,
        ge=1,
        description="Open connections of one process; at most three quarters of the files that the"
        " system lets it open",
    )
    head_s: float = Field(
        default=10.0,
        gt=0,
        description="Longest time to send the head of a request, in seconds, from when the"
        " connection was opened or the last answer was complete",
    )
    body_kb: int = Field(default=1024, ge=1, description="Largest body of a request, in kB")
    body_s: float = Field(default=30.0, gt=0, description="Longest time to send a body, in seconds")
    messages: int = Field(
        default=200, ge=1, le=MOST_ENTRIES, description="Most messages of one request"
    )
    message_kb: int = Field(
        default=256, ge=1, description="Text of all messages of one request, in kB, without images"
    )
    image_mb: float = Field(
        default=8, gt=0, le=100, description="Largest image or file of a message, in MB"
    )
    images_mb: float = Field(
        default=16, gt=0, le=200, description="Images and files of one request together, in MB"
    )
    upload_mb: float = Field(
        default=32, gt=0, le=10_000, description="Files that are added to a collection at once, MB"
    )
    upload_s: float = Field(default=300, gt=0, description="Seconds in which they must arrive")
    storage: str = Field(
        default="memory",
        pattern=r"^(memory|rediss?://.+)$",
        description="Where requests, turns and sign-ins a minute are counted: `memory`, by each"
        " process alone, or `redis://…`, by all of them together",
    )


class StreamSettings(Value):
    """Streams of events."""

    heartbeat_s: float = Field(
        default=15.0, gt=0, description="Seconds without an event after which a comment is sent"
    )
    behind_kb: int = Field(
        default=1024,
        ge=1,
        description="kB of events that a reader may be behind; the turn waits for a slower one",
    )
    log_kb: int = Field(
        default=8192, ge=1, description="Largest log of a turn, in kB; a larger one ends it"
    )
    linger_s: float = Field(
        default=10.0,
        ge=0,
        description="Seconds after its last reader has left until a turn is stopped",
    )
    keep_s: float = Field(
        default=60.0, ge=0, description="Seconds for which the log of an ended turn stays in memory"
    )
    slow_s: float = Field(
        default=60.0,
        gt=0,
        description="Seconds after which a connection whose client reads nothing is closed",
    )


class ChatsSettings(Value):
    """The endpoints of kept chats."""

    enabled: bool = Field(
        default=True,
        description="Off: 404, and the server keeps no chats",
    )


class ServedPageSettings(Value):
    """The page for people, at the address of the server, and the widget for other sites."""

    enabled: bool = Field(default=True, description="Off: 404; `GET /` lists the endpoints")


class MCPServerSettings(Value):
    """The app as an MCP server, under `/mcp`."""

    enabled: bool = Field(default=True, description="Off: 404")


class OpenAISettings(Value):
    """The endpoints under `/v1`."""

    enabled: bool = Field(default=True, description="Off: 404")
    citations: CitationStyle = Field(
        default="numbers", description="How markers are shown: [1], a Markdown link, as they are"
    )
    system: Literal["user", "system", "drop"] = Field(
        default="user",
        description="The role that a client's system messages get; `drop` omits them",
    )
    tasks: str = Field(
        default="off",
        description="Open WebUI's titles and tags: `off` (at no cost) or a connector's id",
    )


class ServerSettings(Value):
    """The HTTP server, `groundhook serve`."""

    host: str = Field(default="127.0.0.1", min_length=1, description="Address that it listens on")
    port: int = Field(default=8420, ge=0, le=65535, description="0: any free one")
    workers: int = Field(default=1, ge=1, le=64, description="Processes")
    public_url: WebAddress = Field(
        default="", description="Address that clients see; empty: that of each request"
    )
    hosts: tuple[str, ...] = Field(
        default=(), description="Further names that the Host header may have"
    )
    origins: tuple[str, ...] = Field(
        default=(),
        description="Origins of other pages that may send requests, such as https://app.example",
    )
    proxies: tuple[str, ...] = Field(
        default=(),
        description="Addresses or networks of proxies whose X-Forwarded-For and -Proto are used",
    )
    assistants: tuple[str, ...] | None = Field(
        default=None, description="Assistants that are offered (none: all but `automated` ones)"
    )
    author_writes: bool = Field(
        default=False,
        description="Whether the workbench may write tests into assistants' folders, for authors at"
        " this machine",
    )
    openai: OpenAISettings = defaults_of(OpenAISettings)
    mcp: MCPServerSettings = defaults_of(MCPServerSettings)
    chats: ChatsSettings = defaults_of(ChatsSettings)
    page: ServedPageSettings = defaults_of(ServedPageSettings)
    auth: AuthSettings = defaults_of(AuthSettings)
    allow: AllowSettings = defaults_of(AllowSettings)
    limits: LimitSettings = defaults_of(LimitSettings)
    streams: StreamSettings = defaults_of(StreamSettings)
    drain_s: float = Field(
        default=10.0,
        ge=0,
        description="Seconds that running turns have to end when the server is stopped",
    )
    warmup: bool = Field(
        default=True,
        description="Load models, hooks and vocabularies at start; the server is ready after it",
    )
    metrics: Literal["off", "loopback", "scope"] = Field(
        default="loopback",
        description="Who may read /metrics: `off`, nobody; `loopback`, this machine and keys with"
        " the scope; `scope`, these keys alone",
    )
    logs: Literal["text", "json"] = "text"
