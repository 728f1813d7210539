"""From a `*.conn.yao` to a connector: the types there are, and how each is made."""

from __future__ import annotations

from collections.abc import Callable

from groundhook.host.core.ports import Connector, Embedder
from groundhook.host.core.registry import Registry
from groundhook.host.core.types.specs import ConnectorSpec
from groundhook.host.llm.extractive import ExtractiveConnector
from groundhook.host.llm.openai import OpenAIConnector
from groundhook.host.llm.scripted import ScriptedConnector

Factory = Callable[[ConnectorSpec, Embedder | None], Connector]


def connector_types() -> Registry[Factory]:
    """The types that ship with Groundhook; add others to the registry that is passed to `build`."""
    types: Registry[Factory] = Registry("connector type")
    types.add("openai", lambda spec, _: OpenAIConnector(spec))
    types.add("extractive", lambda _, embedder: ExtractiveConnector(embedder))
    types.add("scripted", lambda spec, _: ScriptedConnector(spec))
    return types


def build(
    spec: ConnectorSpec, embedder: Embedder | None = None, types: Registry[Factory] | None = None
) -> Connector:
    """The connector that `spec` describes; nothing is imported or opened until it is used.
    `embedder` serves a connector that compares meanings itself. Raises UnknownName for a type that
    is not there and ConfigError for a wrong script."""
    return (types or connector_types()).get(spec.type)(spec, embedder)
