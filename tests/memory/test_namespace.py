"""Behaviour of every namespace: in a file, in PostgreSQL and in the turn."""

from __future__ import annotations

import json
import math
from typing import Any

import anyio
import pytest

from groundhook.core.errors import UsageError
from groundhook.host.chats.memory.memory import Namespace
from tests.memory.conftest import Clock


async def test_a_value_comes_back_as_it_was_set(kept: Namespace) -> None:
    value = {"list": [1, 2.5, None, True], "text": "שלום 🙂 \x00", "half": "\ud83d", "none": {}}
    await kept.set("k", value)

    assert await kept.get("k") == value


async def test_null_is_a_value_and_a_missing_key_is_none(kept: Namespace) -> None:
    await kept.set("k", None)

    assert (await kept.get("k"), await kept.has("k")) == (None, True)
    assert (await kept.get("other"), await kept.has("other")) == (None, False)


async def test_changing_a_value_after_get_or_set_does_not_change_the_memory(
    kept: Namespace,
) -> None:
    given = {"list": [1]}
    await kept.set("k", given)
    given["list"].append(2)
    (await kept.get("k"))["list"].append(3)

    assert await kept.get("k") == {"list": [1]}


async def test_delete_returns_whether_the_key_existed(kept: Namespace) -> None:
    await kept.set("k", 0)

    assert [await kept.delete("k"), await kept.delete("k"), await kept.has("k")] == [
        True,
        False,
        False,
    ]


async def test_get_del_returns_a_value_once(kept: Namespace) -> None:
    await kept.set("k", [1])

    assert [await kept.get_del("k"), await kept.get_del("k")] == [[1], None]


async def test_keys_are_sorted_counted_and_cleared(kept: Namespace) -> None:
    for key in ("b", "a", "é", "B"):
        await kept.set(key, key)

    assert await kept.keys() == ["B", "a", "b", "é"]
    assert await kept.length() == 4
    assert await kept.clear() == 4
    assert (await kept.keys(), await kept.length(), await kept.clear()) == ([], 0, 0)


async def test_counters_start_at_zero_and_go_both_ways(kept: Namespace) -> None:
    assert [
        await kept.incr("n"),
        await kept.incr("n", 5),
        await kept.decr("n"),
        await kept.decr("n", 0.5),
    ] == [1, 6, 5, 4.5]
    assert await kept.get("n") == 4.5


@pytest.mark.parametrize("value", ["5", None, True, [1], {"n": 1}])
async def test_incrementing_a_value_that_is_not_a_number_is_an_error_and_keeps_it(
    kept: Namespace, value: Any
) -> None:
    await kept.set("k", value)

    with pytest.raises(UsageError, match="the value of 'k' is not a number"):
        await kept.incr("k")
    assert await kept.get("k") == value


@pytest.mark.parametrize("by", ["1", None, True, math.nan, math.inf, 2**53])
async def test_an_increment_that_is_not_a_number_is_an_error(kept: Namespace, by: Any) -> None:
    for count in (kept.incr, kept.decr):
        with pytest.raises(UsageError, match="the increment of a counter must be a number"):
            await count("n", by)
    assert not await kept.has("n")


@pytest.mark.parametrize(("start", "by"), [(2**53 - 1, 1), (-(2**53) + 1, -1), (1.7e308, 1.7e308)])
async def test_an_inexact_sum_is_an_error_and_keeps_the_old_value(
    kept: Namespace, start: float, by: float
) -> None:
    await kept.set("n", start)

    with pytest.raises(UsageError, match="cannot represent exactly"):
        await kept.incr("n", by)
    assert await kept.get("n") == start


async def test_concurrent_increments_are_not_lost(kept: Namespace) -> None:
    seen: list[float] = []

    async def count() -> None:
        seen.append(await kept.incr("n"))

    async with anyio.create_task_group() as tasks:
        for _ in range(100):
            tasks.start_soon(count)
    assert sorted(seen) == list(range(1, 101))


# ---- time to live


