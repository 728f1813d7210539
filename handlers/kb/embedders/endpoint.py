"""Any OpenAI-compatible `/embeddings` endpoint, over plain HTTP.

POST {host}/embeddings {model, input: [text], encoding_format: "float", dimensions?} with a bearer
key → {data: [{index, embedding}]}. The `openai` SDK is not used: only the layer of language models
may import it, it adds retries of its own, and it requests an encoding that many compatible servers
lack.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from groundhook.core.error_bodies import UNCOMPRESSED, shorten_error
from groundhook.core.json_text import NotJson, count_values, read_json
from groundhook.core.retry_after import retry_after_s
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
    import httpx2


MOST_NUMBERS = 8192  # of a vector of the largest models
LARGEST_VECTOR = 256 * 1024  # bytes of JSON; a number has 20 characters
MOST_KEYS = 50  # of the entry of a vector, and of the answer


class EmbeddingEndpoint:
    """A `Service`. `prefixes` precede questions and documents, for models that were trained with
    them; `sized`: requests contain `dimensions`."""

    in_context = False

    def __init__(
        self,
        access: EmbedderAccess,
        *,
        model: str,
        dimensions: int,
        sized: bool,
        prefixes: Mapping[InputKind, str],
    ) -> None:
        self._access = access
        self._model = model
        self._dimensions = dimensions
        self._size = {"dimensions": dimensions} if sized else {}
        self._prefixes = prefixes
        self._client: httpx2.AsyncClient | None = None

    async def embed(self, texts: Sequence[str], kind: InputKind, timeout_s: float, /) -> Vectors:
        import httpx2

        prefix = self._prefixes.get(kind, "")
        body = {
            "model": self._model,
            "input": [prefix + text for text in texts],
            "encoding_format": "float",
            **self._size,
        }
        try:
            async with self._open_client().stream(
                "POST",
                f"{self._access.host.rstrip('/')}/embeddings",
                content=json.dumps(body).encode(),
                timeout=timeout_s,
            ) as response:
                content = await self._read_bounded(response, LARGEST_VECTOR * (len(texts) + 1))
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as exc:
            raise EmbeddingRequestFailed(0, one_line(exc) or exc.__class__.__name__) from exc
        if response.status_code != 200:
            raise EmbeddingRequestFailed(
                response.status_code, _error_text(content), retry_after_s(response.headers)
            )
        # For a few texts, larger vectors than are expected are read, since the error about their
        # size says what to do.
        if count_values(content) > most_values(len(texts), self._dimensions):
            what = f"far more values than {len(texts)} vectors of {self._dimensions} numbers have"
            raise malformed_error(self._access, what)
        try:
            answer = read_json(content)
        except NotJson as exc:
            kind_of = response.headers.get("content-type", "").partition(";")[0].strip() or "text"
            raise malformed_error(self._access, f"{kind_of} that is not JSON") from exc
        return vectors(answer, self._access)

    async def _read_bounded(self, response: httpx2.Response, largest: int) -> bytes:
        """Return the body. Raises SourceMalformed beyond `largest` bytes."""
        body = bytearray()
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > largest:
                raise malformed_error(self._access, f"more than {largest // 1024} kB")
        return bytes(body)

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    def _open_client(self) -> httpx2.AsyncClient:
        if self._client is None:
            import httpx2  # takes 0.16 s: not before it is needed

            headers = {"content-type": "application/json", **UNCOMPRESSED, **self._access.headers}
            if self._access.key:
                headers["authorization"] = f"Bearer {self._access.key}"
            self._client = httpx2.AsyncClient(
                headers=headers, event_hooks={"response": [shorten_error]}
            )
        return self._client


def most_values(vectors: int, dimensions: int) -> int:
    """Return the most values that are read of an answer: more would hold up everything else."""
    return max(MOST_NUMBERS, vectors * 2 * dimensions) + (vectors + 1) * MOST_KEYS


def vectors(answer: Any, access: EmbedderAccess) -> Vectors:
    """Return the vectors of an answer in the order of the texts, which the answer need not have.
    Raises SourceMalformed."""
    with translate_malformed(access):
        rows = answer["data"]
        if sorted(row["index"] for row in rows) != list(range(len(rows))):
            raise ValueError("the indexes are not those of the texts")
        return [
            [float(value) for value in row["embedding"]]
            for row in sorted(rows, key=lambda row: row["index"])
        ]


def _error_text(body: bytes) -> str:
    """Return the reason in an error response: OpenAI's `error.message`, `detail` or `message` of
    other servers, or plain text."""
    try:
        answer = read_json(body)
    except NotJson:
        text = body.decode(errors="replace")
        return "" if text.lstrip().startswith("<") else one_line(text)
    if isinstance(answer, Mapping):
        error = answer.get("error")
        inner = error.get("message") if isinstance(error, Mapping) else error
        return one_line(inner or answer.get("detail") or answer.get("message"))
    return one_line(answer)
