"""Embedding services through their real clients: their requests, and what each of their
failures says."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.errors import (
    ConfigError,
    HostError,
    SourceError,
    SourceMalformed,
    SourceNotConfigured,
    SourceRateLimited,
    SourceRefused,
    SourceTimeout,
)
from groundhook.handlers.kb.embed import embedding_tokens
from groundhook.handlers.kb.embedders import endpoint
from groundhook.handlers.kb.embedders.endpoint import LARGEST_VECTOR
from groundhook.handlers.kb.embedders.service import EmbeddingLimits, make_batches, shorten_text
from tests.kb.embedders.conftest import SERVICES, Makes, factories
from tests.keys import key
from tests.loopback.embeddings import SIZE, openai_answer, voyage_answer
from tests.loopback.server import Answer, Cut, Hang, Html, Json, Loopback, Reads, Reply, Trickle

ANSWERS = {"openai": Reads(openai_answer), "voyage": Reads(voyage_answer)}
REFUSALS = {
    "openai": {"error": {"message": "a reason of the service"}},
    "voyage": {"detail": "a reason of the service"},
}

each = pytest.mark.parametrize("service", SERVICES)


def refusal(service: str, status: int, **headers: str) -> Reply:
    return Json(REFUSALS[service], status, **headers)


# ------------------------------------------------------------------------------------ requests


@each
async def test_a_service_gets_the_key_and_the_kind_of_text(
    server: Loopback, makes: Makes, service: str
) -> None:
    model = makes(service, query_prefix="query: ", document_prefix="passage: ")
    await model.embed_query("where?")
    await model.embed_documents(["here"])
    question, document = (requested.json for requested in server.requests)
    assert {requested.headers["authorization"] for requested in server.requests} == {
        f"Bearer {key(service)}"
    }
    if service == "openai":
        assert [question["input"], document["input"]] == [["query: where?"], ["passage: here"]]
        assert "dimensions" not in question
    else:
        assert [question["input_type"], document["input_type"]] == ["query", "document"]
        assert question["truncation"] is True
        assert question["model"] == "voyage-3.5"


@each
async def test_a_declared_size_is_requested(server: Loopback, makes: Makes, service: str) -> None:
    assert len(await makes(service, dimensions=256).embed_query("where?")) == 256
    assert 256 in (
        server.requests[0].json.get("dimensions"),
        server.requests[0].json.get("output_dimension"),
    )


@each
async def test_many_texts_are_cut_into_requests_and_come_back_in_order(
    server: Loopback, makes: Makes, service: str
) -> None:
    texts = [f"text number {number}" for number in range(50)]
    model = makes(service, batch_texts=7, dimensions=512)
    assert await model.embed_documents(texts) == await makes(
        service, dimensions=512
    ).embed_documents(texts)
    sizes = [len(requested.json["input"]) for requested in server.requests]
    assert sorted(sizes) == [1, *[7] * 7, 50]


async def test_a_context_model_is_given_the_passages_of_a_document_together(
    server: Loopback, makes: Makes
) -> None:
    model = makes("voyage", model="voyage-context-3")
    await model.embed_documents(["first", "second"])
    await model.embed_query("where?")
    assert [requested.json["inputs"] for requested in server.requests] == [
        [["first", "second"]],
        [["where?"]],
    ]
    assert {requested.path for requested in server.requests} == {"/voyage/contextualizedembeddings"}


@given(st.lists(st.text(max_size=60), max_size=30), st.integers(1, 5), st.integers(1, 30))
def test_requests_hold_what_they_may_and_lose_nothing(
    texts: list[str], most: int, tokens: int
) -> None:
    runs = list(make_batches(texts, EmbeddingLimits(texts=most, tokens=tokens, text_bytes=40)))
    assert [text for run in runs for text in run] == texts
    for run in runs:
        assert 0 < len(run) <= most
        assert len(run) == 1 or sum(embedding_tokens(text[:40]) for text in run) <= tokens


@given(st.text(), st.integers(4, 50))
def test_a_text_is_cut_between_characters_and_never_sent_empty(text: str, most: int) -> None:
    sent = shorten_text(text, most)
    assert sent.strip()
    assert len(sent.encode()) <= max(most, 4)
    assert text.encode(errors="replace").decode().startswith(sent) or sent == "-"


# ---------------------------------------------------------------------------------- what goes wrong


@each
async def test_without_a_key_nothing_is_sent_and_the_variable_is_named(
    server: Loopback, makes: Makes, service: str
) -> None:
    model = makes(service, environment={}, **({"host": ""} if service == "openai" else {}))
    with pytest.raises(
        SourceNotConfigured,
        match=f"'{service}' has no key.*{service.upper()}_API_KEY.*embedders.{service}.key",
    ):
        await model.embed_query("where?")
    assert server.requests == []


FAILURES: dict[str, tuple[Any, type[HostError], str]] = {
    "key refused": (
        lambda service: refusal(service, 401),
        SourceRefused,
        r"refused the key \(401\): a reason of the service",
    ),
    "forbidden": (
        lambda service: refusal(service, 403),
        SourceRefused,
        r"refused the key \(403\): a reason of the service",
    ),
    "rate limit": (
        lambda service: refusal(service, 429, retry_after="0"),
        SourceRateLimited,
        r"too many requests \(429\): a reason of the service",
    ),
    "no such model": (
        lambda service: refusal(service, 404),
        SourceRefused,
        r"found no such model or path \(404\).*embedding.model",
    ),
    "bad request": (
        lambda service: refusal(service, 400),
        SourceRefused,
        r"refused the request \(400\): a reason of the service",
    ),
    "failure": (lambda service: Json({}, 503, retry_after="0"), SourceError, r"failed \(503\)"),
    "a page": (lambda service: Html(), SourceMalformed, r"embedders\.\w+\.host is the base URL"),
    "another shape": (
        lambda service: Json({"hello": 1}),
        SourceMalformed,
        "another shape than documented",
    ),
    "deep": (
        lambda service: Reply(b"[" * 5000 + b"]" * 5000),
        SourceMalformed,
        "not JSON|another shape than documented",
    ),
    "a list": (lambda service: Json([1, 2]), SourceMalformed, "another shape than documented"),
    "fewer vectors": (
        lambda service: Json({"data": [], "usage": {"total_tokens": 1}}),
        SourceMalformed,
        "0 vectors for 1 texts",
    ),
    "other sizes": (
        lambda service: Json(
            {"data": [{"index": 0, "embedding": [1.0, 2.0]}], "usage": {"total_tokens": 1}}
        ),
        SourceMalformed,
        r"vectors of 2 dimensions.*embedding\.dimensions: 2",
    ),
    "no direction": (
        lambda service: Json(
            {"data": [{"index": 0, "embedding": [0.0] * SIZE}], "usage": {"total_tokens": 1}}
        ),
        SourceMalformed,
        "no direction",
    ),
}


@each
@pytest.mark.parametrize("failure", FAILURES)
async def test_each_failure_says_what_happened_and_what_to_do(
    server: Loopback, makes: Makes, service: str, failure: str
) -> None:
    answer, error, words = FAILURES[failure]
    server.on(f"/{service}/embeddings", answer(service))
    with pytest.raises(error, match=words) as raised:
        await makes(service, retries=1, dimensions=SIZE).embed_documents(["here"])
    assert type(raised.value) is error
    assert f"'{service}'" in str(raised.value)


@pytest.mark.parametrize("texts", [1, 3])
async def test_an_answer_is_read_as_far_as_so_many_vectors_can_be(
    server: Loopback, makes: Makes, texts: int
) -> None:
    most = LARGEST_VECTOR * (texts + 1)
    server.on("/openai/embeddings", Html(" " * (most + 10 * LARGEST_VECTOR)))
    with pytest.raises(SourceMalformed, match=f"more than {most // 1024} kB"):
        await makes("openai", retries=0).embed_documents(["here"] * texts)


@pytest.mark.parametrize("unit", [" ", "[],", "0,", '{"a":0},'])
async def test_an_answer_of_voyage_is_bounded_as_the_others(
    server: Loopback, makes: Makes, unit: str
) -> None:
    body = '{"data": [' + unit * (5 * LARGEST_VECTOR // len(unit)) + "0]}"
    server.on("/voyage/embeddings", Html(body))
    server.on("/voyage/contextualizedembeddings", Html(body))
    words = f"more than {2 * LARGEST_VECTOR // 1024} kB"
    for model in ("", "voyage-context-3"):
        with pytest.raises(SourceMalformed, match=f"'voyage' answered with {words}"):
            await makes("voyage", model=model, retries=0).embed_documents(["here"])
    server.on("/voyage/embeddings", Html(body[:LARGEST_VECTOR]))
    expected = "is|shape" if unit == " " else "far more values than were asked for"
    with pytest.raises(SourceMalformed, match=expected):
        await makes("voyage", retries=0).embed_documents(["here"])


async def test_a_request_has_no_more_texts_than_an_answer_may_have_vectors_for(
    server: Loopback, makes: Makes
) -> None:
    model = makes("openai", batch_texts=5000, batch_tokens=10**6)
    await model.embed_documents(["tea"] * 100)
    assert {len(request.json["input"]) for request in server.requests} == {85, 15}


@pytest.mark.parametrize("unit", ["[],", "0,", '{"a":0},'])
async def test_an_answer_of_more_values_than_vectors_have_is_not_parsed(
    server: Loopback, makes: Makes, unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "read_json", None)
    body = '{"data": [' + unit * (400_000 // len(unit)) + "0]}"
    server.on("/openai/embeddings", Html(body))
    with pytest.raises(SourceMalformed, match="far more values than 2 vectors of 3 numbers"):
        await makes("openai", retries=0, dimensions=3).embed_documents(["here"] * 2)


async def test_long_vectors_are_asked_for_in_smaller_requests(
    server: Loopback, makes: Makes
) -> None:
    await makes("openai", dimensions=4096).embed_documents(["here"] * 40)
    # Both are sent at once.
    assert sorted(len(sent.json["input"]) for sent in server.requests) == [8, 32]


@each
@pytest.mark.parametrize(
    "answer", [Hang(), Trickle(b'{"data": []}' * 50, pause=0.05)], ids=["silence", "trickle"]
)
async def test_a_question_waits_no_longer_than_configured(
    server: Loopback, makes: Makes, service: str, answer: Answer
) -> None:
    await makes(service).embed_query("the client is imported once")
    server.on(f"/{service}/embeddings", answer)
    with pytest.raises(SourceTimeout, match=r"within 0\.2 s.*query_timeout_ms"):
        await makes(service, query_timeout_ms=200).embed_query("where?")


@each
async def test_a_service_that_is_not_there_is_named_with_its_address(
    makes: Makes, service: str
) -> None:
    with pytest.raises(SourceError, match=r"cannot be reached at http://127\.0\.0\.1:9/v1"):
        await makes(service, host="http://127.0.0.1:9/v1", retries=0).embed_query("where?")


@each
async def test_an_answer_that_breaks_off_is_requested_again(
    server: Loopback, makes: Makes, service: str, capfd: pytest.CaptureFixture[str]
) -> None:
    server.on(f"/{service}/embeddings", Cut(), ANSWERS[service])
    assert len(await makes(service, dimensions=64).embed_query("where?")) == 64
    assert len(server.requests) == 2


@each
@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_refusal_that_may_pass_is_tried_again(
    server: Loopback, makes: Makes, service: str, status: int
) -> None:
    server.on(f"/{service}/embeddings", refusal(service, status, retry_after="0"), ANSWERS[service])
    assert len(await makes(service, dimensions=64).embed_query("where?")) == 64
    assert len(server.requests) == 2


@each
async def test_a_refusal_that_stays_is_not_tried_again(
    server: Loopback, makes: Makes, service: str
) -> None:
    server.on(f"/{service}/embeddings", refusal(service, 401), ANSWERS[service])
    with pytest.raises(SourceRefused):
        await makes(service).embed_query("where?")
    assert len(server.requests) == 1


@each
async def test_a_wait_beyond_the_deadline_is_an_error_at_once(
    server: Loopback, makes: Makes, service: str
) -> None:
    server.on(f"/{service}/embeddings", refusal(service, 429, retry_after="3600"), ANSWERS[service])
    with pytest.raises(SourceRateLimited, match="asks to wait 3600 s"):
        await makes(service).embed_documents(["here"])
    assert len(server.requests) == 1


@each
async def test_one_failed_request_ends_the_others(
    server: Loopback, makes: Makes, service: str
) -> None:
    server.on(f"/{service}/embeddings", refusal(service, 400), Hang())
    with pytest.raises(SourceRefused):
        await makes(service, batch_texts=1).embed_documents(["one", "two", "three", "four"])


# --------------------------------------------------------------------------------- what is declared


def test_a_service_of_the_app_needs_a_kind_a_model_and_a_size() -> None:
    from groundhook.core.app_settings import EmbedderSettings
    from groundhook.core.types.collection_spec import EmbeddingSpec

    with pytest.raises(ConfigError, match=r"embedders\.local.*type: openai"):
        factories({"local": EmbedderSettings(host="http://127.0.0.1:9/v1")}, {})
    with pytest.raises(ConfigError, match=r"embedders\.hash.*built-in"):
        factories({"hash": EmbedderSettings(type="openai")}, {})
    made = factories(
        {"local": EmbedderSettings(type="openai", host="http://127.0.0.1:9/v1")}, {}
    ).get("local")
    with pytest.raises(ConfigError, match=r"embedding\.model"):
        made(EmbeddingSpec(provider="local"))
    with pytest.raises(ConfigError, match=r"embedding\.dimensions"):
        made(EmbeddingSpec(provider="local", model="bge-m3"))
    assert made(EmbeddingSpec(provider="local", model="bge-m3", dimensions=1024)).dimensions == 1024


async def test_an_endpoint_of_ones_own_is_not_sent_the_key_of_openai(
    server: Loopback, makes: Makes
) -> None:
    model = makes("openai", key="", model="text-embedding-3-small", dimensions=64)
    await model.embed_query("where?")
    assert "authorization" not in server.requests[0].headers


def test_the_clients_of_services_are_not_imported_before_they_are_used() -> None:
    import subprocess

    code = "import sys, json, groundhook.host.app.host; "
    code += "print(json.dumps(sorted({'voyageai', 'aiohttp', 'httpx2'} & set(sys.modules))))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert json.loads(result) == []
