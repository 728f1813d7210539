"""The embedding providers of an app: local models, the two built-in services, and services under
`embedders` in agent/agent.yml."""

from __future__ import annotations

from collections.abc import Mapping

from groundhook.core.app_settings import EmbedderSettings
from groundhook.core.concealed import conceal
from groundhook.core.errors import ConfigError
from groundhook.core.ports import Embedder
from groundhook.core.types.collection_spec import EmbeddingSpec
from groundhook.handlers.kb.embedders.curve import Curve, curve_of
from groundhook.handlers.kb.embedders.endpoint import EmbeddingEndpoint
from groundhook.handlers.kb.embedders.service import (
    EmbedderAccess,
    EmbeddingLimits,
    InputKind,
    ServiceEmbedder,
)
from groundhook.handlers.kb.embedders.voyage import VoyageEmbeddings

OPENAI, VOYAGE = "https://api.openai.com/v1", "https://api.voyageai.com/v1"
_VARIABLES = {"openai": "OPENAI_API_KEY", "voyage": "VOYAGE_API_KEY"}
_DEFAULTS = {"openai": "text-embedding-3-small", "voyage": "voyage-3.5"}

# Documented limits of a request, with a margin: tokens are estimated here and counted there.
# https://platform.openai.com/docs/api-reference/embeddings/create: 2,048 texts, 300,000 tokens,
# 8,192 in a text. https://docs.voyageai.com/docs/embeddings: 1,000 texts, 120,000 tokens for the
# most restricted models. https://docs.voyageai.com/docs/contextualized-chunk-embeddings: 32,000
# tokens for the passages of a document.
# Reading an answer of so many numbers takes a tenth of a second, in which nothing else runs.
_MOST_NUMBERS = 128 * 1024
_OPENAI_LIMITS = EmbeddingLimits(texts=256, tokens=100_000, text_bytes=16_000)
_VOYAGE_LIMITS = EmbeddingLimits(texts=256, tokens=60_000, text_bytes=100_000)
_CONTEXT_LIMITS = EmbeddingLimits(texts=500, tokens=20_000, text_bytes=60_000)

_DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
    "voyage-3-lite": 512,
    "voyage-large-2": 1536,
    "voyage-code-2": 1536,
}
_SIZED = (
    "text-embedding-3",
    "voyage-3-large",
    "voyage-3.5",
    "voyage-code-3",
    "voyage-context",
    "voyage-4",
)


def service(
    name: str, settings: EmbedderSettings, environment: Mapping[str, str], spec: EmbeddingSpec
) -> Embedder:
    """Return the embedder of a service: `voyage`, `openai`, or one that the app declares under
    another name with a type. Raises ConfigError."""
    make = _voyage if (settings.type or name) == "voyage" else _openai
    return make(name, settings, environment, spec)


def _access(
    name: str, kind: str, settings: EmbedderSettings, environment: Mapping[str, str], host: str
) -> EmbedderAccess:
    """Return the access to a service, with the configured key or that of the environment. An
    OpenAI-compatible service at another host never gets OpenAI's key, and may need none."""
    variable = "" if settings.host and kind == "openai" else _VARIABLES[kind]
    key = environment.get(variable, "").strip()
    conceal(variable, key)
    return EmbedderAccess(
        name=name,
        host=settings.host or host,
        key=settings.key.strip() or key,
        variable=variable,
        headers=settings.headers,
        needs_key=kind == "voyage" or not settings.host,
        query_s=settings.query_timeout_ms / 1000,
        batch_s=settings.timeout_ms / 1000,
        retries=settings.retries,
    )


def _openai(
    name: str, settings: EmbedderSettings, environment: Mapping[str, str], spec: EmbeddingSpec
) -> Embedder:
    if settings.host and not spec.model:
        raise ConfigError(
            f"embedding.provider {name!r} needs embedding.model: {settings.host} may serve any"
        )
    model = spec.model or _DEFAULTS["openai"]
    access = _access(name, "openai", settings, environment, OPENAI)
    dimensions = _dimensions(name, model, spec)
    prefixes: dict[InputKind, str] = {
        "query": settings.query_prefix,
        "document": settings.document_prefix,
    }
    service = EmbeddingEndpoint(
        access,
        model=model,
        dimensions=dimensions,
        sized=_sends_dimensions(settings, spec, model),
        prefixes=prefixes,
    )
    return _embedder(service, access, settings, _OPENAI_LIMITS, model, dimensions)


def _voyage(
    name: str, settings: EmbedderSettings, environment: Mapping[str, str], spec: EmbeddingSpec
) -> Embedder:
    model = spec.model or _DEFAULTS["voyage"]
    access = _access(name, "voyage", settings, environment, VOYAGE)
    dimensions = _dimensions(name, model, spec)
    service = VoyageEmbeddings(
        access, model=model, dimensions=dimensions, sized=_sends_dimensions(settings, spec, model)
    )
    return _embedder(
        service,
        access,
        settings,
        _CONTEXT_LIMITS if service.in_context else _VOYAGE_LIMITS,
        model,
        dimensions,
    )


def _embedder(
    service: EmbeddingEndpoint | VoyageEmbeddings,
    access: EmbedderAccess,
    settings: EmbedderSettings,
    most: EmbeddingLimits,
    model: str,
    dimensions: int,
) -> Embedder:
    texts = settings.batch_texts or most.texts
    limits = EmbeddingLimits(
        texts=max(1, min(texts, _MOST_NUMBERS // dimensions)),
        tokens=settings.batch_tokens or most.tokens,
        text_bytes=settings.text_bytes or most.text_bytes,
    )
    curve = (
        Curve(settings.curve.middle, settings.curve.scale) if settings.curve else curve_of(model)
    )
    return ServiceEmbedder(service, access, limits, model=model, dimensions=dimensions, curve=curve)


def _sends_dimensions(settings: EmbedderSettings, spec: EmbeddingSpec, model: str) -> bool:
    """Return whether requests contain the dimensions: if they are configured and the model supports
    them."""
    return bool(spec.dimensions) and (settings.send_dimensions or model.startswith(_SIZED))


def _dimensions(name: str, model: str, spec: EmbeddingSpec) -> int:
    known = _DIMENSIONS.get(model) or (1024 if model.startswith("voyage-") else 0)
    if not spec.dimensions and not known:
        raise ConfigError(
            f"the dimensions of {model!r} are not known",
            hint=f"set embedding.dimensions, which provider {name!r} needs for this model",
        )
    return spec.dimensions or known
