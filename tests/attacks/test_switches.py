"""Sources that an author switches off are not searched, and values of the environment are never
shown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

import pytest

from groundhook import open_host
from groundhook.core.errors import HostError, StorageError, UsageError
from groundhook.core.types.events import Event, SearchComplete
from groundhook.core.types.search import SearchType
from groundhook.host.testing.canned import CannedSource, canned_item
from tests.conftest import MakeApp
from tests.loopback.server import Json, serving
from tests.server.conftest import APP, settings, write
from tests.server.conftest import serving as serving_app

SECRET = "PLANTED_KEY_0123456789"  # looks like the name of a variable
PACKAGE = {"connector": "extractive", "search": {"web": True, "kb": True}}
KEYS = {
    "assistants/web/package.yao": {
        **PACKAGE,
        "search": {"web": {"provider": "tavily", "api_key_env": "$ENV.HELD"}},
    },
    "assistants/address/package.yao": {
        **PACKAGE,
        "search": {"web": {"provider": "searxng", "host": "$ENV.HELD"}},
    },
    "assistants/judge/package.yao": {
        **PACKAGE,
        "search": {
            "web": {"provider": "searxng", "host": "http://127.0.0.1:9"},
            "rerank": {"type": "model", "provider": "cohere", "api_key_env": "$ENV.HELD"},
        },
    },
    "assistants/locale/package.yao": {**PACKAGE, "locale": "$ENV.HELD", "temperature": "$ENV.HELD"},
}


async def turn(
    make_app: MakeApp, package: object, hook: str, *, forced: bool | None = None
) -> tuple[dict[str, list[str]], Sequence[Event]]:
    """Run one turn, and return the requests to each source and the events."""
    sources = {type: CannedSource({"*": [canned_item("x", type=type)]}) for type in ("web", "kb")}
    app = make_app(
        {
            "assistants/a/package.yao": json.dumps(package),
            "assistants/a/index.js": hook,
            "kb/docs.kb.yao": "{}",
        }
    )
    handlers: dict[SearchType, CannedSource] = {"web": sources["web"], "kb": sources["kb"]}
    async with (
        open_host(app, environment={}, sources=handlers) as host,
        host.stream("a", "a private question", search=forced) as events,
    ):
        seen = [event async for event in events]
    return {
        type: [requested.query for requested in each.requests] for type, each in sources.items()
    }, seen


NOTHING = "function Create() { return null; }"
ASKS = "function Create(ctx) { return { metadata: { error: ctx.search.Web('private').error } }; }"


@pytest.mark.parametrize("forced", [None, True])
@pytest.mark.parametrize("by", ["the package", "a hook"])
@pytest.mark.parametrize(
    ("key", "requested"),
    [("search", set[str]()), ("web", {"kb"}), ("kb", {"web"}), ("db", {"web", "kb"})],
)
async def test_a_search_that_is_disabled_asks_nobody(
    make_app: MakeApp, key: str, requested: set[str], by: str, forced: bool | None
) -> None:
    uses = {"uses": {key: "disabled"}}
    package = {**PACKAGE, "kb": {"collections": ["docs"]}}
    if by == "the package":
        found, _ = await turn(make_app, {**package, **uses}, NOTHING, forced=forced)
    else:
        hook = f"function Create() {{ return {json.dumps(uses)}; }}"
        found, _ = await turn(make_app, package, hook, forced=forced)
    assert {type for type, questions in found.items() if questions} == requested


async def test_a_hook_that_searches_what_is_disabled_is_shown_why_nothing_came(
    make_app: MakeApp,
) -> None:
    found, events = await turn(make_app, {**PACKAGE, "uses": {"web": "disabled"}}, ASKS)
    assert found["web"] == []
    errors = [event.error for event in events if isinstance(event, SearchComplete) and event.error]
    assert "uses.web is 'disabled'" in errors


async def test_no_message_shows_what_the_environment_holds(make_app: MakeApp) -> None:
    app = make_app({name: json.dumps(package) for name, package in KEYS.items()})
    environment = {"HELD": SECRET}
    for each in ("web", "address", "judge", "locale"):
        shown = ""
        try:
            async with (
                open_host(app, environment=environment) as host,
                host.stream(each, "x") as events,
            ):
                shown = "".join([event.model_dump_json() async for event in events])
        except HostError as exc:
            shown = str(exc)
        assert shown
        assert SECRET not in shown, each


async def test_a_key_that_a_service_repeats_is_shown_as_its_variable(make_app: MakeApp) -> None:
    # the second would be cut within the key
    echo = Json({"error": {"message": f"bad key Bearer {SECRET}{' x' * 125} {SECRET}"}}, 401)
    with serving() as server:
        for path in ("/search", "/v1/chat/completions"):
            server.on(path, echo)
        web = {"provider": "tavily", "api_key_env": "HELD", "host": server.url}
        options = {"model": "m", "host": f"{server.url}/v1", "key": "$ENV.HELD"}
        app = make_app(
            {
                "connectors/m.conn.yao": json.dumps({"type": "openai", "options": options}),
                "assistants/a/package.yao": json.dumps({"connector": "m", "search": {"web": web}}),
            }
        )
        async with (
            open_host(app, environment={"HELD": SECRET}) as host,
            host.stream("a", "x") as events,
        ):
            shown = "".join([event.model_dump_json() async for event in events])
    assert SECRET[:12] not in shown
    assert shown.count("refused the key (401): bad key Bearer $ENV.HELD") >= 2


async def test_a_key_of_the_env_file_reaches_no_message_and_no_hook(make_app: MakeApp) -> None:
    hook = """
    export function Next(ctx) {
      const held = [typeof GH_HELD, JSON.stringify(ctx), Object.keys(globalThis)];
      return { data: { found: held } };
    }
    """
    with serving() as server:
        server.on("/v1/chat/completions", Json({"error": {"message": f"bad key {SECRET}"}}, 401))
        options = {"model": "m", "host": f"{server.url}/v1", "key": "$ENV.GH_HELD"}
        app = make_app(
            {
                "connectors/m.conn.yao": json.dumps({"type": "openai", "options": options}),
                "assistants/a/package.yao": json.dumps({"connector": "m"}),
                "assistants/a/index.js": hook,
                ".env": f"GH_HELD={SECRET}\n",
            }
        )
        async with open_host(app) as host, host.stream("a", "x") as events:
            shown = "".join([event.model_dump_json() async for event in events])
        sent = server.requests[-1].headers["authorization"]
    assert sent == f"Bearer {SECRET}"
    assert "bad key $ENV.GH_HELD" in shown
    assert '"found":["undefined"' in shown
    assert SECRET[:12] not in shown


async def test_the_password_in_an_address_is_shown_as_its_variable(make_app: MakeApp) -> None:
    address = f"http://user:{SECRET}@127.0.0.1:9/v1"
    options = {"model": "m", "host": "$ENV.MODEL_HOST", "retries": 0}
    web = {"provider": "searxng", "host": "$ENV.SEARCH_HOST"}
    app = make_app(
        {
            "connectors/m.conn.yao": json.dumps({"type": "openai", "options": options}),
            "mcps/far.mcp.yao": json.dumps({"transport": "http", "url": "$ENV.SERVER"}),
            "assistants/a/package.yao": json.dumps(
                {"connector": "m", "search": {"web": web}, "mcp": {"servers": ["far"]}}
            ),
        }
    )
    environment = dict.fromkeys(("MODEL_HOST", "SEARCH_HOST", "SERVER"), address)
    async with open_host(app, environment=environment) as host, host.stream("a", "x") as events:
        shown = "".join([event.model_dump_json() async for event in events])
    assert "cannot be reached" in shown
    assert SECRET not in shown


@pytest.mark.parametrize("password", ["hun%zzter22", "hunter%2022"])
async def test_the_password_alone_is_shown_as_its_variable(
    make_app: MakeApp, password: str
) -> None:
    app = make_app({"agent/agent.yml": "store: {url: $ENV.STORE}"})
    environment = {"STORE": f"postgresql://alice:{password}@127.0.0.1:9/app"}
    async with open_host(app, environment=environment):
        pass
    for form in (password, unquote(password)):
        assert str(StorageError(f"invalid token: {form!r}")) == "invalid token: '$ENV.STORE'"


async def test_a_guess_at_a_variable_is_not_confirmed(make_app: MakeApp) -> None:
    app = make_app({"agent/agent.yml": "connector: $ENV.STAGE"})
    async with open_host(app, environment={"STAGE": "staging"}) as host:
        for guess in ("staging", "testing"):
            with pytest.raises(UsageError, match=f"no assistant '{guess}'"):
                host.app.package(guess)


FAR = json.dumps({"type": "openai", "options": {"model": "$ENV.STAGE", "host": "http://a.test"}})


def test_a_guess_at_a_variable_in_a_request_is_not_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAGE", "staging")
    app = write(
        tmp_path / "app", {**APP, "connectors/far.conn.yao": FAR, "agent/agent.yml": settings()}
    )
    with serving_app(app) as served, served.client() as client:
        for guess in ("staging", "testing"):
            asked = {"assistant": "talks", "text": "?"}
            for body in (
                {**asked, guess: 1},
                {**asked, "options": {"connector": guess}},
                {**asked, "options": {"locale": f"{guess}!"}},
                {"assistant": "talks", "messages": [{"role": "user", "content": "?", guess: 1}]},
            ):
                assert guess in client.post("/api/turns", json=body).json()["detail"]
            unknown = client.post(f"/api/turns?events={guess}", json=asked).json()
            assert guess in unknown["detail"]


async def test_a_short_key_in_the_address_of_an_api_is_shown_as_its_variable(
    make_app: MakeApp,
) -> None:
    api = {
        "name": "X",
        "url": "http://127.0.0.1:9/s?key=$ENV.SHORT",
        "query": {"q": "{{question}}"},
        "items": "a",
    }
    app = make_app(
        {
            "assistants/a/package.yao": '{"connector": "extractive"}',
            "apis/x.api.yao": json.dumps(api),
        }
    )
    data = {"type": "data", "data": {"sources": [{"type": "api", "name": "x"}]}}
    asked = [{"type": "text", "text": "hi " * 30_000}, data]  # too long for an address
    async with (
        open_host(app, environment={"SHORT": "s3cretkey99"}) as host,
        host.stream("a", [{"role": "user", "content": asked}]) as events,
    ):
        shown = str([event async for event in events])
    assert "key=$ENV.SHORT" in shown
    assert "s3cretkey99" not in shown


async def test_a_value_that_is_a_word_leaves_longer_names_as_they_are(make_app: MakeApp) -> None:
    app = make_app({"agent/agent.yml": "connector: $ENV.STAGE"})
    async with open_host(app, environment={"STAGE": "production"}):
        pass
    assert str(HostError("known: production-docs")) == "known: production-docs"
    assert str(HostError("no connector 'production'")) == "no connector '$ENV.STAGE'"
