"""Settings of a whole app, with their defaults: the keys of `agent/agent.yml` that apply once, for
all assistants."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from groundhook.host.core.types.base import Value
from groundhook.host.core.types.serialisation import Headers, WebAddress


class DatabaseSettings(Value):
    url: str = Field(default="", description="SQLAlchemy URL; empty: SQLite under the state folder")
    timeout_ms: int = Field(default=5000, ge=1, description="Longest statement")
    connections: int = Field(
        default=8,
        ge=1,
        le=200,
        description="Searches that ask the database at the same time; others wait",
    )
    result_kb: int = Field(
        default=4096,
        ge=1,
        description="Largest result of a query; rows beyond it are left out, which is said",
    )


class QdrantSettings(Value):
    """Where collections are kept when not under the state folder."""

    url: WebAddress = Field(
        default="",
        description=(
            "Qdrant server or cluster, such as https://host:6333; empty: the embedded engine"
        ),
    )
    api_key: str = Field(default="", description="Its key, as $ENV.NAME")
    prefix: str = Field(
        default="groundhook.",
        description="What names on the server begin with; apps that share one need their own",
    )
    timeout_s: float = Field(default=10.0, gt=0, description="One request in all")
    retries: int = Field(
        default=2,
        ge=0,
        description="Tries again for what only reads, when the server was not there or was busy",
    )
    prefer_grpc: bool = Field(
        default=False, description="Speak gRPC where its port answers, and HTTP where it does not"
    )
    grpc_port: int = Field(
        default=6334, ge=1, le=65535, description="Of the same host, for `prefer_grpc`"
    )
    ca_file: str = Field(
        default="", description="Certificates (PEM) that a private server's is checked against"
    )


class KBStorageSettings(Value):
    idle_s: float = Field(
        default=300.0,
        ge=1,
        description="The process that holds the vectors ends after so long without a request",
    )
    reserve_mb: int = Field(
        default=128, ge=0, description="Disk space that adding documents must leave free"
    )
    vector_cache_mb: int = Field(
        default=256, ge=0, description="Vectors kept to be used again, on disk; 0: none"
    )
    small_embedder: bool = Field(
        default=False,
        description=(
            "Compute the bundled embedding model with its small engine: 150 MB less memory, a"
            " quarter of the speed"
        ),
    )


class CurveSettings(Value):
    """What a model's cosines are worth (`groundhook kb calibrate` measures it)."""

    middle: float = Field(
        ge=-1,
        le=1,
        description="Cosine at which a passage is as likely to belong to the question as not",
    )
    scale: float = Field(
        gt=0, le=1, description="How much more cosine makes a similarity of 0.5 one of 0.73"
    )


class EmbedderSettings(Value):
    """An embedding service, by the name that `embedding.provider` of a collection calls it."""

    type: Literal["", "openai", "voyage"] = Field(
        default="",
        description="How it is spoken to; may be left out for those named `openai` and `voyage`",
    )
    host: WebAddress = Field(default="", description="Base URL; empty: that of OpenAI or Voyage")
    key: str = Field(
        default="",
        description="Empty: OPENAI_API_KEY or VOYAGE_API_KEY, for a service at its own address",
    )
    headers: Headers = Field(default={}, description="Sent with every request; `openai` only")
    query_timeout_ms: int = Field(default=6000, ge=1, description="A question, with all tries")
    timeout_ms: int = Field(
        default=120000, ge=1, description="One request of documents, with all tries"
    )
    retries: int = Field(
        default=3,
        ge=0,
        le=20,
        description="Tries again after a limit, a failure or a lost connection",
    )
    batch_texts: int = Field(
        default=0, ge=0, description="Most texts in a request; 0: what the service takes"
    )
    batch_tokens: int = Field(
        default=0,
        ge=0,
        description="Most tokens in a request, estimated; 0: what the service takes",
    )
    text_bytes: int = Field(
        default=0, ge=0, description="A longer text is cut; 0: what the service's models take"
    )
    send_dimensions: bool = Field(
        default=False,
        description="Ask for `embedding.dimensions` also where the model is not known",
    )
    query_prefix: str = Field(
        default="", description="Put before questions, for models trained so; `openai` only"
    )
    document_prefix: str = Field(default="", description="Put before documents, likewise")
    curve: CurveSettings | None = Field(
        default=None, description="Cosine to similarity; none: the model's own, if it is known"
    )


class MemorySettings(Value):
    """What assistants may remember (`ctx.memory`)."""

    key_length: int = Field(default=256, ge=1, le=4096, description="Characters of a key")
    value_kb: int = Field(default=256, ge=1, description="One value, as JSON")
    keys: int = Field(
        default=1000, ge=1, description="Keys in one namespace of one user, team or chat"
    )
    busy_ms: int = Field(
        default=5000, ge=0, description="How long to wait while another process writes"
    )


class TurnsSettings(Value):
    """How many turns an open app takes at the same time. Turns within turns do not count."""

    at_once: int = Field(default=200, ge=1, description="Turns under way; others wait")
    queue: int = Field(default=1000, ge=0, description="Turns that wait; others are refused")


class AppKeys(Value):
    """Keys of `agent/agent.yml` that hold for the whole app: a new one goes here."""

    database: DatabaseSettings = DatabaseSettings()
    qdrant: QdrantSettings = QdrantSettings()
    kb_storage: KBStorageSettings = KBStorageSettings()
    embedders: dict[str, EmbedderSettings] = Field(
        default={}, description="Embedding services by name"
    )
    memory: MemorySettings = MemorySettings()
    state: str = Field(
        default=".groundhook",
        min_length=1,
        description="Folder for shards, SQLite files and compiled hooks",
    )
    turns: TurnsSettings = TurnsSettings()
    turn_timeout_ms: int = Field(
        default=120000, ge=1, description="Longest turn, from when it no longer waits"
    )


class AppSettings(AppKeys):
    """What holds for the whole app; said in `agent/agent.yml` only. `hook_workers` is
    `hooks.workers` there."""

    hook_workers: int | None = Field(
        default=None, ge=0, description="Processes that run hooks; none: one a core; 0: in process"
    )
