"""The web source through its public interface, with the providers' real clients against a loopback
server."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from groundhook.core.errors import (
    DelegateError,
    SourceError,
    SourceMalformed,
    SourceNotConfigured,
    SourceRateLimited,
    SourceRefused,
    SourceTimeout,
    UnknownName,
)
from groundhook.core.settings import KeywordSettings
from groundhook.core.types.uses import Use
from tests.keys import key
from tests.loopback.server import Answer, Cut, Hang, Html, Json, Loopback, Reply, Trickle, serving
from tests.parts.web_asking import KEYS, PROVIDERS, Asking


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving() as server:
        yield server


KEYED = ("tavily", "serper", "serpapi")
GOOD: dict[str, dict[str, Any]] = {
    "tavily": {
        "query": "x",
        "results": [
            {
                "title": "Spree &amp; co",
                "url": "https://www.berlin.example/?utm_source=t",
                "content": "Berlin lies on the Spree.",
                "score": 0.91,
            },
            {
                "title": "Museums",
                "url": "https://museum.example/a",
                "content": "Many.",
                "score": 0.4,
                "published_date": "Sat, 31 Oct 2026 12:00:00 GMT",
            },
        ],
        "response_time": 0.3,
    },
    "searxng": {
        "query": "x",
        "results": [
            {
                "title": "Spree &amp; co",
                "url": "https://www.berlin.example/?utm_source=t",
                "content": "Berlin lies on the Spree.",
                "engine": "google",
                "score": 4.5,
                "publishedDate": None,
            },
            {
                "title": "Museums",
                "url": "https://museum.example/a",
                "content": "Many.",
                "score": 1.0,
                "publishedDate": "2026-10-31T00:00:00",
            },
        ],
        "unresponsive_engines": [["bing", "timeout"]],
    },
    "serpapi": {
        "search_metadata": {"id": "6750", "status": "Success", "total_time_taken": 0.87},
        "search_parameters": {"engine": "google", "q": "x", "device": "desktop"},
        "search_information": {"organic_results_state": "Results for exact spelling"},
        "organic_results": [
            {
                "position": 1,
                "title": "Spree &amp; co",
                "link": "https://www.berlin.example/?utm_source=t",
                "displayed_link": "https://www.berlin.example",
                "snippet": "Berlin lies on the Spree.",
                "snippet_highlighted_words": ["Spree"],
                "source": "berlin.example",
            },
            {
                "position": 2,
                "title": "Museums",
                "link": "https://museum.example/a",
                "snippet": "Many.",
                "date": "Oct 31, 2026",
            },
        ],
        "pagination": {"current": 1},
    },
    "serper": {
        "organic": [
            {
                "title": "Spree &amp; co",
                "link": "https://www.berlin.example/?utm_source=t",
                "snippet": "Berlin lies on the Spree.",
                "position": 1,
            },
            {
                "title": "Museums",
                "link": "https://museum.example/a",
                "snippet": "Many.",
                "position": 2,
                "date": "Oct 31, 2026",
            },
        ]
    },
}


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_pages_come_back_clean_scored_and_with_a_key(server: Loopback, provider: str) -> None:
    server.on("/search", Json(GOOD[provider]))
    found = await Asking(server, provider).search()
    first, second = found.items
    assert (first.title, first.content) == ("Spree & co", "Berlin lies on the Spree.")
    assert (first.url, first.key) == ("https://www.berlin.example/", "web:https://berlin.example")
    assert first.score == (0.91 if provider == "tavily" else 0.9)
    assert first.score > second.score
    assert (first.published, second.published) == ("", "2026-10-31")
    assert (first.citation_id, first.status, found.provider) == ("", "listed", provider)


async def test_sites_time_range_and_limit_reach_tavily(server: Loopback) -> None:
    server.on("/search", Json({"results": []}))
    await Asking(server, "tavily").search(
        "rivers", sites=["https://www.berlin.example/", "b.example"], timeRange="week", limit=3
    )
    requested = server.requests[0]
    assert requested.headers["authorization"] == f"Bearer {key('tvly')}"
    assert requested.json == {
        "query": "rivers",
        "max_results": 3,
        "include_domains": ["berlin.example", "b.example"],
        "time_range": "week",
    }


async def test_sites_time_range_and_limit_reach_serper(server: Loopback) -> None:
    server.on("/search", Json({"organic": []}))
    asking = Asking(server, "serper")
    await asking.search(
        "rivers", sites=["berlin.example", "b.example/docs"], time_range="day", limit=3
    )
    await asking.search("rivers", sites=["berlin.example"])
    assert server.requests[0].headers["x-api-key"] == key("serper")
    assert server.requests[0].json == {
        "q": "(site:berlin.example OR site:b.example/docs) rivers",
        "num": 3,
        "tbs": "qdr:d",
    }
    assert server.requests[1].json == {"q": "site:berlin.example rivers", "num": 10}


async def test_sites_time_range_limit_and_language_reach_serpapi(server: Loopback) -> None:
    server.on("/search", Json(GOOD["serpapi"]))
    await Asking(server, "serpapi").search(
        "rivers", sites=["berlin.example"], time_range="week", limit=3, language="pt-BR"
    )
    (only,) = server.requests
    assert parse_qs(urlsplit(only.path).query) == {
        "engine": ["google"],
        "output": ["json"],
        "q": ["site:berlin.example rivers"],
        "num": ["3"],
        "tbs": ["qdr:w"],
        "hl": ["pt-br"],
        "api_key": [key("serpapi")],
    }


async def test_serpapi_tells_nothing_found_from_a_search_that_failed(server: Loopback) -> None:
    nothing = {
        "search_metadata": {"status": "Success"},
        "search_information": {"organic_results_state": "Fully empty", "total_results": 0},
        "error": "Google hasn't returned any results for this query.",
    }
    server.on("/search", Json(nothing))
    assert (await Asking(server, "serpapi").search()).items == ()
    failed = {"search_metadata": {"status": "Error"}, "error": "We couldn't get valid results."}
    server.on("/search", Json(failed))
    with pytest.raises(SourceError, match="the search failed at 'serpapi': We couldn't"):
        await Asking(server, "serpapi").search()
    server.on("/search", Json({"error": "Invalid API key."}, 401))
    with pytest.raises(SourceRefused, match=r"refused the key \(401\): Invalid API key"):
        await Asking(server, "serpapi").search()


async def test_boxes_of_serpapi_come_first(server: Loopback) -> None:
    box = {"type": "organic_result", "link": "https://spree.example", "answer": "400 km"}
    graph = {
        "title": "Spree",
        "description": "A river.",
        "source": {"name": "Wiki", "link": "https://wiki.example/Spree"},
    }
    answer = {**GOOD["serpapi"], "answer_box": box, "knowledge_graph": graph}
    server.on("/search", Json(answer))
    items = (await Asking(server, "serpapi").search()).items
    assert {item.content for item in items[:2]} == {"400 km", "A river."}
    assert len(items) == 4


async def test_sites_time_range_and_language_reach_searxng_which_has_no_limit(
    server: Loopback,
) -> None:
    server.on("/search", Json(GOOD["searxng"]))
    requested: dict[str, Any] = {
        "sites": ["berlin.example"],
        "exclude_sites": ["b.example"],
        "time_range": "week",
        "language": "de",
    }
    found = await Asking(server, "searxng").search("rivers", limit=1, **requested)
    assert len(found.items) == 1
    (only,) = server.requests
    assert parse_qs(urlsplit(only.path).query) == {
        "q": ["site:berlin.example -site:b.example rivers"],
        "format": ["json"],
        "time_range": ["week"],
        "language": ["de"],
    }


async def test_searxng_without_json_says_what_to_change(server: Loopback) -> None:
    server.on("/search", Html("Forbidden", 403))
    with pytest.raises(SourceRefused, match="does not answer with JSON") as caught:
        await Asking(server, "searxng").search()
    assert "search.formats in its settings.yml" in caught.value.hint


async def test_searxng_without_any_answering_engine_is_an_error(server: Loopback) -> None:
    server.on(
        "/search",
        Json({"results": [], "unresponsive_engines": [["google", "CAPTCHA"], ["bing", "timeout"]]}),
    )
    with pytest.raises(SourceError, match=r"google \(CAPTCHA\), bing \(timeout\)"):
        await Asking(server, "searxng").search()
    server.on("/search", Json({"results": []}))
    assert (await Asking(server, "searxng").search()).items == ()


async def test_searxng_may_be_installed_below_a_path(server: Loopback) -> None:
    server.on("/search", Json(GOOD["searxng"]))
    server.on("/engine/search", Json(GOOD["searxng"]))
    found = await Asking(None, "auto", {"SEARXNG_URL": f"{server.url}/engine/"}).search()
    assert found.provider == "searxng"
    with pytest.raises(SourceNotConfigured, match=r"SEARXNG_URL, or search\.web\.host"):
        await Asking(None, "searxng", {}).search()
    with pytest.raises(SourceNotConfigured, match="the value of SEARXNG_URL is not"):
        await Asking(None, "auto", {"SEARXNG_URL": "here"}).search()


async def test_excluded_sites_and_language_reach_providers_that_support_them(
    server: Loopback,
) -> None:
    server.on("/search", Json({"organic": [], "results": []}))
    await Asking(server, "serper", exclude_sites=["x.example"], language="pt-BR").search("rivers")
    await Asking(server, "tavily", exclude_sites=["y.example"]).search(
        "rivers", exclude_sites=["www.x.example"]
    )
    assert server.requests[0].json == {"q": "-site:x.example rivers", "num": 10, "hl": "pt-br"}
    assert server.requests[1].json["exclude_domains"] == ["x.example"]


async def test_an_unsupported_option_is_a_warning(server: Loopback) -> None:
    server.on("/search", Json(GOOD["tavily"]))
    asking = Asking(server, "tavily")
    assert len((await asking.search(language="de")).items) == 2
    assert asking.warned == [
        "web_language: 'tavily' cannot search by language: results in any language are shown"
    ]


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_pages_outside_the_sites_and_beyond_the_limit_are_dropped(
    server: Loopback, provider: str
) -> None:
    server.on("/search", Json(GOOD[provider]))
    assert [
        item.title
        for item in (await Asking(server, provider).search(sites=["museum.example"])).items
    ] == ["Museums"]
    assert [item.title for item in (await Asking(server, provider).search(limit=1)).items] == [
        "Spree & co"
    ]


async def test_a_box_with_the_answer_comes_first(server: Loopback) -> None:
    box = {
        "title": "Length of the Spree",
        "answer": "400 km",
        "snippet": "The Spree is 400 km long.",
        "link": "https://spree.example",
    }
    server.on(
        "/search", Json({**GOOD["serper"], "answerBox": box, "knowledgeGraph": {"title": "Spree"}})
    )
    first, *others = (await Asking(server, "serper").search()).items
    assert (first.url, first.content) == (
        "https://spree.example",
        "400 km\nThe Spree is 400 km long.",
    )
    assert len(others) == 2


async def test_a_question_is_searched_as_keywords_and_the_trace_shows_both(
    server: Loopback,
) -> None:
    server.on("/search", Json(GOOD["tavily"]))
    asking = Asking(server)
    await asking.search("Can you tell me which rivers flow through Berlin?")
    assert server.requests[0].json["query"] == "rivers flow through Berlin"
    assert asking.nodes["keywords"].data["query"] == "rivers flow through Berlin"
    node = asking.nodes["web_search"]
    assert (node.status, node.data["provider"], node.data["results"]) == ("completed", "tavily", 2)


@pytest.mark.parametrize("provider", KEYED)
async def test_a_missing_key_names_the_variable_to_set(server: Loopback, provider: str) -> None:
    with pytest.raises(SourceNotConfigured) as caught:
        await Asking(server, provider, {}).search()
    assert f"{provider.upper()}_API_KEY" in str(caught.value)
    with pytest.raises(SourceNotConfigured, match="MY_KEY"):
        await Asking(server, provider, {}, api_key_env="MY_KEY").search()
    assert server.requests == []


async def test_auto_takes_the_first_provider_that_has_a_key(server: Loopback) -> None:
    server.on("/search", Json({**GOOD["tavily"], **GOOD["serper"]}))

    async def taken(environment: Mapping[str, str], **settings: Any) -> str:
        asking = Asking(server, "auto", environment, **settings)
        await asking.search()
        return asking.nodes["web_search"].label

    assert await taken(KEYS) == "tavily"
    assert await taken({"SERPER_API_KEY": "s", "TAVILY_API_KEY": ""}) == "serper"
    assert await taken({"MY_SERPER_KEY": "s"}, api_key_env="MY_SERPER_KEY") == "serper"
    assert await taken({"SEARCH_KEY": "s"}, api_key_env="SEARCH_KEY") == "tavily"
    with pytest.raises(
        SourceNotConfigured, match="TAVILY_API_KEY or SERPER_API_KEY or SERPAPI_API_KEY or"
    ):
        await taken({})


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (
            Json({"detail": {"error": "invalid key"}}, 401),
            SourceRefused,
            "refused the key (401): invalid key",
        ),
        (
            Json({"detail": {"error": "slow down"}}, 429),
            SourceRateLimited,
            "received too many requests (429): slow down",
        ),
        (
            Json({"detail": {"error": "plan limit"}}, 432),
            SourceRateLimited,
            "used up (432): plan limit",
        ),
        (
            Json({"detail": {"error": "paygo limit"}}, 433),
            SourceRateLimited,
            "used up (433): paygo limit",
        ),
        (Json({"message": "Not enough credits"}, 400), SourceRateLimited, "Not enough credits"),
        (
            Json({"detail": {"error": "query missing"}}, 400),
            SourceRefused,
            "refused the request (400): query missing",
        ),
        (Json({}, 500), SourceError, "failed (500)"),
        (Html(status=502), SourceError, "failed (502)"),
        (Html(), SourceMalformed, "text/html that is not JSON"),
        (Json({}), SourceMalformed, "without a list"),
        (Json([]), SourceMalformed, "not an object"),
        (
            Json({"results": [1], "organic": [1], "organic_results": [1]}),
            SourceMalformed,
            "not objects",
        ),
        (Cut(b'{"results": ['), SourceError, "cannot be reached"),
        (Cut(), SourceError, "cannot be reached"),
        (
            Json({}, 302, location="https://elsewhere.example/"),
            SourceError,
            "redirects (302) to 'https://elsewhere.example/'",
        ),
        (Reply(b"[" * 100_000), SourceMalformed, "not JSON"),
        (Reply(b" " * (5 << 20)), SourceError, "more than 4 MB"),
    ],
)
async def test_every_failure_is_an_error_of_its_own_kind(
    server: Loopback, provider: str, answer: Answer, kind: type[SourceError], words: str
) -> None:
    server.on("/search", answer)
    asking = Asking(server, provider)
    with pytest.raises(kind) as caught:
        await asking.search()
    assert type(caught.value) is kind
    assert words in caught.value.message
    assert repr(provider) in caught.value.message
    assert not any(key in str(caught.value) for key in KEYS.values())
    assert asking.nodes["web_search"].status == "failed"


@pytest.mark.parametrize("provider", KEYED)
async def test_status_403_is_a_refused_key_too(server: Loopback, provider: str) -> None:
    server.on("/search", Json({"message": "Unauthorized."}, 403))
    with pytest.raises(SourceRefused, match=r"refused the key \(403\): Unauthorized"):
        await Asking(server, provider).search()


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("answer", [Hang(), Trickle(b'{"results": [], "organic": []}', pause=0.02)])
async def test_a_slow_answer_is_a_timeout_even_if_its_bytes_keep_coming(
    server: Loopback, provider: str, answer: Answer
) -> None:
    server.on("/search", Json(GOOD[provider]), answer)
    with pytest.raises(SourceTimeout, match=r"0\.5 s"):
        await Asking(server, provider, timeout_ms=500).search(warmed=True)
    assert await anyio.to_thread.run_sync(server.requests[1].left.wait, 60)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_an_unreachable_provider_is_an_error_that_names_the_address(
    provider: str,
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        host = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(SourceError, match=host) as caught:
            await Asking(None, provider, host=host).search()
    assert type(caught.value) is SourceError


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_cancelling_a_search_closes_its_connection(server: Loopback, provider: str) -> None:
    server.on("/search", Hang())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Asking(server, provider).search)
        await server.until_requested()
        tasks.cancel_scope.cancel()
    assert await anyio.to_thread.run_sync(server.requests[0].left.wait, 60)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_limit_beyond_the_providers_is_a_warning(server: Loopback, provider: str) -> None:
    server.on("/search", Json(GOOD[provider]))
    asking = Asking(server, provider)
    await asking.search(limit=500)
    assert [warning.partition(":")[0] for warning in asking.warned] == ["web_limit"]


async def test_an_unknown_provider_is_named_with_the_nearest_one(server: Loopback) -> None:
    asking = Asking(server, "tavilly")
    asking.delegates = Scripted(UnknownName("assistant", "tavilly", ["docs"]))
    with pytest.raises(SourceNotConfigured, match="did you mean 'tavily'"):
        await asking.search()


class Scripted:
    """Delegates that give one answer, or fail, and record their calls."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.requests: list[tuple[str, str, dict[str, Any]]] = []

    async def ask(self, use: Use[Any, Any], doer: str, requested: Any, /, **_: Any) -> Any:
        self.requests.append((use.name, doer, requested.model_dump(exclude_defaults=True)))
        if isinstance(self.answer, Exception):
            raise DelegateError(f"{use.name} by {doer!r} failed: {self.answer}") from self.answer
        return use.answers.model_validate(self.answer)


