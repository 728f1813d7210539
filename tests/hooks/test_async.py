"""Asynchronous hooks: promises, timers between them, and what happens when nothing will ever settle
a promise."""

from __future__ import annotations

import time
from typing import Any

import pytest

from groundhook.core.errors import HookLimit, HookThrew
from groundhook.core.types.turn import NextPayload
from tests.hooks.conftest import Hooks, Services


async def created(hooks: Hooks, body: str, services: Services | None = None, **limits: int) -> Any:
    """The metadata that an async Create with this body returns under `value`."""
    returned = await hooks.create(
        f"async function Create(ctx: any) {{{body}}}", services, None, **limits
    )
    assert returned is not None
    assert returned.metadata is not None
    return returned.metadata["value"]


async def test_an_awaited_search_is_the_search_itself(hooks: Hooks) -> None:
    assert (
        await created(
            hooks,
            "const found = await ctx.search.Web('q'); return { metadata: { value: found.query } };",
        )
        == "q"
    )


async def test_searches_in_promise_all_come_in_order(hooks: Hooks) -> None:
    body = """
        const found = await Promise.all([ctx.search.Web('a'), ctx.search.KB('b')]);
        return { metadata: { value: found.map((one: any) => one.query) } };
    """
    assert await created(hooks, body) == ["a", "b"]


async def test_timers_fire_in_the_order_in_which_they_are_due_and_with_their_arguments(
    hooks: Hooks,
) -> None:
    body = """
        const order: string[] = [];
        setTimeout(() => order.push("third"), 12);
        setTimeout((what: string) => order.push(what), 3, "first");
        const fourth = new Promise<void>((resolve) => setTimeout(() => {
            order.push("second");
            setTimeout(() => { order.push("fourth"); resolve(); }, 10);
        }, 6));
        const never = setTimeout(() => order.push("cleared"), 4);
        clearTimeout(never);
        clearTimeout(undefined);
        await fourth;
        return { metadata: { value: order } };
    """
    assert await created(hooks, body) == ["first", "second", "third", "fourth"]


async def test_timers_of_the_same_moment_fire_in_the_order_in_which_they_were_set(
    hooks: Hooks,
) -> None:
    body = """
        const order: number[] = [];
        for (let n = 0; n < 5; n++) setTimeout(() => order.push(n));
        await new Promise((resolve) => setTimeout(resolve, 1));
        return { metadata: { value: order } };
    """
    assert await created(hooks, body) == [0, 1, 2, 3, 4]


async def test_promises_settle_between_two_timers(hooks: Hooks) -> None:
    body = """
        const order: string[] = [];
        setTimeout(() => { order.push("timer 1"); Promise.resolve().then(() => order.push("promise")); }, 1);
        setTimeout(() => order.push("timer 2"), 1);
        await new Promise((resolve) => setTimeout(resolve, 2));
        return { metadata: { value: order } };
    """
    assert await created(hooks, body) == ["timer 1", "promise", "timer 2"]


async def test_an_interval_fires_until_it_is_cleared_from_within(hooks: Hooks) -> None:
    body = """
        let count = 0;
        await new Promise<void>((resolve) => {
          const id = setInterval(() => { if (++count === 3) { clearInterval(id); setTimeout(resolve, 10); } }, 1);
        });
        return { metadata: { value: count } };
    """
    assert await created(hooks, body) == 3


async def test_a_host_call_in_a_timer_is_a_call_like_any_other(hooks: Hooks) -> None:
    services = Services()
    body = """
        const found = await new Promise<any>((resolve) => setTimeout(() => resolve(ctx.search.Web("later")), 1));
        return { metadata: { value: found.query } };
    """
    assert await created(hooks, body, services) == "later"
    assert [request.query for request in services.requests] == ["later"]


async def test_microtasks_run_before_timers(hooks: Hooks) -> None:
    body = """
        const order: string[] = [];
        setTimeout(() => order.push("timer"), 0);
        queueMicrotask(() => order.push("microtask"));
        order.push("now");
        await new Promise((resolve) => setTimeout(resolve, 2));
        return { metadata: { value: order } };
    """
    assert await created(hooks, body) == ["now", "microtask", "timer"]


async def test_waiting_for_a_timer_takes_as_long_as_it_says_and_no_cpu(hooks: Hooks) -> None:
    began = time.monotonic()
    body = (
        "await new Promise((resolve) => setTimeout(resolve, 500)); return { metadata: { value: 1"
        " } };"
    )
    await created(hooks, body, cpu_ms=400)
    assert time.monotonic() - began >= 0.5


async def test_a_rejected_promise_names_the_line_of_the_source(hooks: Hooks) -> None:
    source = """\
        interface Unused { a: string }

        async function inner() {
          await null;
          throw new RangeError("too far");
        }
        async function Create() { await inner(); }
    """
    with pytest.raises(HookThrew, match="Create threw RangeError: too far") as caught:
        await hooks.create(source)
    assert str(caught.value.place) == "assistants/x/index.ts:5:9"


async def test_a_promise_may_be_rejected_with_any_value(hooks: Hooks) -> None:
    with pytest.raises(HookThrew, match="Create threw plain"):
        await hooks.create("async function Create() { await null; throw 'plain'; }")


async def test_a_promise_that_nothing_can_settle_is_an_error_at_once(hooks: Hooks) -> None:
    with pytest.raises(
        HookThrew, match="Create returned a promise that can never be settled"
    ) as caught:
        await hooks.create(
            "async function Create() { setTimeout(() => 1, 5); await new Promise(() => {}); }",
            wall_ms=3_600_000,
        )
    assert "no timer is left" in caught.value.hint


async def test_a_promise_that_is_late_meets_the_wall_limit(hooks: Hooks) -> None:
    with pytest.raises(HookLimit) as caught:
        await hooks.create(
            "async function Create() { await new Promise((r) => setTimeout(r, 60000)); }",
            wall_ms=100,
        )
    assert caught.value.limit == "wall_ms"


async def test_an_endless_loop_in_a_timer_meets_the_cpu_limit(hooks: Hooks) -> None:
    with pytest.raises(HookLimit) as caught:
        await hooks.create(
            "async function Create() { setTimeout(() => { for (;;); }, 1); await new Promise(() =>"
            " {}); }",
            cpu_ms=100,
        )
    assert caught.value.limit == "cpu_ms"


async def test_an_error_in_a_timer_or_a_microtask_is_reported_and_the_hook_goes_on(
    hooks: Hooks,
) -> None:
    services = Services()
    body = """
        setTimeout(() => {
          throw new Error("boom");
        }, 1);
        queueMicrotask(() => { throw "bang"; });
        await new Promise((resolve) => setTimeout(resolve, 3));
        return { metadata: { value: "on" } };
    """
    assert await created(hooks, body, services) == "on"
    assert services.warnings == [
        ("hook_uncaught", "a microtask of Create threw bang"),
        ("hook_uncaught", "a timer of Create threw boom"),
    ]
    assert services.places == ["assistants/x/index.ts", "assistants/x/index.ts:3:17"]


SAVE = "async function save() {\n  throw new RangeError('too far');\n}\n"
UNAWAITED = {
    "in a statement": ("save();", "2:9"),
    "kept in a variable": ("const saved = save();", "2:9"),
    "behind a condition": ("messages.length && save();", "2:9"),
    "in a promise chain": ("Promise.resolve(1).then(save);", "2:9"),
    "in forEach": ("[1].forEach(async () => { throw new RangeError('too far'); });", "5:33"),
    "by name": ("[1].forEach(save);", "2:9"),
    "by an arrow": ("[1].forEach((one) => save());", "2:9"),
    "by a method": ("const it = { save };\n[1].forEach(it.save.bind(it));", "2:9"),
    "given to void": ("[1].map(() => void save());", "2:9"),
    "kept where nothing was": ("let saved: any; saved ??= save();", "2:9"),
    "in what makes a promise": ("new Promise(async () => { await save(); });", "2:9"),
}


