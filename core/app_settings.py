"""Settings of a whole app, with their defaults: the keys of `agent/agent.yml` that apply once, for
all assistants."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from groundhook.core.types.base import Value, defaults_of
from groundhook.core.types.collection_spec import EmbeddingSpec
from groundhook.core.types.serialisation import DeclaredHost, Headers, WebAddress


class DatabaseSettings(Value):
    """The database of the models."""

    url: str = Field(default="", description="SQLAlchemy URL; empty: SQLite under the state folder")
    timeout_ms: int = Field(default=5000, ge=1, description="Longest statement")
    connections: int = Field(
        default=8,
        ge=1,
        le=200,
        description="Searches that use the database at the same time; others wait",
    )
    result_kb: int = Field(
        default=4096,
        ge=1,
        description="Largest result of a query; rows beyond it are omitted, with a warning",
    )


class QdrantSettings(Value):
    """A Qdrant server or cluster for collections, instead of the state folder."""

    url: WebAddress = Field(
        default="",
        description=(
            "Qdrant server or cluster, such as https://host:6333; empty: the embedded engine"
        ),
    )
    api_key: str = Field(default="", description="Its key, as $ENV.NAME")
    prefix: str = Field(
        default="groundhook.",
        description="Prefix of names on the server; apps that share it need different prefixes",
    )
    timeout_s: float = Field(
        default=10.0, gt=0, description="Deadline of a request with its retries"
    )
    retries: int = Field(
        default=2,
        ge=0,
        description="Retries of requests that only read, when the server is unreachable or busy",
    )
    prefer_grpc: bool = Field(default=False, description="Use gRPC if its port answers, else HTTP")
    grpc_port: int = Field(
        default=6334, ge=1, le=65535, description="gRPC port of the same host, for `prefer_grpc`"
    )
    ca_file: str = Field(
        default="", description="Certificates (PEM) of the authority of a private server"
    )


class KBStorageSettings(Value):
    """The embedded engine of knowledge bases, and the cache of vectors."""

    idle_s: float = Field(
        default=300.0,
        ge=1,
        description="Seconds without a request after which the vector process ends",
    )
    reserve_mb: int = Field(
        default=128, ge=0, description="Disk space that must stay free when documents are added"
    )
    vector_cache_mb: int = Field(
        default=256, ge=0, description="Size of the cache of vectors on disk; 0: no cache"
    )
    small_embedder: bool = Field(
        default=False,
        description=(
            "Compute the bundled embedding model with its small engine: 150 MB less memory, a"
            " quarter of the speed"
        ),
    )


class CurveSettings(Value):
    """The curve from a model's cosine to a similarity; `groundhook kb calibrate` measures it."""

    middle: float = Field(
        ge=-1,
        le=1,
        description="Cosine with similarity 0.5: the passage is as likely relevant as not",
    )
    scale: float = Field(
        gt=0, le=1, description="Increase of the cosine from similarity 0.5 to 0.73"
    )


class EmbedderSettings(Value):
    """An embedding service; `embedding.provider` of a collection names it."""

    type: Literal["", "openai", "voyage"] = Field(
        default="",
        description="Its API; may be omitted for services named `openai` and `voyage`",
    )
    host: WebAddress = Field(default="", description="Base URL; empty: that of OpenAI or Voyage")
    key: str = Field(
        default="",
        description="Empty: OPENAI_API_KEY or VOYAGE_API_KEY, for a service at its own address",
    )
    headers: Headers = Field(default={}, description="Sent with every request; `openai` only")
    query_timeout_ms: int = Field(
        default=6000, ge=1, description="Deadline of a question, with retries"
    )
    timeout_ms: int = Field(
        default=120000, ge=1, description="Deadline of a request with documents, with retries"
    )
    retries: int = Field(
        default=3,
        ge=0,
        le=20,
        description="Retries after a rate limit, a failure or a lost connection",
    )
    batch_texts: int = Field(
        default=0,
        ge=0,
        description="Maximum texts in a request; 0: the service's limit. Never more than those"
        " whose vectors have 131,072 numbers together: 85 of 1,536 dimensions",
    )
    batch_tokens: int = Field(
        default=0,
        ge=0,
        description="Maximum tokens in a request, estimated; 0: the service's limit",
    )
    text_bytes: int = Field(
        default=0, ge=0, description="A longer text is cut; 0: the limit of the service's models"
    )
    send_dimensions: bool = Field(
        default=False,
        description="Send `embedding.dimensions` also for an unknown model",
    )
    query_prefix: str = Field(
        default="", description="Prefix of questions, for models trained with one; `openai` only"
    )
    document_prefix: str = Field(default="", description="Prefix of documents, likewise")
    curve: CurveSettings | None = Field(
        default=None, description="From cosine to similarity; none: the known curve of the model"
    )


class MemorySettings(Value):
    """Limits of the memory of assistants (`ctx.memory`)."""

    key_length: int = Field(default=256, ge=1, le=4096, description="Longest key, in characters")
    value_kb: int = Field(default=256, ge=1, description="Largest value, as JSON")
    keys: int = Field(
        default=1000, ge=1, description="Maximum keys in one namespace of one user, team or chat"
    )
    busy_ms: int = Field(
        default=5000, ge=0, description="Longest wait while another process writes"
    )


