"""Settings that have the right type and that no turn could use: the check says what, where and what
to do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from groundhook import open_host
from groundhook.core.errors import ConfigError
from tests.conftest import MakeApp

AGENT, PACKAGE, COLLECTION = "agent/agent.yml", "assistants/a/package.yao", "kb/docs.kb.yao"
CONNECTOR, SERVER, MODEL = "connectors/x.conn.yao", "mcps/x.mcp.yao", "models/x.mod.yao"
THINGS = {
    "table": {"name": "x"},
    "columns": [{"name": "id", "type": "ID"}, {"name": "n", "type": "integer"}],
}
ADDRESS = "should be an http(s) address, such as 'https://host:8443/path'"
URLS = "sqlite:///shop.db, postgresql://user@host/database or mariadb://user@host/database"


def app(file: str, text: Any) -> Mapping[str, str]:
    written = text if isinstance(text, str) else json.dumps(text, indent=1)
    return {AGENT: "", PACKAGE: "{}", COLLECTION: "{}", file: written}


# With a web search provider, since some of these switch web searches on.
RICH = {"PATH": "/bin:/usr/bin", "TAVILY_API_KEY": "k"}


async def findings(make_app: MakeApp, file: str, text: Any) -> list[str]:
    async with open_host(make_app(app(file, text)), environment={"TAVILY_API_KEY": "k"}) as host:
        return [str(problem) for problem in await host.check()]


WRONG: list[tuple[str, Any, str]] = [
    (
        AGENT,
        "database:\n  url: oracle://h/x",
        f"2:8: error: 'database.url': the scheme 'oracle' of the database URL is not supported ({URLS})",
    ),
    (
        AGENT,
        "database:\n  url: shop.db",
        "2:8: error: 'database.url': the scheme 'shop.db' of the database URL is not supported",
    ),
    (
        AGENT,
        "database:\n  url: postgresql://h:99999/x",
        "2:8: error: 'database.url': the port 99999 of the database URL is not between 1 and 65535",
    ),
    (
        AGENT,
        "database:\n  url: 'sqlite://'",
        "2:8: error: 'database.url': a SQLite database needs a file: sqlite:///path",
    ),
    (
        AGENT,
        "locale: de_DE",
        (
            "1:9: warning: 'locale': 'de_DE' is not a language tag such as en or pt-BR (BCP 47); did"
            " you mean de-DE?"
        ),
    ),
    (AGENT, "prompt_preset: shrot", "1:16: error: no prompt preset 'shrot'"),
    (
        COLLECTION,
        {"analyser": {"language": "klingon"}},
        "3:15: error: collection 'docs': no analyser for language 'klingon' (known",
    ),
    (
        COLLECTION,
        {"embedding": {"provider": "voygae"}},
        "3:15: error: collection 'docs': no embedding provider 'voygae' (did you",
    ),
    (
        PACKAGE,
        {"search": {"query": {"language": "klingon"}}},
        "4:16: error: 'search.query.language': questions in 'klingon' cannot be read (known",
    ),
    (
        PACKAGE,
        {"search": {"keyword": {"language": "klingon"}}},
        "4:16: warning: 'search.keyword.language': no words of 'klingon' are known",
    ),
    (
        PACKAGE,
        {"search": {"web": {"language": "english"}}},
        "4:16: warning: 'search.web.language': 'english' is not a language tag",
    ),
    (
        PACKAGE,
        {"search": {"web": {"host": "nowhere"}}},
        f"4:12: error: 'search.web.host': {ADDRESS}, not 'nowhere'",
    ),
    (
        PACKAGE,
        {"search": {"web": {"api_key_env": "sk-1"}}},
        "4:19: error: 'search.web.api_key_env': should be the name of a variable that",
    ),
    (
        PACKAGE,
        {"search": {"rerank": {"type": "agent"}}},
        (
            "4:12: error: 'search.rerank.type' is 'agent', but 'search.rerank.agent' is not set (set"
            " it to an assistant's id)"
        ),
    ),
    (
        PACKAGE,
        {"search": {"rerank": {"type": "model", "provider": "tei"}}},
        "5:16: error: the rerank provider 'tei' needs an address (set search",
    ),
    (
        PACKAGE,
        {"search": {"kb": True}},
        (
            "3:9: warning: 'search.kb' is on, but no collection is declared (name some with"
            " 'kb.collections'"
        ),
    ),
    (
        PACKAGE,
        {"search": {"db": {"max_results": 3}}},
        "3:9: warning: 'search.db' is on, but no model is declared (name some with",
    ),
    (
        CONNECTOR,
        {"type": "openai", "options": {"model": "m", "host": "http://h:99999"}},
        f"5:11: error: 'options.host': {ADDRESS}: port out of range 0-65535",
    ),
    (
        CONNECTOR,
        {"type": "openai", "options": {"model": "m", "headers": {"a b": "c"}}},
        "5:14: error: 'options.headers': 'a b' cannot be the name of a header",
    ),
    (
        CONNECTOR,
        {"type": "scripted", "options": {"script": [{"txet": "a"}]}},
        (
            "4:13: error: connector 'x': options.script[0].txet: extra inputs are not permitted"
            " (keys of a reply: "
        ),
    ),
    (
        COLLECTION,
        {"embedding": {"model": "ada"}},
        "3:12: error: the builtin embedding is 'multilingual-e5-small' with 384 dimensions",
    ),
    (
        COLLECTION,
        {"embedding": {"dimensions": 99}},
        "3:17: error: the builtin embedding is 'multilingual-e5-small' with 384 dim",
    ),
    (
        MODEL,
        {**THINGS, "values": [{"id": 1, "n": 1}, {"id": 2, "n": "two"}]},
        "20:3: error: the model 'x', values[1]: the value 'two' does not fit the field 'n'",
    ),
    (
        MODEL,
        {**THINGS, "values": [{"id": 1}]},
        "16:3: error: the model 'x', values[0]: the column 'n' has no value and is not",
    ),
    (
        MODEL,
        {**THINGS, "indexes": [{"name": "i", "columns": []}]},
        "18:15: error: 'indexes[0].columns': should have at least 1 item",
    ),
    (
        AGENT,
        "qdrant:\n  api_key: k",
        (
            "1:1: warning: 'qdrant' has no effect without 'qdrant.url': the embedded engine holds"
            " the vectors"
        ),
    ),
    (
        PACKAGE,
        {"search": {"web": {"exclude_sites": ["https://www.example.com/a?b", "http://"]}}},
        "6:5: warning: 'search.web.exclude_sites': 'http://' is not a site, so it",
    ),
    (
        PACKAGE,
        {"uses": {"query": "a"}},
        (
            "3:12: warning: 'uses.query' of 'a' names 'a' itself, which would call itself without end"
            " (name"
        ),
    ),
    (
        SERVER,
        {"transport": "http", "url": "http://h:99999/mcp"},
        f"3:9: error: 'url': {ADDRESS}: port out of range",
    ),
    (
        SERVER,
        {"command": "cat", "env": {"A=B": "c"}},
        "3:9: error: 'env': 'A=B' cannot be the name of a variable",
    ),
]


@pytest.mark.parametrize(("file", "text", "expected_message"), WRONG)
async def test_a_value_that_no_turn_could_use_is_found_where_it_is_written(
    make_app: MakeApp, file: str, text: Any, expected_message: str
) -> None:
    found = await findings(make_app, file, text)
    assert [
        finding for finding in found if finding.startswith(f"{file}:{expected_message}")
    ] == found
    assert len(found) == 1


@pytest.mark.parametrize(
    "url", ["x", "localhost:6333", "ftp://host", "http://host:99999", "https://"]
)
async def test_an_address_of_a_vector_store_that_is_none_is_refused_with_its_line(
    make_app: MakeApp, url: str
) -> None:
    with pytest.raises(
        ConfigError, match=r"^agent/agent.yml:2:8: 'qdrant.url': should be an http\(s\) address"
    ):
        await findings(make_app, AGENT, f"qdrant:\n  url: {url}")


async def test_what_a_key_was_written_for_is_not_shown(make_app: MakeApp) -> None:
    (found,) = await findings(
        make_app, PACKAGE, {"search": {"rerank": {"api_key_env": "sk-s3cret"}}}
    )
    assert "s3cret" not in found


RIGHT: list[tuple[str, Any]] = [
    (
        PACKAGE,
        {
            "search": {
                "web": {
                    "exclude_sites": [
                        "localhost",
                        "gov",
                        ".info",
                        "example.com.",
                        "[::1]",
                        "wiki:8080",
                        "*.bücher.de",
                    ]
                }
            }
        },
    ),
    (PACKAGE, {"search": {"rerank": {"type": "mcp"}}, "uses": {"rerank": "mcp:x"}}),
    (CONNECTOR, {"type": "openai", "options": {"model": "m", "host": "http://[::1]:8000/v1"}}),
    (CONNECTOR, {"type": "openai", "options": {"model": "m", "host": "http://my_machine:8000/v1"}}),
]


@pytest.mark.parametrize(("file", "text"), RIGHT)
async def test_what_is_right_however_seldom_is_no_finding(
    make_app: MakeApp, file: str, text: Any
) -> None:
    texts = {SERVER: json.dumps({"command": "cat"}), **app(file, text)}
    async with open_host(make_app(texts), environment=RICH) as host:
        assert [str(problem) for problem in await host.check()] == []


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (SERVER, {"transport": "http", "url": "$ENV.X"}),
        (SERVER, {"command": "$ENV.X"}),
        (SERVER, {"command": "cat", "args": ["--key", "$ENV.X"]}),
        (CONNECTOR, {"type": "$ENV.X", "options": {"model": "m"}}),
        (CONNECTOR, {"type": "scripted", "options": {"script": ["$ENV.X"]}}),
        (COLLECTION, {"name": "$ENV.X"}),
        (MODEL, {**THINGS, "values": [{"id": 1, "n": "$ENV.X"}]}),
    ],
)
async def test_a_declaration_that_needs_a_variable_is_a_warning_where_it_is_not_set(
    make_app: MakeApp, file: str, text: Any
) -> None:
    (found,) = await findings(make_app, file, text)
    assert "warning: " in found
    assert "needs the environment variable 'X', which is not set" in found


async def test_values_from_variables_that_are_not_set_are_not_judged(make_app: MakeApp) -> None:
    text = (
        "locale: $ENV.L\ndatabase: {url: $ENV.D}\nsearch: {web: {host: $ENV.H, language: $ENV.W},"
        " query: {language: $ENV.Q}}"
    )
    host = {AGENT: text, PACKAGE: "{}", COLLECTION: "{}"}
    with pytest.raises(ConfigError, match=r"DATABASE|'D'|ENV\.D"):
        async with open_host(make_app(host), environment={}) as opened:
            await opened.check()
    async with open_host(make_app(host), environment={"D": "sqlite:///x.db"}) as opened:
        assert {problem.severity for problem in await opened.check()} == {"warning"}


async def test_in_place_of_a_preset_that_there_is_not_the_default_is_used_with_a_warning(
    make_app: MakeApp,
) -> None:
    async with (
        open_host(make_app(app(AGENT, "locale: en\nprompt_preset: shrot")), environment={}) as host,
        host.stream("a", "hello") as events,
    ):
        warned = [event async for event in events if event.type == "warning"]
    assert ("no prompt preset 'shrot'; the default prompts are used", AGENT, 2) in [
        (each.message, each.file, each.line) for each in warned
    ]
