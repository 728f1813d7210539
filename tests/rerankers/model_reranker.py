"""The reranker of `type: model` outside a host."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from groundhook.rerankers.model import ModelReranker, rerank_providers


@asynccontextmanager
async def open_model_reranker(
    environment: Mapping[str, str], root: Path = Path()
) -> AsyncIterator[ModelReranker]:
    """Open the reranker and close its connections at the end. API keys are read from `environment`;
    folders with models are below `root`."""
    async with AsyncExitStack() as stack:
        yield ModelReranker(
            environment, rerank_providers(), lambda close: stack.push_async_callback(close), root
        )
