"""Endpoints of OpenAI's API beside answers: vectors of texts, and completions without a chat, which
are refused."""

from __future__ import annotations

import base64
import struct
from typing import Any, Literal

from pydantic import Field
from starlette.responses import JSONResponse, Response

from groundhook.core.errors import NotSupported
from groundhook.core.types.base import Few, Value
from groundhook.core.types.collection_spec import EmbeddingSpec
from groundhook.host.server import request_body
from groundhook.host.server.problems import Refused, WrongRequest
from groundhook.host.server.serving import Call

MOST_TEXTS = 256
DEFAULT = "default"


class EmbeddingsRequest(Value):
    """The keys of a request for embeddings that are read."""

    model: str = Field(
        max_length=1000, description="`default`, or the name of the app's embedding model"
    )
    input: str | Few[tuple[Any, ...]] = Field(description="A text, or a list of texts")
    encoding_format: Literal["float", "base64"] | None = Field(
        default=None, description="`float` or `base64`"
    )
    dimensions: int | None = Field(default=None, description="Only those of the model")
    input_type: str = Field(
        default="document",
        max_length=100,
        description="`query` or `document`: models embed a question in another way than a text",
    )


async def embeddings(call: Call) -> Response:
    """Return the vectors of texts."""
    wanted, _ = request_body.validate_body(EmbeddingsRequest, await call.json())
    texts = _read_texts(wanted.input)
    embedder = call.serving.host.kb.embedder(EmbeddingSpec())
    if wanted.model not in (DEFAULT, embedder.model):
        raise Refused(
            "unknown_name",
            f"there is no embedding model {wanted.model[:80]!r}; there are {DEFAULT!r} and"
            f" {embedder.model!r}",
        )
    if wanted.dimensions not in (None, embedder.dimensions):
        raise NotSupported(f"dimensions: the vectors have {embedder.dimensions}")
    async with call.serving.admitted(call.caller):
        if wanted.input_type.endswith("query"):
            vectors = [await embedder.embed_query(text) for text in texts]
        else:
            vectors = await embedder.embed_documents(texts)
    data = [
        {"object": "embedding", "index": n, "embedding": _encode(vector, wanted.encoding_format)}
        for n, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": 0, "total_tokens": 0}  # not counted
    return JSONResponse({"object": "list", "data": data, "model": embedder.model, "usage": usage})


def _read_texts(given: Any) -> list[str]:
    texts = [given] if isinstance(given, str) else list(given)
    if not 0 < len(texts) <= MOST_TEXTS:
        raise WrongRequest(f"input: between 1 and {MOST_TEXTS} texts are accepted")
    for n, text in enumerate(texts):
        if not isinstance(text, str):
            raise WrongRequest(
                f"input[{n}]: should be text; tokens are not accepted",
                hint="LangChain sends text with check_embedding_ctx_length=False",
            )
        if not text:
            raise WrongRequest(f"input[{n}]: the text is empty")
    return texts


def _encode(vector: list[float], form: str | None) -> Any:
    if form != "base64":
        return vector
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


async def completions(call: Call) -> Response:
    """Refuse a completion without a chat."""
    raise NotSupported(
        "assistants answer chats: use POST /v1/chat/completions or POST /v1/responses",
        hint="LlamaIndex does with is_chat_model=True",
    )