PAGES = {
    "results": [
        {"url": "https://www.a.example/?utm_id=1", "title": "A", "snippet": "one"},
        {"url": "https://b.example"},
    ]
}


@pytest.mark.parametrize("by", ["mcp:search.web", "workers.search", "finder"])
async def test_pages_of_a_delegate_become_items_like_any_others(by: str) -> None:
    asking = Asking(None, by)
    asking.delegates = Scripted(PAGES)
    found = await asking.search(
        "What are the rivers of Berlin?", sites=["www.a.example"], language="de", limit=3
    )
    (item,) = found.items
    assert (item.title, item.key, item.score, found.provider) == (
        "A",
        "web:https://a.example",
        0.9,
        by,
    )
    wanted = {"query": "rivers Berlin", "limit": 3, "sites": ("a.example",), "language": "de"}
    assert asking.delegates.requests == [("web", by, wanted)]
    asking = Asking(None, "auto")
    asking.uses, asking.delegates = {"web": by}, Scripted(PAGES)
    assert len((await asking.search()).items) == 1  # one of them has no text


async def test_a_failing_delegate_is_replaced_by_the_built_in_search(
    server: Loopback,
) -> None:
    server.on("/search", Json(GOOD["tavily"]))
    asking = Asking(server)
    asking.uses, asking.delegates = {"web": "workers.search"}, Scripted(SourceError("it broke"))
    found = await asking.search()
    assert (found.provider, len(found.items)) == ("tavily", 2)
    assert asking.warned == [
        "source: web by 'workers.search' failed: it broke; the built-in search was used"
    ]
    asking.environment = {}
    with pytest.raises(SourceError, match="it broke"):
        await asking.search()


