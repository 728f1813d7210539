"""The parts that ship with Groundhook, registered as a plug-in registers its own. Each imports its
dependencies when it is first made."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from groundhook.core.app_settings import (
    AppSettings,
    EmbedderSettings,
)
from groundhook.core.errors import ConfigError
from groundhook.core.ports import Connector, Embedder, Handler, Reranker
from groundhook.core.registry import Deferred, Registry
from groundhook.core.tool_ports import Toolkit
from groundhook.core.types.collection_spec import EmbeddingSpec
from groundhook.core.types.connector_spec import ConnectorSpec
from groundhook.core.types.toolkit_spec import ToolkitSpec
from groundhook.handlers.kb.reading.readers import READERS
from groundhook.host.app.parts import EMBEDDER, make_part, make_provider, named_reader
from groundhook.host.app.plugins import PORT_VERSION, Plugin, PluginContext, Plugins, Source

if TYPE_CHECKING:
    from groundhook.core.types.web_providers import WebProvider

SERVICES = ("voyage", "openai")  # embedding providers whose settings are in agent/agent.yml


def register(plugins: Plugins) -> None:
    plugins.sources.add(
        "web", Source(type="web", make=_make_web, module="groundhook.handlers.web.handler")
    )
    plugins.sources.add(
        "kb", Source(type="kb", make=_make_kb, module="groundhook.handlers.kb.opening")
    )
    plugins.sources.add(
        "db", Source(type="db", make=_make_db, module="groundhook.handlers.db.database")
    )
    plugins.web_providers.add("tavily", _make_tavily)  # in the order in which `auto` tries them
    plugins.web_providers.add("serper", _make_serper)
    plugins.web_providers.add("serpapi", _make_serpapi)
    plugins.web_providers.add("searxng", _make_searxng)
    plugins.rerankers.add("score", _make_score_reranker)
    plugins.rerankers.add("model", _make_model_reranker)
    plugins.rerankers.add("agent", partial(_make_delegated_reranker, "agent"))
    plugins.rerankers.add("mcp", partial(_make_delegated_reranker, "mcp"))
    plugins.connectors.add("openai", _make_openai)
    plugins.connectors.add("anthropic", _make_anthropic)
    plugins.connectors.add("extractive", _make_extractive)
    plugins.connectors.add("scripted", _make_scripted)
    plugins.toolkits.add("catalogue", _make_catalogue)
    plugins.toolkits.add("documents", _make_documents)
    plugins.toolkits.add("learning", _make_learning)
    plugins.toolkits.add("memory", _make_memory)
    plugins.embedders.add("builtin", _make_builtin_embedder)
    plugins.embedders.add("hash", _make_hash_embedder)
    plugins.embedders.add("onnx", _make_onnx_embedder)
    for name in SERVICES:
        plugins.embedders.add(name, partial(_make_service_embedder, name))
    for suffix, reader in READERS.items():
        plugins.readers.add(suffix, reader)


BUILTIN = Plugin(register, requires=PORT_VERSION)


def declared_embedders(settings: AppSettings) -> Plugin:
    """Return a plug-in with the embedding services that an app declares. Raises ConfigError for a
    wrong entry."""
    names = [name for name in settings.embedders if name not in SERVICES]
    for name in names:
        if not settings.embedders[name].type:
            raise ConfigError(
                f"embedders.{name} in agent/agent.yml has no type",
                hint="add type: openai, or voyage",
            )
        if name in ("builtin", "hash"):
            raise ConfigError(
                f"embedders.{name} in agent/agent.yml has the name of a built-in embedding",
                hint="choose another",
            )

    def add(plugins: Plugins) -> None:
        for name in names:
            plugins.embedders.add(name, partial(_make_service_embedder, name))

    return Plugin(add, requires=PORT_VERSION)


# ------------------------------------------------------------------------------------------ sources


def _make_web(context: PluginContext) -> Handler:
    from groundhook.handlers.web.handler import make_web

    providers = context.plugins.web_providers
    return make_web(
        context.environment,
        Deferred(
            "web search provider",
            {
                name: partial(make_provider, providers.part(name), partial(make, context))
                for name, make in providers.items()
            },
        ),
        client_of=context.client_of,
        reader_environment=context.child_environment,
        on_close=context.closing,
    )


def _make_kb(context: PluginContext) -> Handler:
    from groundhook.handlers.kb.opening import make_kb

    embedders = Registry[Callable[[EmbeddingSpec], Embedder]]("embedding provider")
    for name, make in context.plugins.embedders.items():
        part = context.plugins.embedders.part(name)
        embedders.add(name, partial(_make_embedder, part, make, context))
    readers = context.plugins.readers
    kb = make_kb(
        context.state,
        context.collections,
        embedders,
        context.settings.kb_storage,
        context.settings.qdrant,
        readers={name: named_reader(readers.part(name), read) for name, read in readers.items()},
        reader_environment=context.child_environment,
    )
    context.closing(kb.aclose)
    return kb


def _make_db(context: PluginContext) -> Handler:
    from groundhook.handlers.db.database import Database, DatabaseAddress

    addresses = {
        name: DatabaseAddress(each.url, each.timeout_ms, each.connections, each.result_kb)
        for name, each in context.databases.items()
    }
    database = Database(addresses, context.models)
    context.closing(database.close)
    return database


def _make_tavily(_: PluginContext) -> WebProvider:
    from groundhook.handlers.web.providers.tavily import TAVILY

    return TAVILY


def _make_serper(_: PluginContext) -> WebProvider:
    from groundhook.handlers.web.providers.serper import SERPER

    return SERPER


def _make_serpapi(_: PluginContext) -> WebProvider:
    from groundhook.handlers.web.providers.serpapi import SERPAPI

    return SERPAPI


def _make_searxng(_: PluginContext) -> WebProvider:
    from groundhook.handlers.web.providers.searxng import SEARXNG

    return SEARXNG


# ---------------------------------------------------------------------------------------- rerankers


def _make_score_reranker(_: PluginContext) -> Reranker:
    from groundhook.rerankers.score import ScoreReranker

    return ScoreReranker()


def _make_model_reranker(context: PluginContext) -> Reranker:
    from groundhook.rerankers.model import ModelReranker, rerank_providers

    return ModelReranker(context.environment, rerank_providers(), context.closing, context.root)


def _make_delegated_reranker(kind: str, _: PluginContext) -> Reranker:
    from groundhook.rerankers.delegated import DelegatedReranker

    return DelegatedReranker("agent" if kind == "agent" else "mcp")


# ----------------------------------------------------------------------------------------- toolkits


def _make_catalogue(spec: ToolkitSpec, context: PluginContext) -> Toolkit:
    from groundhook.toolkits.catalogue.kit import CatalogueToolkit

    return CatalogueToolkit(
        spec,
        client_of=context.client_of,
        now=context.now,
        synced=partial(context.synced, spec.id),
    )


def _make_documents(spec: ToolkitSpec, context: PluginContext) -> Toolkit:
    from groundhook.toolkits.documents.kit import DocumentsToolkit

    return DocumentsToolkit(spec, context.client_of, context.embedder(EmbeddingSpec()))


def _make_learning(spec: ToolkitSpec, context: PluginContext) -> Toolkit:
    from groundhook.toolkits.learning.kit import LearningToolkit

    return LearningToolkit(spec, context.collections)


def _make_memory(spec: ToolkitSpec, context: PluginContext) -> Toolkit:
    from groundhook.toolkits.memory.kit import MemoryToolkit

    return MemoryToolkit(spec, context.collections)


# --------------------------------------------------------------------------------------- connectors


def _make_openai(spec: ConnectorSpec, _: PluginContext) -> Connector:
    from groundhook.host.llm.openai import OpenAIConnector

    return OpenAIConnector(spec)


def _make_anthropic(spec: ConnectorSpec, _: PluginContext) -> Connector:
    from groundhook.host.llm.anthropic import AnthropicConnector

    return AnthropicConnector(spec)


def _make_extractive(_: ConnectorSpec, __: PluginContext) -> Connector:
    from groundhook.host.llm.extractive import ExtractiveConnector

    return ExtractiveConnector()


def _make_scripted(spec: ConnectorSpec, _: PluginContext) -> Connector:
    from groundhook.host.llm.scripted import ScriptedConnector

    return ScriptedConnector(spec)


# ---------------------------------------------------------------------------------------- embedders


def _make_embedder(
    part: str,
    make: Callable[[EmbeddingSpec, PluginContext], Embedder],
    context: PluginContext,
    spec: EmbeddingSpec,
) -> Embedder:
    return make_part(part, EMBEDDER, partial(make, spec, context))


def _make_builtin_embedder(spec: EmbeddingSpec, context: PluginContext) -> Embedder:
    from groundhook.handlers.kb.embedders.builtin import builtin

    return builtin(spec, small_engine=context.settings.kb_storage.small_embedder)


def _make_hash_embedder(spec: EmbeddingSpec, _: PluginContext) -> Embedder:
    from groundhook.handlers.kb.embed import HashEmbedder

    return HashEmbedder(spec)


def _make_onnx_embedder(spec: EmbeddingSpec, context: PluginContext) -> Embedder:
    from groundhook.handlers.kb.embedders.onnx import own_model

    return own_model(context.root, spec)


def _make_service_embedder(name: str, spec: EmbeddingSpec, context: PluginContext) -> Embedder:
    from groundhook.handlers.kb.embedders.providers import service

    settings = context.settings.embedders.get(name, EmbedderSettings())
    return service(name, settings, context.environment, spec)
