"""The endpoints in the shapes of OpenAI, a part of `table.ENDPOINTS`."""

from __future__ import annotations

from groundhook.host.server.api import embeddings as embeddings_api
from groundhook.host.server.api import openai as openai_api
from groundhook.host.server.api import responses as responses_api
from groundhook.host.server.api.embeddings import EmbeddingsRequest
from groundhook.host.server.api.openai import ChatRequest
from groundhook.host.server.api.responses import ResponseRequest
from groundhook.host.server.serving import Endpoint

OPENAI_ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path="/v1/models",
        handler=openai_api.models,
        part="openai",
        about="The assistants, as OpenAI lists models.",
        scope="chat",
        shape="openai",
    ),
    Endpoint(
        method="GET",
        path="/v1/models/{model:path}",
        handler=openai_api.model,
        part="openai",
        about="One assistant, as a model.",
        scope="chat",
        shape="openai",
    ),
    Endpoint(
        method="POST",
        path="/v1/chat/completions",
        handler=openai_api.chat_completions,
        part="openai",
        about="A turn as OpenAI's chat completion, streamed or whole.",
        scope="chat",
        shape="openai",
        body=ChatRequest,
    ),
    Endpoint(
        method="POST",
        path="/v1/responses",
        handler=responses_api.create,
        part="openai",
        about="A turn as OpenAI's response, streamed or whole.",
        scope="chat",
        shape="openai",
        body=ResponseRequest,
    ),
    Endpoint(
        method="GET",
        path="/v1/responses/{response}",
        handler=responses_api.retrieve,
        part="openai",
        about="A response by its id, as far as it is.",
        scope="chat",
        shape="openai",
        query=(
            ("stream", "`true`: the response as its events"),
            ("starting_after", "The `sequence_number` of the last event that the client has"),
        ),
    ),
    Endpoint(
        method="POST",
        path="/v1/responses/{response}/cancel",
        handler=responses_api.cancel,
        part="openai",
        about="Stop a response, and wait for its end; its text so far remains.",
        scope="chat",
        shape="openai",
    ),
    Endpoint(
        method="POST",
        path="/v1/embeddings",
        handler=embeddings_api.embeddings,
        part="openai",
        about="Vectors of texts, by the app's embedding model.",
        scope="search",
        shape="openai",
        body=EmbeddingsRequest,
    ),
    Endpoint(
        method="POST",
        path="/v1/completions",
        handler=embeddings_api.completions,
        part="openai",
        about="Refused: assistants answer chats, at `/v1/chat/completions`.",
        scope="chat",
        shape="openai",
    ),
)
