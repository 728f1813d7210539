"""Failures of rerank services: each is an error that says what happened and what to do, within the
deadline."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from groundhook.core.errors import RerankError
from groundhook.core.settings import RerankSettings
from groundhook.rerankers.endpoint import rerank_url
from groundhook.rerankers.model import choose_provider, rerank_providers
from tests.loopback.server import Cut, Hang, Html, Json, Loopback, Reply, Trickle
from tests.rerankers.conftest import KEYS, PATHS, PROVIDERS, body, items, options_of, scope_with
from tests.rerankers.model_reranker import open_model_reranker


async def rank(
    name: str,
    loopback: Loopback,
    *answers: Any,
    environment: Mapping[str, str] = KEYS,
    **options: Any,
) -> list[tuple[int, float]]:
    loopback.on(PATHS[name], *answers)
    async with open_model_reranker(environment) as reranker:
        given = options_of(name, loopback, **options)
        return [
            (each.index, each.score)
            for each in await reranker.rerank("question", items(2), given, scope_with())
        ]


@pytest.mark.parametrize("name", PROVIDERS)
async def test_each_provider_receives_its_own_request_format(name: str, loopback: Loopback) -> None:
    key: dict[str, Any] = {} if name in ("cohere", "voyage") else {"api_key_env": "OWN_KEY"}
    assert await rank(
        name, loopback, Json(body(name, [(1, 0.8), (0, 0.2)])), model="m1", **key
    ) == [(1, 0.8), (0, 0.2)]
    (requested,) = loopback.requests
    texts = ["t0\ncontent 0", "t1\ncontent 1"]
    bodies: dict[str, dict[str, Any]] = {
        "cohere": {"model": "m1", "query": "question", "documents": texts},
        "voyage": {
            "model": "m1",
            "query": "question",
            "documents": texts,
            "top_k": None,
            "truncation": True,
        },
        "endpoint": {
            "model": "m1",
            "query": "question",
            "documents": texts,
            "return_documents": False,
        },
        "tei": {"query": "question", "texts": texts, "truncate": True},
    }
    assert {
        key: value for key, value in requested.json.items() if key not in ("input_type",)
    } == bodies[name]
    assert (requested.method, requested.path) == ("POST", PATHS[name])
    assert requested.headers["authorization"] == f"Bearer {KEYS[asked_key(name)]}"


def asked_key(name: str) -> str:
    return {"cohere": "COHERE_API_KEY", "voyage": "VOYAGE_API_KEY"}.get(name, "OWN_KEY")


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (Json({"message": "bad key", "detail": "bad key"}, 401), "refused the key (401): bad key"),
        (
            Json({"message": "slow down", "detail": "slow down"}, 429, Retry_After="3600"),
            "received too many requests (429): slow down",
        ),
        (
            Json({"message": "too long", "detail": "too long"}, 400),
            "refused the request (400): too long",
        ),
        (Json({"message": "batch", "detail": "batch"}, 413), "refused the request (413)"),
        (Html(status=500), "failed (500)"),
        (Html(), "is not a ranking"),
        (Reply(b'{"results": [{"ind'), "is not a ranking"),
        (Reply(b"[" * 5000 + b"]" * 5000), "is not a ranking"),
        (Reply(b'{"results": [' + b"9" * 5000 + b"]}"), "is not a ranking"),
        (Json({"object": "list"}), "is not a ranking"),
        (Cut(), "cannot be reached at http://127.0.0.1:"),
        (Cut(b'{"results": '), ""),
    ],
    ids=[
        "401",
        "429",
        "400",
        "413",
        "500",
        "login-page",
        "malformed",
        "deep",
        "digits",
        "wrong-shape",
        "closed",
        "cut",
    ],
)
# voyageai's own.
@pytest.mark.filterwarnings("ignore:The 'warn' method is deprecated:DeprecationWarning")
async def test_a_failure_says_what_happened(
    name: str, loopback: Loopback, answer: Any, problem: str
) -> None:
    with pytest.raises(RerankError) as failed:
        await rank(name, loopback, answer)
    assert problem in str(failed.value)
    assert "key-" not in str(failed.value)


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_transient_failure_is_retried_once(
    name: str, loopback: Loopback, status: int
) -> None:
    good = Json(body(name, [(0, 0.5)]))
    assert await rank(name, loopback, Json({}, status, Retry_After="0"), good) == [(0, 0.5)]
    assert len(loopback.requests) == 2


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize(("status", "calls"), [(401, 1), (400, 1), (500, 2)])
async def test_a_permanent_failure_is_not_retried(
    name: str, loopback: Loopback, status: int, calls: int
) -> None:
    with pytest.raises(RerankError):
        await rank(name, loopback, Json({}, status))
    assert len(loopback.requests) == calls


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize("how", ["hangs", "trickles"])
async def test_the_deadline_holds_whatever_the_client_does(
    name: str, loopback: Loopback, how: str
) -> None:
    await rank(name, loopback, Json(body(name, [(0, 0.5)])))  # the client is imported
    endless = Hang() if how == "hangs" else Trickle(b" " * 10_000)
    with (
        anyio.fail_after(60),
        pytest.raises(RerankError, match=f"'{name}' did not answer within 300 ms"),
    ):
        await rank(name, loopback, endless, timeout_ms=300)


@pytest.mark.parametrize("name", ["endpoint", "cohere", "voyage"])
async def test_an_oversized_answer_is_an_error(loopback: Loopback, name: str) -> None:
    with pytest.raises(RerankError, match="answered with more than 4096 kB"):
        await rank(name, loopback, Reply(b" " * 5 * 1024 * 1024))


@pytest.mark.parametrize("name", ["cohere", "voyage"])
async def test_an_answer_of_far_more_values_than_a_ranking_has_is_an_error(
    loopback: Loopback, name: str
) -> None:
    rows = b'{"results": [' + b'{"index":0},' * 60_000 + b"0]}"
    with pytest.raises(RerankError, match=f"'{name}' answered with far more values than"):
        await rank(name, loopback, Reply(rows))


# ------------------------------------------------------------------------------- choosing a
# provider


@pytest.mark.parametrize(
    ("options", "environment", "name"),
    [
        ({"provider": "voyage"}, KEYS, "voyage"),
        ({"host": "http://127.0.0.1:1"}, KEYS, "endpoint"),
        ({"model": "rerank-v3.5"}, {}, "cohere"),
        ({"model": "rerank-2.5-lite"}, KEYS, "voyage"),
        ({}, {"VOYAGE_API_KEY": "x"}, "voyage"),
        ({}, KEYS, "cohere"),
        ({}, {"CO_API_KEY": "x"}, "cohere"),
    ],
)
def test_auto_takes_what_the_settings_point_to(
    options: dict[str, Any], environment: Mapping[str, str], name: str
) -> None:
    assert choose_provider(RerankSettings(**options), environment, rerank_providers()) == name


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            {},
            (
                "no rerank provider is configured (set COHERE_API_KEY or VOYAGE_API_KEY, or set"
                " search.rerank.host to an endpoint's"
            ),
        ),
        (
            {"provider": "cohere"},
            (
                "the rerank provider 'cohere' has no key (set the environment variable COHERE_API_KEY or"
                " CO_API_KEY)"
            ),
        ),
        (
            {"provider": "voyage", "api_key_env": "MINE"},
            "the rerank provider 'voyage' has no key (set the environment variable MINE)",
        ),
        (
            {"provider": "tei"},
            "the rerank provider 'tei' needs an address (set search.rerank.host)",
        ),
    ],
)
async def test_a_missing_setting_is_named(options: dict[str, Any], problem: str) -> None:
    async with open_model_reranker({}) as reranker:
        with pytest.raises(RerankError) as failed:
            await reranker.rerank("q", items(1), RerankSettings(**options), scope_with())
    assert problem in str(failed.value)


def test_an_address_may_end_with_the_path_or_not() -> None:
    assert rerank_url("http://h/v1/") == rerank_url("http://h/v1/rerank") == "http://h/v1/rerank"


def test_clients_are_imported_when_they_are_first_used() -> None:
    script = "import sys, groundhook.rerankers.model; "
    script += "print([n for n in ('cohere', 'voyageai', 'httpx', 'httpx2') if n in sys.modules])"
    assert (
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )
