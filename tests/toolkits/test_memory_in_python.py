"""Two-stage memory as three methods in Python."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from inspect import signature
from pathlib import Path

import pytest

from groundhook import Host, NotPermitted, UsageError
from groundhook import sync as blocking
from groundhook.memory import Memory
from tests.toolkits.conftest import OpenSample

RED = {"tenant_id": "acme", "team_id": "red"}


@pytest.fixture
async def host(open_sample: OpenSample) -> AsyncIterator[Host]:
    async with open_sample("memory") as opened:
        yield opened


@pytest.fixture
def memory(host: Host) -> Memory:
    return Memory(host, identity=RED)


async def test_previews_come_first_and_whole_memories_by_their_ids(memory: Memory) -> None:
    previews = await memory.search("rate limits", "backend", limit=2)
    assert previews[0]["id"] == 1
    assert len(previews) == 2
    whole = await memory.fetch(previews[0]["id"], "backend")
    assert whole["content"].startswith("Every API key has a token bucket")
    several = await memory.batch_fetch([(31, "ops"), (404, "qa"), (1, "backend")])
    assert [(one["id"], one["collection"]) for one in several] == [(31, "ops"), (1, "backend")]


@pytest.mark.parametrize(("id", "collection"), [(404, "backend"), (1, "bakend")])
async def test_what_does_not_exist_is_a_value_error(
    memory: Memory, id: int, collection: str
) -> None:
    with pytest.raises(ValueError, match=f"{id}|{collection}"):
        await memory.fetch(id, collection)


async def test_a_search_without_a_threshold_returns_up_to_the_limit_however_far_they_are(
    memory: Memory,
) -> None:
    assert len(await memory.search("a recipe for plum cake", "backend")) == 15
    assert len(await memory.search("a recipe for plum cake", "backend", limit=7)) == 7


async def test_an_identity_without_a_team_and_wrong_arguments_are_errors(host: Host) -> None:
    with pytest.raises(NotPermitted, match="needs a team"):
        await Memory(host, identity={"user_id": "u"}).search("x", "backend")
    with pytest.raises(UsageError, match="limit"):
        await Memory(host, identity=RED).search("x", "backend", limit=0)
    with pytest.raises(UsageError, match="doc_refs"):
        await Memory(host, identity=RED).batch_fetch([(1, "backend")] * 1001)


async def test_tags_are_a_field_to_filter_by(host: Host) -> None:
    request = {
        "type": "kb",
        "query": "connections",
        "filter": {"tags": "postgresql"},
        "threshold": 0,
    }
    partition = {"tenant_id": "acme/team/red", "team_id": "red"}
    collections = ["agents.memory.backend", "agents.memory.ops"]
    found = await host.search({**request, "collections": collections}, identity=partition)
    assert {item.document_id for item in found.items} >= {"3"}
    assert all("postgresql" in (item.data or {})["tags"] for item in found.items)


def test_a_program_without_an_event_loop_reads_the_same_memories(
    synchronised: Callable[[str], Path],
) -> None:
    with blocking.open_host(synchronised("memory")) as host:
        memory = blocking.Memory(host, identity=RED)
        previews = memory.search("rate limits", "backend", limit=2)
        assert previews[0]["id"] == 1
        assert len(previews) == 2
        whole = memory.fetch(1, "backend")
        assert whole["tags"] == ["rate-limiting", "redis"]
        several = memory.batch_fetch([(31, "ops"), (404, "qa"), (1, "backend")])
        assert [(one["id"], one["tags"] != []) for one in several] == [(31, True), (1, True)]
        with pytest.raises(ValueError, match="404"):
            memory.fetch(404, "backend")
        with pytest.raises(ValueError, match="bakend"):
            memory.fetch(1, "bakend")
        with pytest.raises(UsageError, match="limit"):
            memory.search("x", "backend", limit=0)
        others = blocking.Memory(host, identity={"tenant_id": "acme", "team_id": "blue"})
        assert all(each["id"] >= 36 for each in others.search("rate limits", "backend"))
        with pytest.raises(NotPermitted, match="needs a team"):
            blocking.Memory(host).search("x", "backend")


@pytest.mark.parametrize("method", ["search", "fetch", "batch_fetch"])
def test_both_classes_have_the_same_arguments_and_results(method: str) -> None:
    ours, theirs = (signature(getattr(each, method)) for each in (blocking.Memory, Memory))
    assert str(ours) == str(theirs)