class StoreSettings(Value):
    """The store of conversations."""

    url: str = Field(
        default="",
        description=(
            "PostgreSQL database, such as $ENV.STORE_URL; empty: SQLite under the state folder"
        ),
    )
    busy_ms: int = Field(
        default=5000,
        ge=0,
        description="Milliseconds that a statement waits for rows which another process has locked",
    )
    keep_days: int = Field(
        default=0,
        ge=0,
        description="Days without a change after which a conversation is removed; 0: never",
    )
    logs_h: float = Field(
        default=24.0,
        ge=1,
        description="Hours for which the events of a turn, and the key of its request, are stored",
    )
    flush_ms: int = Field(
        default=250,
        ge=10,
        le=1000,
        description="Milliseconds between two writes of a turn's events; a kill loses the newest",
    )
    lease_s: float = Field(
        default=15.0,
        ge=3,
        le=60,
        description="Seconds without a sign of a process after which its turns count as lost",
    )


class TurnsSettings(Value):
    """The number of turns that an open app runs at the same time, and the size of a request. Turns
    of called assistants do not count."""

    at_once: int = Field(
        default=200, ge=1, description="Turns that run at the same time; others wait"
    )
    queue: int = Field(default=1000, ge=0, description="Turns that wait; others raise TooManyTurns")
    messages: int = Field(default=1000, ge=1, description="Maximum messages of one request")
    characters: int = Field(
        default=1_000_000,
        ge=1,
        description=(
            "Maximum characters of text in the messages of one request, without images and files"
        ),
    )


class AttachmentSettings(Value):
    """Files that messages bring: how they are read, and what one person may keep."""

    file_mb: float = Field(default=20, gt=0, le=500, description="Largest file, in MB")
    files: int = Field(default=10, ge=0, le=100, description="Most files of one message")
    timeout_ms: int = Field(
        default=30000,
        ge=1,
        description="Longest time to read one file, or to have one picture described",
    )
    pictures: int = Field(
        default=10,
        ge=0,
        le=100,
        description="Most pictures of a conversation that `uses.vision` describes, the newest",
    )
    whole_characters: int = Field(
        default=12000,
        ge=0,
        description=(
            "Text of files together that the model gets whole, the newest first; longer ones are"
            " searched for the question"
        ),
    )
    passages: int = Field(
        default=6, ge=1, le=50, description="Passages of a searched file that the model gets"
    )
    embedding: EmbeddingSpec = defaults_of(EmbeddingSpec)
    embedding_ms: int = Field(
        default=4000,
        ge=0,
        description=(
            "Longest time in one turn to embed a long file, so that it is searched by meaning too;"
            " 0: by words alone"
        ),
    )
    hosts: tuple[DeclaredHost, ...] = Field(
        default=("*",),
        description="Hosts of files that are given by address; `*`: any public host; empty: none",
    )
    person_files: int = Field(
        default=500, ge=0, description="Most files in the kept chats of one person"
    )
    person_mb: float = Field(
        default=200, ge=0, description="Files in the kept chats of one person together, in MB"
    )


FieldName = Annotated[str, Field(pattern=r"^[\w-]{1,64}$")]


class TraceExportSettings(Value):
    """The service to which the traces of turns and tool calls are sent."""

    type: Literal["otlp", "langsmith", "langfuse", "phoenix"] = Field(
        description=(
            "An OTLP endpoint over HTTP, or a product with its keys from the environment, such as"
            " LANGSMITH_API_KEY"
        )
    )
    url: str = Field(default="", description="Base address of the endpoint; its path is added")
    headers: dict[str, str] = Field(default={}, description="Of each request; use $ENV for keys")
    content: bool = Field(
        default=False,
        description=(
            "Whether to send texts (questions, answers, documents, labels, errors, people) as well"
            " as figures; they are redacted first"
        ),
    )
    redact: tuple[FieldName, ...] = Field(
        default=(),
        description=(
            "Names of fields whose values are not sent, in addition to passwords, keys, tokens and"
            " addresses of e-mail"
        ),
    )

    @model_validator(mode="after")
    def _placed(self) -> TraceExportSettings:
        if self.type == "otlp" and not self.url:
            raise ValueError("an OTLP endpoint needs its address: set url")
        return self


class TraceSettings(Value):
    """The export of traces, in addition to the events of a turn."""

    export: TraceExportSettings | None = None


class AppKeys(Value):
    """Keys of `agent/agent.yml` for the whole app. Add a new one here."""

    database: DatabaseSettings = defaults_of(DatabaseSettings)
    databases: dict[str, DatabaseSettings] = Field(
        default={}, description="More databases, by the name that models have as `connection`"
    )
    qdrant: QdrantSettings = defaults_of(QdrantSettings)
    kb_storage: KBStorageSettings = defaults_of(KBStorageSettings)
    embedders: dict[str, EmbedderSettings] = Field(
        default={}, description="Embedding services by name"
    )
    memory: MemorySettings = defaults_of(MemorySettings)
    store: StoreSettings = defaults_of(StoreSettings)
    attachments: AttachmentSettings = defaults_of(AttachmentSettings)
    state: str = Field(
        default=".groundhook",
        min_length=1,
        description="Folder for shards, SQLite files and compiled hooks",
    )
    trace: TraceSettings = defaults_of(TraceSettings)
    turns: TurnsSettings = defaults_of(TurnsSettings)
    turn_timeout_ms: int = Field(
        default=120000, ge=1, description="Longest turn, without the time it waits"
    )

    @field_validator("databases")
    @classmethod
    def _named(cls, databases: dict[str, DatabaseSettings]) -> dict[str, DatabaseSettings]:
        for name, each in databases.items():
            if not (name and each.url):
                raise ValueError(f"the database {name!r} needs a name and a 'url'")
        return databases


class AppSettings(AppKeys):
    """Settings of the whole app, from `agent/agent.yml` alone. `hook_workers` is `hooks.workers` in
    that file."""

    hook_workers: int | None = Field(
        default=None,
        ge=0,
        description="Processes that run hooks; none: one for each core; 0: the host's own process",
    )
