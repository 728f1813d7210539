"""Two-stage memory through the host's door for tools, over the sample of two teams."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from groundhook import Host, open_host
from groundhook.core.errors import ConfigError, SourceMalformed
from groundhook.host.app.collections import AppCollections
from groundhook.host.app.exact_texts import ExactTexts
from groundhook.plugins import CollectionDocument, CollectionQuery, Owner
from tests.cli.conftest import run_in
from tests.conftest import MakeApp
from tests.parts.memory_kit import WRITABLE
from tests.toolkits.conftest import STORES, stored, synchronise

RED = {"tenant_id": "acme", "team_id": "red"}
BLUE = {"tenant_id": "acme", "team_id": "blue"}
ME = {"user_id": "me"}
NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture(scope="session", params=STORES)
def sample(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("memory")
    with stored(request.param, folder / "server") as agent:
        yield synchronise("memory", folder / "app", agent)


@pytest.fixture
async def host(sample: Path) -> AsyncIterator[Host]:
    async with open_host(sample) as opened:
        yield opened


async def call(host: Host, tool: str, arguments: dict[str, Any], identity: Any = RED) -> Any:
    outcome = await host.tool(tool, arguments, identity=identity, assistant="memory")
    assert outcome.error is None, outcome.error
    return outcome.result


async def error(host: Host, tool: str, arguments: dict[str, Any], identity: Any = RED) -> str:
    outcome = await host.tool(tool, arguments, identity=identity, assistant="memory")
    assert outcome.result is None
    return outcome.error or ""


def test_sentences_for_models_are_beside_the_json_on_the_command_line(
    synchronised: Callable[[str], Path],
) -> None:
    arguments = '{"query": "tests", "collection": "qa", "limit": 1}'
    identity = ("--team", "red", "--tenant", "acme")
    ran = run_in(synchronised("memory"), "tools", "call", "memory.search", arguments, *identity)
    assert (ran.code, len(json.loads(ran.out))) == (0, 1)
    assert "more; pass a higher `limit`" in ran.err


# The twelve cases that the specification of this memory names.


async def test_search_returns_previews_without_content(host: Host) -> None:
    found = await call(host, "search", {"query": "rate limits", "collection": "backend"})
    assert found[0]["title"] == "Rate limits by token bucket"
    assert all(set(one) == {"id", "title", "preview", "score"} for one in found)
    assert all(isinstance(one["id"], int) for one in found)


async def test_previews_are_sorted_by_score(host: Host) -> None:
    found = await call(host, "search", {"query": "tests that fail", "collection": "qa"})
    scores = [one["score"] for one in found]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


async def test_a_blank_query_is_refused(host: Host) -> None:
    message = await error(host, "search", {"query": " ", "collection": "qa"})
    assert message == "wrong arguments: query: should not be blank"


async def test_search_respects_the_limit(host: Host) -> None:
    found = await call(host, "search", {"query": "tests", "collection": "qa", "limit": 3})
    assert len(found) == 3


async def test_an_unknown_collection_has_no_previews_and_a_warning_with_the_nearest(
    host: Host,
) -> None:
    outcome = await host.tool(
        "search", {"query": "x", "collection": "bakend"}, identity=RED, assistant="memory"
    )
    assert outcome.result == []
    assert outcome.warnings == ("there is no collection 'bakend' (did you mean 'backend'?)",)


async def test_before_the_first_sync_there_are_no_previews_and_a_warning(make_app: MakeApp) -> None:
    sample = {"type": "memory", "collections": {"own": "own"}, "source": {"file": "own.jsonl"}}
    app = make_app(
        {**WRITABLE, "assistants/memory/toolkits/memory.toolkit.yao": json.dumps(sample)}
    )
    async with open_host(app) as host:
        outcome = await host.tool(
            "search", {"query": "x", "collection": "own"}, identity=ME, assistant="memory"
        )
    assert outcome.result == []
    assert outcome.warnings == ("nothing is indexed (run: groundhook tools sync memory)",)


async def test_a_collection_that_lacks_a_field_of_memories_is_named_with_what_to_declare(
    make_app: MakeApp,
) -> None:
    collection = {"tenant_field": "owner", "fields": {"preview": "text", "links": "text"}}
    app = make_app({**WRITABLE, "assistants/memory/kb/own.kb.yao": json.dumps(collection)})
    async with open_host(app) as host:
        with pytest.raises(ConfigError) as raised:
            host.syncs.toolkits("agents.memory.memory")
    assert str(raised.value).startswith("the collection 'agents.memory.own' lacks fields")
    assert raised.value.hint.endswith(
        '"written": "datetime", "supersedes": "keyword", "links": "keyword"'
    )


async def test_fetch_returns_the_whole_memory(host: Host) -> None:
    memory = await call(host, "fetch", {"doc_id": 1, "collection": "backend"})
    assert set(memory) == {"id", "title", "preview", "content", "tags"}
    assert memory["tags"] == ["rate-limiting", "redis"]
    assert memory["content"].endswith("a minute of generosity is cheaper than a second store.")


async def test_fetch_refuses_an_id_that_does_not_exist(host: Host) -> None:
    message = await error(host, "fetch", {"doc_id": 404, "collection": "backend"})
    assert message.startswith("collection 'backend' has no document 404")


async def test_fetch_refuses_a_collection_that_does_not_exist(host: Host) -> None:
    message = await error(host, "fetch", {"doc_id": 1, "collection": "bakend"})
    assert message.startswith("there is no collection 'bakend' (did you mean 'backend'?)")


async def test_batch_fetch_returns_memories_of_several_collections(host: Host) -> None:
    found = await call(
        host, "batch_fetch", {"doc_refs": [[1, "backend"], {"doc_id": 31, "collection": "ops"}]}
    )
    assert [(one["id"], one["collection"]) for one in found] == [(1, "backend"), (31, "ops")]
    keys = {"id", "collection", "title", "preview", "content", "tags"}
    assert all(set(one) == keys for one in found)
    assert found[0]["tags"] == ["rate-limiting", "redis"]


async def test_batch_fetch_leaves_out_what_does_not_exist(host: Host) -> None:
    refs = [[404, "backend"], [1, "bakend"], [16, "qa"]]
    found = await call(host, "batch_fetch", {"doc_refs": refs})
    assert [one["id"] for one in found] == [16]


async def test_batch_fetch_keeps_the_order_and_repetitions(host: Host) -> None:
    refs = [[3, "backend"], [31, "ops"], [1, "backend"], [3, "backend"]]
    found = await call(host, "batch_fetch", {"doc_refs": refs})
    assert [[one["id"], one["collection"]] for one in found] == refs


async def test_batch_fetch_asks_each_collection_once(host: Host) -> None:
    traced: list[Any] = []
    await host.tool(
        "batch_fetch",
        {"doc_refs": [[1, "backend"], [31, "ops"], [3, "backend"], [27, "ops"]]},
        identity=RED,
        assistant="memory",
        events=traced.append,
    )
    ended = [
        event.node
        for event in traced
        if event.type == "trace" and event.node.type == "memory_fetch" and event.node.duration_ms
    ]
    assert sorted(
        (node.data["collection"], node.data["asked"], node.data["found"]) for node in ended
    ) == [("backend", 2, 2), ("ops", 2, 2)]


async def test_batch_fetch_of_nothing_is_nothing(host: Host) -> None:
    assert await call(host, "batch_fetch", {"doc_refs": []}) == []


# Owners


async def test_a_team_without_its_tenant_finds_nothing_and_reads_why(host: Host) -> None:
    for team in ("red", "green"):
        outcome = await host.tool(
            "search",
            {"query": "rate limits", "collection": "backend"},
            identity={"team_id": team},
            assistant="memory",
        )
        assert (outcome.error, outcome.result) == (None, [])
        [warning] = outcome.warnings
        assert warning == (
            "nothing was found for a team without a tenant: if it belongs to a tenant, the request"
            " must name that as well"
        )


async def test_another_teams_memory_is_missing_in_the_same_words_as_one_that_never_was(
    host: Host,
) -> None:
    theirs = await error(host, "fetch", {"doc_id": 36, "collection": "backend"})
    never = await error(host, "fetch", {"doc_id": 37000, "collection": "backend"})
    assert theirs.replace("36", "37000") == never
    assert await call(host, "batch_fetch", {"doc_refs": [[36, "backend"]]}) == []
    found = await call(host, "search", {"query": "gateway edge", "collection": "backend"})
    assert all(one["id"] < 36 for one in found)
    assert await call(host, "fetch", {"doc_id": 36, "collection": "backend"}, BLUE)


@pytest.mark.parametrize("identity", [None, {"tenant_id": "acme"}, {"user_id": "u"}])
async def test_a_request_without_a_team_is_not_permitted(host: Host, identity: Any) -> None:
    message = await error(host, "search", {"query": "x", "collection": "backend"}, identity)
    assert message == "not permitted: search needs a team, and the request names none"


async def test_a_team_of_another_tenant_sees_nothing(host: Host) -> None:
    other = {"tenant_id": "globex", "team_id": "red"}
    assert await call(host, "search", {"query": "x", "collection": "qa"}, other) == []


# Newer ones, links, budgets, bad arguments


async def test_a_newer_memory_comes_before_the_one_it_supersedes_and_the_model_is_told(
    host: Host,
) -> None:
    outcome = await host.tool(
        "search",
        {
            "query": "each process of the order service holds 50 connections",
            "collection": "backend",
        },
        identity=RED,
        assistant="memory",
    )
    ids = [one["id"] for one in outcome.result]
    assert ids.index(3) < ids.index(4)
    assert "Memory 4 is superseded by 3." in outcome.text


async def test_as_of_finds_what_was_written_up_to_a_time(host: Host) -> None:
    found = await call(
        host,
        "search",
        {"query": "connections", "collection": "backend", "as_of": "2025-12-31T00:00:00Z"},
    )
    assert [one["id"] for one in found] == [4]


@pytest.mark.parametrize(
    ("as_of", "found"),
    [
        ("0001-01-01T00:00:00+14:00", False),
        ("0900-01-01T00:00:00Z", False),
        ("9999-12-31T23:59:59-14:00", True),
    ],
)
async def test_as_of_may_be_any_time_of_the_calendar(host: Host, as_of: str, found: bool) -> None:
    wanted = {"query": "connections", "collection": "backend", "as_of": as_of}
    assert bool(await call(host, "search", wanted)) is found


async def test_a_memory_that_is_not_indexed_is_reported_with_as_of_too(
    synchronised: Callable[[str], Path], tmp_path: Path
) -> None:
    shutil.copytree(
        synchronised("memory"), tmp_path / "app", ignore=shutil.ignore_patterns(".groundhook")
    )
    async with open_host(tmp_path / "app") as opened:
        wanted = {"query": "connections", "collection": "backend", "as_of": "2025-12-31"}
        outcome = await opened.tool("search", wanted, identity=RED, assistant="memory")
    assert "nothing is indexed" in str(outcome.warnings)


async def test_links_are_followed_in_both_directions(host: Host) -> None:
    memory = await call(host, "fetch", {"doc_id": 31, "collection": "ops", "links": True})
    assert [(one["id"], one["collection"]) for one in memory["names"]] == [(3, "backend")]
    assert [(one["id"], one["collection"]) for one in memory["named_by"]] == [(3, "backend")]


async def test_a_budget_leaves_out_contents_and_says_so(host: Host) -> None:
    outcome = await host.tool(
        "batch_fetch",
        {"doc_refs": [[1, "backend"], [31, "ops"]], "most_tokens": 40},
        identity=RED,
        assistant="memory",
    )
    assert [bool(one["content"]) for one in outcome.result] == [False, True]
    assert "backend:1" in outcome.text


async def test_a_threshold_tells_how_many_are_below_it(host: Host) -> None:
    outcome = await host.tool(
        "search",
        {"query": "rate limits", "collection": "backend", "threshold": 0.99},
        identity=RED,
        assistant="memory",
    )
    assert "below the threshold" in outcome.text


@pytest.mark.parametrize(
    ("tool", "arguments", "path"),
    [
        ("search", {"query": " ", "collection": "qa"}, "query"),
        ("search", {"query": "x", "collection": "qa", "limit": 0}, "limit"),
        ("search", {"query": "x", "collection": "qa", "owner": "blue"}, "owner"),
        ("fetch", {"doc_id": -1, "collection": "qa"}, "doc_id"),
        ("fetch", {"doc_id": True, "collection": "qa"}, "doc_id"),
        ("fetch", {"doc_id": 1.5, "collection": "qa"}, "doc_id"),
        ("batch_fetch", {"doc_refs": ["qa:1"]}, "doc_refs"),
        ("batch_fetch", {"doc_refs": [["qa", 1]]}, "doc_refs"),
    ],
)
async def test_wrong_arguments_are_refused_with_their_path(
    host: Host, tool: str, arguments: dict[str, Any], path: str
) -> None:
    message = await error(host, tool, arguments)
    assert message.startswith("wrong arguments: ")
    assert path in message


async def test_an_id_may_be_written_in_digits(host: Host) -> None:
    assert (await call(host, "fetch", {"doc_id": "16", "collection": "qa"}))["id"] == 16


async def test_remember_is_offered_only_where_it_is_switched_on(host: Host) -> None:
    offered = await host.tools(assistant="memory")
    assert [tool.name for tool in offered] == ["search", "fetch", "batch_fetch"]


@pytest.mark.parametrize("owner", ["user", "team", "tenant"])
async def test_a_collection_that_cannot_keep_owners_apart_is_refused_and_reported(
    make_app: MakeApp, owner: str
) -> None:
    file = "assistants/memory/kb/own.kb.yao"
    together = {
        name: value for name, value in json.loads(WRITABLE[file]).items() if name != "tenant_field"
    }
    kit = {"type": "memory", "collections": {"own": "own"}, "owner": owner, "write": True}
    app = make_app(
        {
            **WRITABLE,
            file: json.dumps(together),
            "assistants/memory/toolkits/memory.toolkit.yao": json.dumps(kit),
        }
    )
    async with open_host(app) as host:
        outcome = await host.tool(
            "memory.search",
            {"query": "x", "collection": "own"},
            identity={"user_id": "me", "team_id": "red", "tenant_id": "acme"},
            assistant="memory",
        )
        problems = [each for each in await host.check() if each.severity == "error"]
    assert outcome.result is None
    [problem] = problems
    assert problem.place is not None
    assert problem.place.file == file
    assert problem.message.startswith("'tenant_field' is missing")
    assert f"of each {owner} in 'agents.memory.own'" in problem.message


async def test_a_collection_that_loses_its_owners_while_the_host_is_open_is_refused(
    make_app: MakeApp,
) -> None:
    file = "assistants/memory/kb/own.kb.yao"
    app = make_app(WRITABLE)
    note = {"collection": "own", "title": "Shoes", "content": "My size is 43."}
    async with open_host(app) as host:
        kept = await call(host, "remember", note, ME)
        together = json.loads(WRITABLE[file])
        del together["tenant_field"]
        (app / file).write_text(json.dumps(together), encoding="utf-8")
        await host.reload([app / file])
        ref = {"doc_id": kept["id"], "collection": "own"}
        refused = await error(host, "fetch", ref, {"user_id": "you"})
    assert "'tenant_field' is missing" in refused


@pytest.mark.parametrize("owner", ["user", "team"])
async def test_a_collection_without_tenants_gives_no_team_or_user_a_part_of_it(
    make_app: MakeApp, owner: Owner
) -> None:
    collection = '{"name": "All", "embedding": {"provider": "hash"}}'
    app = make_app({"agent/agent.yml": "", "kb/all.kb.yao": collection})
    async with open_host(app) as host:
        reached = host.collections(identity={"user_id": "me", "team_id": "red"})
        note = CollectionDocument(id="1", text="Pears ripen late.")
        with pytest.raises(ConfigError, match=f"separate the documents of each {owner}"):
            await reached.put("all", [note], owner=owner)
        with pytest.raises(ConfigError, match="'all'"):
            await reached.find([CollectionQuery(collection="all", text="x", owner=owner)])
        with pytest.raises(ConfigError, match="'all'"):
            await reached.get("all", ["1"], owner=owner)


class StoresBetween:
    """The exact texts, which are asked after another caller has stored a document."""

    def __init__(self, texts: ExactTexts, store: Callable[[], Awaitable[object]]) -> None:
        self._texts, self._store = texts, store
        self.remove = texts.remove

    async def get(self, collection: str, tenant: str, ids: Sequence[str]) -> Mapping[str, str]:
        await self._store()
        return await self._texts.get(collection, tenant, ids)


async def test_a_document_that_is_stored_while_it_is_read_keeps_its_exact_text(
    make_app: MakeApp,
) -> None:
    collection = '{"name": "All", "embedding": {"provider": "hash"}}'
    app = make_app({"agent/agent.yml": "", "kb/all.kb.yao": collection})
    note = CollectionDocument(id="1", text="\n Pears  ripen late. \n")
    async with open_host(app) as host:
        reached = host.collections()
        assert isinstance(reached, AppCollections)
        texts = StoresBetween(reached.texts(), lambda: reached.put("all", [note], owner="app"))
        reader = replace(reached, texts=lambda: cast(ExactTexts, texts))
        first = await reader.get("all", ["1"], owner="app")
        again = await reached.get("all", ["1"], owner="app")
    assert first["1"].text == again["1"].text == note.text


@pytest.fixture(params=STORES)
async def writable(
    request: pytest.FixtureRequest, make_app: MakeApp, tmp_path: Path
) -> AsyncIterator[Host]:
    with stored(request.param, tmp_path / "server") as agent:
        async with open_host(make_app({**WRITABLE, "agent/agent.yml": agent})) as opened:
            yield opened


async def test_what_a_user_remembers_is_found_and_nobody_else_finds_it(writable: Host) -> None:
    me, you = {"user_id": "me"}, {"user_id": "you"}
    made = await call(
        writable,
        "remember",
        {"collection": "own", "title": "Shoes", "content": "My size is 43.\n\nWide ones."},
        me,
    )
    memory = await call(writable, "fetch", {"doc_id": made["id"], "collection": "own"}, me)
    assert memory["content"] == "My size is 43.\n\nWide ones."
    assert (memory["preview"], made["made"]) == ("My size is 43. Wide ones.", True)
    assert "has no document" in await error(
        writable, "fetch", {"doc_id": made["id"], "collection": "own"}, you
    )


async def test_a_memory_is_found_by_the_words_of_its_preview_and_of_its_tags(
    writable: Host,
) -> None:
    tea = {
        "collection": "own",
        "title": "Tea",
        "content": "Assam, no milk.\n\nTwo spoons.\n",
        "preview": "What the customer drinks at breakfast.",
        "tags": ["beverages", "hospitality"],
    }
    others = [{"collection": "own", "title": f"N{n}", "content": f"Note {n}."} for n in range(3)]
    id = (await call(writable, "remember", tea, ME))["id"]
    for other in others:
        await call(writable, "remember", other, ME)
    for query in ("customer breakfast", "hospitality"):
        question = {"query": query, "collection": "own", "threshold": 0.1}
        [found] = await call(writable, "search", question, ME)
        assert (found["id"], found["preview"]) == (id, tea["preview"])
    memory = await call(writable, "fetch", {"doc_id": id, "collection": "own"}, ME)
    assert memory["content"] == tea["content"]


async def test_memories_that_one_answer_stores_at_the_same_time_have_ids_of_their_own(
    make_app: MakeApp,
) -> None:
    ids: set[int] = set()
    async with open_host(make_app(WRITABLE), environment={}, now=NOW) as host:

        async def remember(number: int) -> None:
            note = {"collection": "own", "title": f"Note {number}", "content": f"Number {number}."}
            ids.add((await call(host, "remember", note, ME))["id"])

        # In one millisecond: there are a thousand ids for it.
        async with anyio.create_task_group() as tasks:
            for number in range(120):
                tasks.start_soon(remember, number)
    assert len(ids) == 120


async def test_a_document_that_is_no_memory_is_left_out_with_one_warning(writable: Host) -> None:
    note = {"collection": "own", "title": "Shoes", "content": "My size is 43."}
    kept = (await call(writable, "remember", note, ME))["id"]
    about = {"links": f"own:{kept}", "supersedes": str(kept)}
    others = [
        CollectionDocument(id=id, text="My size, once more.", fields=about)
        for id in ("size-43", "007", "²", "9" * 20)
    ]
    reached = writable.collections(identity=ME, assistant="memory")
    assert (await reached.put("own", others, owner="user")).added == len(others)
    for tool, arguments in (
        ("search", {"query": "size", "collection": "own"}),
        ("fetch", {"doc_id": kept, "collection": "own", "links": True}),
    ):
        outcome = await writable.tool(tool, arguments, identity=ME, assistant="memory")
        assert outcome.error is None
        [warning] = outcome.warnings
        assert warning.startswith("documents of 'own' whose ids are no whole numbers are left out")
        assert "superseded" not in outcome.text
        found = outcome.result if tool == "search" else [outcome.result]
        assert [one["id"] for one in found] == [kept]


async def test_a_collection_may_be_open_to_some_tenants_and_keep_their_users_apart(
    make_app: MakeApp,
) -> None:
    file = "assistants/memory/kb/own.kb.yao"
    collection = {**json.loads(WRITABLE[file]), "permission": {"tenants": ["acme"]}}
    note = {"collection": "own", "title": "Shoes", "content": "My size is 43."}
    mine, colleague = ({"tenant_id": "acme", "user_id": user} for user in ("me", "you"))
    async with open_host(make_app({**WRITABLE, file: json.dumps(collection)})) as host:
        kept = await call(host, "remember", note, mine)
        ref = {"doc_id": kept["id"], "collection": "own"}
        assert (await call(host, "fetch", ref, mine))["content"] == note["content"]
        assert "has no document" in await error(host, "fetch", ref, colleague)
        closed = await error(host, "fetch", ref, {"tenant_id": "globex", "user_id": "me"})
        search = {"query": "size", "collection": "own"}
        assert len(await call(host, "search", search, mine)) == 1
    assert closed.startswith("not permitted: collection 'agents.memory.own' is not open to")


async def test_a_memory_is_read_while_another_program_writes(make_app: MakeApp) -> None:
    me, app = {"user_id": "me"}, make_app(WRITABLE)
    note = {"collection": "own", "title": "Shoes", "content": " My size is 43.\n"}
    async with open_host(app) as host:
        made = await call(host, "remember", note, me)
    async with open_host(app) as host:
        texts = app / ".groundhook/texts.sqlite"
        with closing(sqlite3.connect(texts, isolation_level=None)) as other, anyio.fail_after(60):
            other.execute("begin immediate")
            arguments = {"doc_id": made["id"], "collection": "own"}
            assert (await call(host, "fetch", arguments, me))["content"] == note["content"]
            none = {"doc_refs": [[404, "own"]]}
            assert await call(host, "batch_fetch", none, me) == []


CONTENTS = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from("\n\r\t .#`|-\x00"), min_size=1
).filter(lambda text: text.strip().strip("\0\ufeff \n\r\t"))


async def test_a_content_without_text_is_refused(writable: Host) -> None:
    note = {"collection": "own", "title": "T", "content": " \0\ufeff\n"}
    message = await error(writable, "remember", note, {"user_id": "me"})
    assert message == "wrong arguments: content: should not be blank"


@settings(
    max_examples=15,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(CONTENTS)
@example("0\0")
@example("a\0b\0c")
async def test_a_content_comes_back_letter_for_letter(writable: Host, content: str) -> None:
    made = await call(
        writable,
        "remember",
        {"collection": "own", "title": "T", "content": content},
        {"user_id": "me"},
    )
    memory = await call(
        writable, "fetch", {"doc_id": made["id"], "collection": "own"}, {"user_id": "me"}
    )
    assert memory["content"] == content


@pytest.mark.parametrize("writable", ["embedded"], indirect=True)
async def test_a_memory_of_a_megabyte_comes_back_byte_for_byte_after_a_sync(
    writable: Host,
) -> None:
    chance = random.Random(7)
    words = [
        "pear",
        "Zürich",
        "שלום",
        "北京",
        "🍐",
        "e\u0301",
        "\r\n",
        "\n\n\n",
        "\t",
        "  ",
        "# x\n",
        "|a|",
    ]
    content = "\n " + " ".join(chance.choice(words) for _ in range(250_000)) + " \n\n"
    assert len(content.encode()) > 2**20
    kit = {"type": "memory", "collections": {"own": "own"}, "source": {"file": "own.jsonl"}}
    folder = writable.app.root / "assistants/memory"
    file = folder / "toolkits/memory.toolkit.yao"
    file.write_text(json.dumps(kit), encoding="utf-8")
    memory = {"id": 5, "collection": "own", "title": "Long", "content": content, "user": "me"}
    (folder / "own.jsonl").write_text(json.dumps(memory), encoding="utf-8")
    await writable.reload([file])
    assert (await writable.syncs.run("memory")).added == 1
    read = await call(writable, "fetch", {"doc_id": 5, "collection": "own"}, ME)
    assert read["content"].encode() == content.encode()


async def test_a_file_of_memories_may_begin_with_a_mark_and_a_line_in_another_encoding_is_named(
    writable: Host,
) -> None:
    kit = {"type": "memory", "collections": {"own": "own"}, "source": {"file": "own.jsonl"}}
    folder = writable.app.root / "assistants/memory"
    file = folder / "toolkits/memory.toolkit.yao"
    file.write_text(json.dumps(kit), encoding="utf-8")
    memory = {"id": 5, "collection": "own", "title": "Café", "content": "Café", "user": "me"}
    line = json.dumps(memory, ensure_ascii=False)
    (folder / "own.jsonl").write_text(line, encoding="utf-8-sig")
    await writable.reload([file])
    assert (await writable.syncs.run("memory")).added == 1
    (folder / "own.jsonl").write_text(f"\n{line}", encoding="latin-1")
    with pytest.raises(SourceMalformed, match=r"own\.jsonl:2: the line is not in UTF-8"):
        await writable.syncs.run("memory")