@pytest.mark.parametrize("kind", ["function", "async function"])
@pytest.mark.parametrize("way", UNAWAITED)
async def test_an_unawaited_error_is_reported_with_its_line_and_the_hook_goes_on(
    hooks: Hooks, way: str, kind: str
) -> None:
    call, place = UNAWAITED[way]
    services = Services()
    source = (
        f"{SAVE}{kind} Create(ctx: any, messages: any) {{\n{call}\nreturn {{ search: false }};\n}}"
    )
    returned = await hooks.create(source, services)
    assert returned is not None
    assert returned.search is False
    assert [code for code, _ in services.warnings] == ["hook_uncaught"]
    assert services.warnings[0][1].startswith(
        "an async function that Create does not await threw RangeError: too far"
    )
    assert services.places == [f"assistants/x/index.ts:{place}"]


async def test_what_somebody_awaits_in_time_is_no_error_that_nobody_heard(hooks: Hooks) -> None:
    services = Services()
    body = """
        const fails = async (n: number) => { if (n > 0) throw new Error("no " + n); };
        const seen: string[] = [];
        const first = fails(1), second = fails(2);
        await null;
        try { await first; } catch (error: any) { seen.push(error.message); }
        second.catch((error) => seen.push(error.message));
        await Promise.all([3].map(async (n) => fails(n))).catch((error) => seen.push(error.message));
        setTimeout(async () => { try { await fails(4); } catch (error: any) { seen.push(error.message); } }, 1);
        await new Promise((resolve) => setTimeout(resolve, 3));
        const fine = fails(0);
        const names: any[] = [], list = { of: names, add(this: any, one: any) { this.of.push(one); } };
        ["a", "b"].forEach(list.add, list);
        ["c"].forEach((one) => names.push(one));
        if (names.join() !== "a,b,c") throw new Error(names.join());
        return { metadata: { value: seen, same: fine instanceof Promise && fine.constructor === Promise } };
    """
    assert await created(hooks, body, services) == ["no 1", "no 2", "no 3", "no 4"]
    assert services.warnings == []


async def test_async_functions_that_are_passed_on_take_as_many_arguments_as_they_say(
    hooks: Hooks,
) -> None:
    assert (
        await created(
            hooks,
            "const arity = (f: any) => f.length; return { metadata: { value: arity(async (a: any,"
            " b: any) => a) } };",
        )
        == 2
    )


async def test_promises_of_a_class_of_the_hooks_own_keep_their_class(hooks: Hooks) -> None:
    services = Services()
    source = """\
        class Task extends Promise<number> {
          static made = 0;
          constructor(run: any) { super(run); Task.made++; }
          twice() { return this.then((n) => 2 * n) as Task; }
        }
        const start = (n: number) => new Task((resolve: any) => resolve(n));
        async function Create() {
          const task = start(3);
          const value = await task.twice().twice();
          const lost = start(1).then(() => { throw new Error("lost"); });
          return { metadata: { value, made: Task.made, lost: lost instanceof Task } };
        }
    """
    returned = await hooks.create(source, services)
    assert returned is not None
    # As without a host: one for each `then`, and for `await`.
    assert returned.metadata == {"value": 12, "made": 6, "lost": True}
    assert [message.rpartition("threw ")[2] for _, message in services.warnings] == ["lost"]


async def test_the_error_of_an_async_timer_is_reported(hooks: Hooks) -> None:
    services = Services()
    source = """\
        async function late() { throw new Error("late"); }
        async function Create() {
          setTimeout(late, 1);
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
    """
    await hooks.create(source, services)
    assert services.warnings == [
        ("hook_uncaught", "an async function that Create does not await threw late")
    ]
    assert services.places == ["assistants/x/index.ts:1:31"]


