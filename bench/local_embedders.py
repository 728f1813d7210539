"""The embedding providers that need no network, for benches that open a knowledge base without a
host."""

from __future__ import annotations

from groundhook.core.registry import Registry
from groundhook.handlers.kb.embed import EmbedderFactory, HashEmbedder
from groundhook.handlers.kb.embedders.builtin import builtin


def local_embedders() -> Registry[EmbedderFactory]:
    registry: Registry[EmbedderFactory] = Registry("embedding provider")
    registry.add("builtin", builtin)
    registry.add("hash", HashEmbedder)
    return registry