async def test_a_configured_provider_is_not_replaced(server: Loopback) -> None:
    server.on("/search", Json(GOOD["tavily"]))
    asking = Asking(server, "mcp:search")
    asking.delegates = Scripted(SourceError("it broke"))
    with pytest.raises(SourceError, match="it broke"):
        await asking.search()
    assert server.requests == []


async def test_keywords_of_a_delegate_are_searched_for(server: Loopback) -> None:
    server.on("/search", Json(GOOD["tavily"]))
    asking = Asking(server)
    asking.settings = asking.settings.model_copy(
        update={"keyword": KeywordSettings(max_keywords=2)}
    )
    asking.uses = {"keyword": "workers.kw"}
    asking.delegates = Scripted(
        [{"k": "rivers", "w": 0.9}, {"k": "of", "w": 0.1}, "Berlin", "berlin"]
    )
    await asking.search("What are the rivers of Berlin?")
    assert server.requests[0].json["query"] == "rivers Berlin"
    assert asking.nodes["keywords"].data["weights"] == [0.9, 1.0]
    assert asking.delegates.requests[0][2] == {
        "query": "What are the rivers of Berlin?",
        "content": "What are the rivers of Berlin?",  # the name that other packages read
        "max_keywords": 2,
    }


async def test_a_failing_keyword_extractor_does_not_stop_the_search(server: Loopback) -> None:
    server.on("/search", Json(GOOD["tavily"]))
    asking = Asking(server)
    asking.uses, asking.delegates = {"keyword": "workers.nlp.keyword"}, Scripted(SourceError("no"))
    assert len((await asking.search("What are the rivers of Berlin?")).items) == 2
    assert "workers.nlp.keyword" in asking.warned[0]
    assert asking.nodes["keywords"].status == "failed"
    assert server.requests[0].json["query"] == "rivers Berlin"
