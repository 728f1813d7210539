"""Resources of MCP servers in a turn: those that a message refers to, and those that an assistant
lists."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.types.events import Event
from groundhook.core.types.turn import Message
from groundhook.host.turn.content import user_data
from groundhook.host.turn.resources import LONGEST, passages
from tests.conftest import MakeApp
from tests.mcp.conftest import HttpServer, serving
from tests.parts.turns import end, of, run, scripted


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """One server for all turns, since starting one takes a second."""
    with serving(tmp_path_factory.mktemp("mcp") / "diary") as made:
        yield made


@pytest.fixture
def turn(make_app: MakeApp, server: HttpServer) -> Any:
    """A turn of an assistant with these servers, over a message with these sources."""

    async def take(
        *names: str,
        servers: Sequence[Any] = ("tests",),
        hook: str = "",
        script: Any = "Fine.",
        **requested: Any,
    ) -> Any:
        package = {"name": "A", "connector": "script", "mcp": {"servers": list(servers)}}
        written = {
            "agent/agent.yml": "hooks:\n  workers: 0\n",
            "assistants/a/package.yao": json.dumps(package),
            "mcps/tests.mcp.yao": json.dumps(server.spec),
            "mcps/other.mcp.yao": json.dumps(server.spec),
            "assistants/b/package.yao": "{}",
            "assistants/b/mcps/own.mcp.yao": json.dumps(server.spec),
            **({"assistants/a/index.ts": hook} if hook else {}),
        }
        sources = [{"type": "mcp_resource", "name": name} for name in names]
        parts = [
            {"type": "text", "text": "what is on?"},
            {"type": "data", "data": {"sources": sources}},
        ]
        model = scripted(script)
        return await run(
            make_app(written), [{"role": "user", "content": parts}], connector=model, **requested
        ), model

    return take


def items(events: Sequence[Event]) -> list[Any]:
    return [event.item for event in of(events, "search_result")]


async def test_a_resource_is_a_source_that_can_be_cited(turn: Any) -> None:
    events, model = await turn("tests/memo://today", script="On: {ref:0}.")
    (item,) = items(events)
    assert (item.content, item.document_id, item.collection, item.weight) == (
        "nothing",
        "memo://today",
        "mcp:tests",
        1.0,
    )
    (start,) = of(events, "search_start")
    assert (start.source, start.search_type, start.query) == ("user", "kb", "tests/memo://today")
    assert [reference.content for reference in model.calls[0].references] == ["nothing"]
    (cited,) = end(events).citations
    assert (cited.verdict, cited.document_id) == ("ok", "memo://today")


async def test_the_address_alone_is_enough_if_one_server_is_listed(turn: Any) -> None:
    events, _ = await turn("memo://today")
    assert [item.content for item in items(events)] == ["nothing"]


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("page://guide/start.html", "# Start\n\nTurn the **red** key."),
        ("data://prices.json", '{"pen": 3}'),
    ],
)
async def test_pages_and_data_are_read_as_text(turn: Any, uri: str, text: str) -> None:
    events, _ = await turn(f"tests/{uri}")
    assert "\n\n".join(item.content for item in items(events)) == text


async def test_a_long_resource_is_split_into_passages_and_a_warning_counts_the_rest(
    turn: Any,
) -> None:
    events, model = await turn("tests/book://long")
    assert len(items(events)) == 200
    assert [reference.content[:10] for reference in model.calls[0].references] == [
        f"Chapter {n}." for n in range(10)
    ]
    assert "of its 250 passages the first 200 are used" in of(events, "warning")[0].message


@pytest.mark.parametrize(
    ("name", "servers", "problem"),
    [
        (
            "tests/image://logo",
            ["tests"],
            "the resource 'image://logo' is image/png, which is not text",
        ),
        ("tests/memo://gone", ["tests"], "memo://gone"),
        (
            "other/memo://today",
            ["tests"],
            "MCP server 'other' is not among those that the assistant may use ('mcp.",
        ),
        (
            "agents.b.own/memo://today",
            ["tests"],
            "MCP server 'agents.b.own' is not among those that the assistant may use",
        ),
        (
            "memo://today",
            [],
            "is not among those that the assistant may use ('mcp.servers' lists none)",
        ),
        ("memo://today", ["tests", "other"], "the server of 'memo://today'"),
        (
            "tests/memo://today",
            [{"server_id": "tests", "resources": ["data://prices.json"]}],
            "'mcp.servers' allows data://prices.json",
        ),
    ],
    ids=["image", "unknown", "not-listed", "of-another", "none", "which", "not-allowed"],
)
async def test_an_unreadable_resource_is_a_warning_and_the_turn_goes_on(
    turn: Any, name: str, servers: list[Any], problem: str
) -> None:
    events, _ = await turn(name, servers=servers)
    assert any(problem in f"{event.message} ({event.hint})" for event in of(events, "warning"))
    assert any(event.error and problem in event.error for event in of(events, "search_complete"))
    assert "memo://today" not in [item.document_id for item in items(events)]
    assert end(events).content == "Fine."


LISTED = [{"server_id": "tests", "resources": ["memo://today", "data://prices.json"]}]


async def test_resources_that_the_assistant_lists_are_sources_of_every_turn(turn: Any) -> None:
    events, model = await turn(servers=LISTED)
    assert [(item.document_id, item.weight) for item in items(events)] != []
    assert {(item.document_id, item.weight) for item in items(events)} == {
        ("memo://today", 0.6),
        ("data://prices.json", 0.6),
    }
    assert {reference.content for reference in model.calls[0].references} == {
        "nothing",
        '{"pen": 3}',
    }
    assert {event.source for event in of(events, "search_start")} == {"auto"}


@pytest.mark.parametrize("how", ["request", "hook"])
async def test_they_are_not_read_when_search_is_switched_off(turn: Any, how: str) -> None:
    hook = "function Create() { return { search: false }; }" if how == "hook" else ""
    events, _ = await turn(
        servers=LISTED, hook=hook, **({"search": False} if how == "request" else {})
    )
    assert items(events) == []


def parsed(name: str) -> tuple[list[tuple[str, str]], list[str]]:
    content = [{"type": "data", "data": {"sources": [{"type": "mcp_resource", "name": name}]}}]
    data = user_data([Message(role="user", content=content)], "pens")
    return [(each.server, each.uri) for each in data.resources], [
        str(problem) for problem in data.problems
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("orders/memo://today", ("orders", "memo://today")),
        ("agents.a.orders/file:///etc/x", ("agents.a.orders", "file:///etc/x")),
        ("memo://today/of/us", ("", "memo://today/of/us")),
        ("urn:isbn:1", ("", "urn:isbn:1")),
        ("orders/list", ("orders", "list")),
    ],
)
def test_a_resource_is_named_by_its_server_and_its_address(
    name: str, expected: tuple[str, str]
) -> None:
    assert parsed(name) == ([expected], [])


@pytest.mark.parametrize("name", ["orders", "orders/"])
def test_a_name_without_an_address_is_rejected(name: str) -> None:
    assert parsed(name)[0] == []
    assert "'orders/memo://today'" in parsed(name)[1][0]


@given(st.text(alphabet=st.sampled_from("ab \n"), max_size=6000))
def test_passages_contain_all_words_in_order_and_are_short(text: str) -> None:
    pieces = list(passages(text))
    assert all(0 < len(piece) <= LONGEST for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())