async def test_a_value_expires_after_its_time_to_live(kept: Namespace, clock: Clock) -> None:
    await kept.set("k", 1, ttl_ms=1000)
    clock.pass_ms(999)
    assert await kept.get("k") == 1

    clock.pass_ms(1)
    assert await kept.get("k") is None
    assert (await kept.has("k"), await kept.keys(), await kept.length()) == (False, [], 0)
    assert (await kept.delete("k"), await kept.get_del("k"), await kept.clear()) == (False, None, 0)


async def test_setting_again_without_a_time_to_live_removes_the_expiry(
    kept: Namespace, clock: Clock
) -> None:
    await kept.set("k", 1, ttl_ms=10)
    await kept.set("k", 2)
    clock.pass_ms(1e9)

    assert await kept.get("k") == 2


async def test_a_counter_keeps_its_time_to_live_and_restarts_after_it(
    kept: Namespace, clock: Clock
) -> None:
    await kept.set("n", 5, ttl_ms=1000)
    clock.pass_ms(600)
    assert await kept.incr("n") == 6

    clock.pass_ms(400)
    assert await kept.incr("n") == 1
    clock.pass_ms(1e9)
    assert await kept.get("n") == 1


@pytest.mark.parametrize("ttl", [0, -1, math.nan, math.inf, "5", True, 2**60])
async def test_an_invalid_time_to_live_is_an_error(kept: Namespace, ttl: Any) -> None:
    with pytest.raises(UsageError, match="a positive number of milliseconds"):
        await kept.set("k", 1, ttl)
    assert not await kept.has("k")


# ---- bounds


@pytest.mark.parametrize("key", ["", None, 5, "\ud800", "x" * 41])
async def test_every_call_rejects_an_invalid_key(kept: Namespace, key: Any) -> None:
    for call in (kept.get, kept.delete, kept.has, kept.incr, kept.decr, kept.get_del):
        with pytest.raises(UsageError, match=r"key"):
            await call(key)
    with pytest.raises(UsageError, match=r"key"):
        await kept.set(key, 1)


async def test_the_size_limit_of_a_value_is_exact(kept: Namespace) -> None:
    await kept.set("k", "é" * 511)  # 1,022 bytes and two quotes

    with pytest.raises(UsageError, match="takes 1025 bytes as JSON; at most 1 kB") as caught:
        await kept.set("k", "x" * 1023)
    assert "memory.value_kb" in str(caught.value)
    assert await kept.get("k") == "é" * 511


@pytest.mark.parametrize("value", [math.nan, [math.inf], {1, 2}, b"x", object()])
async def test_a_value_that_is_not_json_is_an_error(kept: Namespace, value: Any) -> None:
    with pytest.raises(UsageError, match="'k' is not JSON"):
        await kept.set("k", value)


async def test_deep_nesting_is_an_error_and_accepted_values_can_be_read(
    kept: Namespace,
) -> None:
    deepest = json.loads("[" * 200 + "]" * 200)
    await kept.set("k", deepest)
    assert await kept.get("k") == deepest

    with pytest.raises(UsageError, match="nested more than 200 levels"):
        await kept.set("k", [deepest])


async def test_a_full_namespace_rejects_new_keys_but_accepts_changes(
    kept: Namespace,
) -> None:
    for n in range(20):
        await kept.set(f"k{n}", n)

    for call in (kept.set("new", 1), kept.incr("new")):
        with pytest.raises(UsageError, match="has 20 keys already") as caught:
            await call
        assert "memory.keys" in str(caught.value)
    await kept.set("k0", "changed")
    assert await kept.incr("k1") == 2
    await kept.delete("k2")
    await kept.set("new", 1)
    assert await kept.length() == 20


async def test_expired_keys_do_not_count(kept: Namespace, clock: Clock) -> None:
    for n in range(20):
        await kept.set(f"k{n}", n, ttl_ms=5)
    clock.pass_ms(5)
    for n in range(20):
        await kept.set(f"new{n}", n)

    assert await kept.length() == 20
