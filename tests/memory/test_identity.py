"""Isolation of memories by identity."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.app_settings import StoreSettings
from groundhook.core.errors import NotPermitted, UnknownName
from groundhook.core.types.turn import Identity
from groundhook.host.chats.memory.memory import Memory, open_memory, space_of
from tests.memory.conftest import ADA, LIMITS, Clock

ids = st.text(st.sampled_from('ab"],\\ \ud800'), max_size=3)


@pytest.mark.parametrize(
    ("name", "noun"), [("user", "user id"), ("team", "team id"), ("chat", "chat id")]
)
async def test_a_namespace_without_its_id_is_an_error_and_not_shared(
    memory: Memory, name: str, noun: str
) -> None:
    with pytest.raises(NotPermitted, match=f"the '{name}' memory needs a {noun}") as caught:
        memory.of(Identity(tenant_id="acme")).namespace(name)
    assert "'context'" in caught.value.hint
    assert "--" not in caught.value.hint  # tests of assistants and servers have no command line


async def test_an_unknown_namespace_is_named_with_the_nearest(memory: Memory) -> None:
    with pytest.raises(UnknownName, match=r"'usr' \(did you mean 'user'\?\)"):
        memory.of(ADA).namespace("usr")


async def test_a_user_finds_the_same_memory_in_the_next_turn_and_another_chat(
    memory: Memory,
) -> None:
    await memory.of(ADA, "chat-1").namespace("user").set("k", "hers")

    assert await memory.of(ADA, "chat-2").namespace("user").get("k") == "hers"


async def test_a_team_shares_its_memory_and_nothing_else(memory: Memory) -> None:
    ada, bob = (
        memory.of(ADA, "chat-1"),
        memory.of(ADA.model_copy(update={"user_id": "bob"}), "chat-1"),
    )
    for name in ("user", "team", "chat"):
        await ada.namespace(name).set("k", "ada's")

    assert {name: await bob.namespace(name).get("k") for name in ("user", "team", "chat")} == {
        "user": None,
        "team": "ada's",
        "chat": None,
    }


async def test_tenants_share_nothing_even_where_all_other_ids_are_the_same(memory: Memory) -> None:
    here, there, nowhere = (
        memory.of(ADA.model_copy(update={"tenant_id": tenant}), "chat-1")
        for tenant in ("acme", "other", "")
    )
    for name in ("user", "team", "chat"):
        await here.namespace(name).set("k", 1)

        assert await there.namespace(name).keys() == []
        assert await nowhere.namespace(name).keys() == []


async def test_another_user_or_an_anonymous_caller_cannot_read_a_chat_by_its_id(
    memory: Memory,
) -> None:
    await memory.of(ADA, "chat-1").namespace("chat").set("k", "secret")
    for stranger in (
        ADA.model_copy(update={"user_id": "eve"}),
        ADA.model_copy(update={"user_id": ""}),
    ):
        assert await memory.of(stranger, "chat-1").namespace("chat").keys() == []


async def test_the_context_ends_with_its_turn(memory: Memory) -> None:
    turn = memory.of(ADA, "chat-1")
    await turn.namespace("context").set("k", 1)

    assert await turn.namespace("context").get("k") == 1
    assert await memory.of(ADA, "chat-1").namespace("context").get("k") is None


async def test_clearing_one_namespace_leaves_the_others(memory: Memory) -> None:
    turn = memory.of(ADA, "chat-1")
    for name in ("user", "team", "chat", "context"):
        await turn.namespace(name).set("k", name)
    await turn.namespace("chat").clear()

    assert [
        await turn.namespace(name).get("k") for name in ("user", "team", "chat", "context")
    ] == [
        "user",
        "team",
        None,
        "context",
    ]


@given(st.lists(st.tuples(ids, ids, ids, ids), min_size=2, max_size=2, unique=True))
def test_no_two_owners_have_one_space_whatever_their_ids_hold(
    owners: list[tuple[str, str, str, str]],
) -> None:
    spaces: list[dict[str, str]] = []
    for tenant, team, user, chat in owners:
        identity = Identity(tenant_id=tenant, team_id=team, user_id=user)
        wanted = {
            "user": (user, [tenant, user]),
            "team": (team, [tenant, team]),
            "chat": (chat, [tenant, user, chat]),
        }
        made = {}
        for name, (id, whose) in wanted.items():
            if id:
                made[repr((name, whose))] = space_of(name, identity, chat)
            else:
                with pytest.raises(NotPermitted):
                    space_of(name, identity, chat)
        spaces.append(made)
    everyone = [*spaces[0].items(), *spaces[1].items()]
    for (owner, space), (other, same) in itertools.combinations(everyone, 2):
        assert (owner == other) == (space == same)


async def test_a_memory_outlives_its_process_and_another_sees_a_change_at_once(
    path: Path, clock: Clock, store: StoreSettings
) -> None:
    async with (
        open_memory(path, clock, LIMITS, store) as one,
        open_memory(path, clock, LIMITS, store) as other,
    ):
        await one.of(ADA).namespace("user").set("k", 1)
        assert await other.of(ADA).namespace("user").incr("k") == 2
        assert await one.of(ADA).namespace("user").get("k") == 2

    async with open_memory(path, clock, LIMITS, store) as later:
        assert await later.of(ADA).namespace("user").get("k") == 2