async def test_work_that_nobody_awaits_is_done_before_the_hook_has_ended(hooks: Hooks) -> None:
    services = Services()
    source = """
        async function later(ctx: any) {
          await null;
          ctx.search.Web("later");
          queueMicrotask(() => { throw new Error("last"); });
        }
        function Create(ctx: any) { later(ctx); return { search: false }; }
    """
    await hooks.create(source, services)
    assert [request.query for request in services.requests] == ["later"]
    assert services.warnings == [("hook_uncaught", "a microtask of Create threw last")]


async def test_a_hook_that_throws_as_well_tells_both(hooks: Hooks) -> None:
    services = Services()
    with pytest.raises(HookThrew, match="Create threw own"):
        await hooks.create(
            "async function save() { throw 1; }\nfunction Create() { save(); throw new"
            " Error('own'); }",
            services,
        )
    assert [message for _, message in services.warnings] == [
        "an async function that Create does not await threw 1"
    ]


async def test_ten_of_many_unawaited_errors_are_reported_and_the_rest_counted(
    hooks: Hooks,
) -> None:
    services = Services()
    await hooks.create(
        "async function save() { throw 'x'; }\nfunction Create() { for (let n = 0; n < 99; n++)"
        " save(); }",
        services,
    )
    expected = ["x"] * 10 + ["89 more errors"]
    assert [message.rpartition("threw ")[2] for _, message in services.warnings] == expected


async def test_microtasks_without_end_that_nobody_awaits_end_their_hook(hooks: Hooks) -> None:
    with pytest.raises(HookLimit) as caught:
        await hooks.create(
            "function Create() { (async () => { for (;;) await null; })(); }", cpu_ms=100
        )
    assert caught.value.limit == "cpu_ms"


async def test_timers_that_are_left_when_a_hook_ends_do_not_fire_in_the_next_one(
    hooks: Hooks,
) -> None:
    source = """
        let fired = 0;
        function Create() { setTimeout(() => fired++, 1); setInterval(() => fired++, 1); }
        async function Next() { await new Promise((resolve) => setTimeout(resolve, 10)); return { data: fired }; }
    """
    async with hooks.engine.open(hooks.turn(source)) as session:
        await session.create([], {})
        returned = await session.next(NextPayload(), {})
    assert returned is not None
    assert returned.data == 0


async def test_compilation_in_the_background_of_v8_is_awaited(hooks: Hooks) -> None:
    body = """
        const empty = await WebAssembly.compile(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]));
        return { metadata: { value: String(empty) } };
    """
    assert await created(hooks, body) == "[object WebAssembly.Module]"


async def test_a_thenable_of_the_hooks_own_is_awaited(hooks: Hooks) -> None:
    source = (
        "function Create() { return { then(resolve: any) { setTimeout(() => resolve({ metadata: {"
        " value: 7 } }), 1); } }; }"
    )
    returned = await hooks.create(source)
    assert returned is not None
    assert returned.metadata == {"value": 7}


@pytest.mark.parametrize("call", ["setTimeout('code', 1)", "setInterval()", "queueMicrotask(1)"])
async def test_only_functions_can_be_passed_to_timers(hooks: Hooks, call: str) -> None:
    with pytest.raises(HookThrew, match=r"TypeError: .* must be a function"):
        await hooks.value(call)


async def test_a_hook_that_replaces_promise_and_date_still_gets_its_timers(hooks: Hooks) -> None:
    source = """
        async function Create() {
          const done = new Promise((resolve) => setTimeout(() => resolve({ metadata: { value: "fired" } }), 2));
          const evil: any = () => { throw new Error("mine"); };
          Promise.prototype.then = evil; Promise.resolve = evil; Date.now = evil; Reflect.apply = evil;
          (globalThis as any).String = evil;
          return await done;
        }
    """
    returned = await hooks.create(source)
    assert returned is not None
    assert returned.metadata == {"value": "fired"}
