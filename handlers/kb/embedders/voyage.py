"""Voyage AI, with its own client (`voyageai`), which is imported when the first text is embedded.

`input_type` distinguishes questions and documents; the service cuts texts that exceed the model's
window (`truncation`). A model whose name begins with `voyage-context` embeds the passages of a
document together, and each vector depends on its neighbours. The client has no total deadline, and
its exceptions can raise in `str()`: only their fields are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from groundhook.core.extras import extra, import_aside
from groundhook.core.retry_after import retry_after_s
from groundhook.core.voyage_answers import AnswerTooLarge, bounded_answers
from groundhook.handlers.kb.embedders.endpoint import LARGEST_VECTOR, most_values
from groundhook.handlers.kb.embedders.service import (
    EmbedderAccess,
    EmbeddingRequestFailed,
    InputKind,
    Vectors,
    malformed_error,
    one_line,
    translate_malformed,
)

if TYPE_CHECKING:
    from voyageai.client_async import AsyncClient


class VoyageEmbeddings:
    """A `Service`. `in_context`: the texts of a call are the passages of one document."""

    def __init__(self, access: EmbedderAccess, *, model: str, dimensions: int, sized: bool) -> None:
        self._access = access
        self._model = model
        self._dimensions, self._sized = dimensions, sized
        self.in_context = model.startswith("voyage-context")

    async def embed(self, texts: Sequence[str], kind: InputKind, timeout_s: float, /) -> Vectors:
        await import_aside("voyageai.client_async")
        if self.in_context:
            inputs = [list(texts)] if kind == "document" else [[text] for text in texts]
            return [
                vector
                for document in await self._contextual(inputs, kind, timeout_s)
                for vector in document
            ]
        client = self._new_client(timeout_s)
        with _translating_errors(self._access):
            async with self._bounded(len(texts)):
                answer = await client.embed(
                    list(texts),
                    model=self._model,
                    input_type=kind,
                    truncation=True,
                    output_dimension=self._dimensions if self._sized else None,
                )
            return [_floats(vector) for vector in answer.embeddings]

    async def aclose(self) -> None:
        """Do nothing: the client opens a connection for each request and keeps none."""

    async def _contextual(
        self, documents: list[list[str]], kind: InputKind, timeout_s: float
    ) -> list[Vectors]:
        client = self._new_client(timeout_s)
        with _translating_errors(self._access):
            async with self._bounded(sum(map(len, documents))):
                answer = await client.contextualized_embed(
                    documents,
                    model=self._model,
                    input_type=kind,
                    output_dimension=self._dimensions if self._sized else None,
                )
            return [[_floats(vector) for vector in result.embeddings] for result in answer.results]

    def _bounded(self, texts: int) -> AbstractAsyncContextManager[None]:
        return bounded_answers(LARGEST_VECTOR * (texts + 1), most_values(texts, self._dimensions))

    def _new_client(self, timeout_s: float) -> AsyncClient:
        """Return a new client, since the timeout is set in the constructor; making one is cheap."""
        with extra("voyage", "embedding with Voyage"):
            from voyageai.client_async import AsyncClient  # takes 0.4 s: not before it is needed
        return AsyncClient(
            api_key=self._access.key, timeout=timeout_s, base_url=self._access.host.rstrip("/")
        )


@contextmanager
def _translating_errors(access: EmbedderAccess) -> Iterator[None]:
    """Raise RequestFailed and SourceMalformed for the errors of the client."""
    import aiohttp
    import voyageai.error as errors

    try:
        with translate_malformed(access):
            yield
    except AnswerTooLarge as exc:
        raise malformed_error(access, str(exc)) from exc
    except (errors.APIConnectionError, errors.Timeout, aiohttp.ClientError) as exc:
        cause = exc.__cause__ or exc
        raise EmbeddingRequestFailed(0, one_line(cause) or cause.__class__.__name__) from exc
    except errors.VoyageError as exc:
        status = exc.http_status or 0
        if status == 200:
            with translate_malformed(access):
                raise ValueError("not JSON") from exc
        headers = {str(name).lower(): str(value) for name, value in dict(exc.headers or {}).items()}
        raise EmbeddingRequestFailed(status, _error_text(exc), retry_after_s(headers)) from exc


def _error_text(exc: Any) -> str:
    """Return the reason that the service sent; the client's own message is less precise."""
    body = exc.json_body
    detail = body.get("detail") if isinstance(body, dict) else None
    return one_line(detail if isinstance(detail, str) else "")


def _floats(vector: Any) -> list[float]:
    """Return a vector as floats: the client decodes base64 to an array type of its own."""
    return [float(value) for value in vector]
