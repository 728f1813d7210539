"""What goes wrong in a turn, and what is kept: errors out of task groups, deadlines, turns handed
on, a host that is closed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from pydantic import BaseModel

from groundhook import Host, open_host
from groundhook.core.errors import ModelUnreachable, SourceError, StorageError, UnknownName
from groundhook.core.ports import Delta, Handler, ModelCall, Scope, SourceResult
from groundhook.core.types.events import Event
from groundhook.core.types.search import SearchRequest, SearchType
from groundhook.core.types.tools import Tool
from groundhook.host.testing.canned import CannedSource, canned_item
from tests.conftest import MakeApp
from tests.parts.turns import ASSISTANT, COLLECTION, app_with, end, kb, of, run, scripted, web

NO_SEARCH = '{"name": "A", "connector": "script"}'


async def grouped(error: Exception) -> None:
    """Raise as code with a task group does."""

    async def fail() -> None:
        raise error

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fail)


class Grouped(CannedSource):
    async def search(self, *_: Any) -> SourceResult:
        await grouped(SourceError("the source is down"))
        return SourceResult()


async def test_a_source_that_fails_in_a_task_group_is_an_error_on_its_result(
    make_app: MakeApp,
) -> None:
    events = await run(
        app_with(make_app), sources={"kb": Grouped({}), "web": web()}, script=["Fine {ref:0}."]
    )
    assert not of(events, "error")
    assert [event.error for event in of(events, "search_complete") if event.error] == [
        "the source is down"
    ]
    assert end(events).content.startswith("Fine #ref:")


async def test_the_model_receives_the_error_of_a_tool_that_fails_in_a_task_group(
    make_app: MakeApp,
) -> None:
    class Nothing(BaseModel):
        pass

    async def fails(_: Nothing) -> None:
        await grouped(SourceError("no luck"))

    tool = Tool(name="fails", description="", arguments=Nothing, run=fails)
    model = scripted({"tool_calls": [{"name": "fails", "arguments": {}}]}, "Sorry.")
    events = await run(app_with(make_app, NO_SEARCH), connector=model, tools=[tool])
    assert [event.error for event in of(events, "tool_result")] == ["no luck"]
    assert end(events).content == "Sorry."


class GroupedModel:
    @asynccontextmanager
    async def stream(self, call: ModelCall, /) -> AsyncIterator[AsyncIterator[Delta]]:
        await grouped(ModelUnreachable("nobody there"))
        raise AssertionError(call)
        yield


async def test_a_model_that_fails_in_a_task_group_does_not_keep_next_from_running(
    make_app: MakeApp,
) -> None:
    app = app_with(
        make_app, NO_SEARCH, index_ts="const Next = (ctx, payload) => ({ data: payload.error });"
    )
    async with (
        open_host(app, environment={}, connectors={"script": GroupedModel()}) as host,
        host.stream("a", "question") as stream,
    ):
        events = [event async for event in stream]
    assert end(events).data == "nobody there"
    assert [event.code for event in of(events, "error")] == ["model_unreachable"]


async def test_a_timeout_within_a_source_is_not_reported_as_our_deadline(
    make_app: MakeApp,
) -> None:
    class Impatient(CannedSource):
        async def search(self, *_: Any) -> SourceResult:
            raise TimeoutError("its own")

    events = await run(app_with(make_app), sources={"kb": Impatient({}), "web": web()})
    (error,) = [event.error for event in of(events, "search_complete") if event.error]
    assert "TimeoutError: its own" in error
    assert "did not end within" not in error


HANDING = {
    "create": "const Create = () => ({ delegate: { agent_id: 'b' } });",
    "next": "const Next = () => ({ delegate: { agent_id: 'b' }, metadata: { from: 'a' } });",
}


async def handed_on(make_app: MakeApp, hook: str, other: str, script: Sequence[Any]) -> list[Event]:
    app = make_app(
        {
            "assistants/a/package.yao": ASSISTANT,
            "assistants/a/index.ts": HANDING[hook],
            "assistants/b/package.yao": ASSISTANT,
            "assistants/b/index.ts": other,
            "kb/docs.kb.yao": COLLECTION,
        }
    )
    return await run(app, script=script)


async def test_the_text_of_another_assistant_is_kept_when_its_hook_fails(
    make_app: MakeApp,
) -> None:
    events = await handed_on(
        make_app, "create", "function Next() { throw new Error('boom'); }", ["Answer of b {ref:0}."]
    )
    assert [event.code for event in of(events, "error")] == ["hook_threw"]
    assert end(events).content.startswith("Answer of b #ref:")
    assert [cited.verdict for cited in end(events).citations] == ["ok"]


async def test_the_end_of_a_turn_holds_all_that_was_streamed_by_whichever_assistant(
    make_app: MakeApp,
) -> None:
    events = await handed_on(make_app, "next", "", ["First {ref:0}.", "Second {ref:1}."])
    final = end(events)
    assert final.content == "".join(event.delta for event in of(events, "text"))
    assert "\n\nSecond" in final.content
    assert len(final.citations) == 2
    assert final.metadata == {"from": "a"}


async def test_when_model_and_next_both_fail_both_are_reported(make_app: MakeApp) -> None:
    app = app_with(make_app, NO_SEARCH, index_ts="function Next() { throw new Error('boom'); }")
    events = await run(app, script=[{"text": "Half", "cut": True}])
    assert [event.code for event in of(events, "error")] == ["model_truncated", "hook_threw"]
    assert end(events).content == "Half"


@pytest.mark.parametrize(
    ("hook", "code"),
    [
        ("function Create( {", "hook_syntax"),
        ("const Create = () => ({ citation: { format: 'x' } });", "hook_return"),
        ("const Create = () => ({ messages: 5 });", "hook_return"),
    ],
)
async def test_on_error_continue_holds_for_whatever_is_wrong_with_a_hook(
    make_app: MakeApp, hook: str, code: str
) -> None:
    package = ASSISTANT.replace('"name"', '"hooks": {"on_error": "continue"}, "name"')
    events = await run(app_with(make_app, package, index_ts=hook))
    assert [event.code for event in of(events, "warning")] == [code]
    assert not of(events, "error")
    assert end(events).content == "Fine."


async def test_a_host_that_is_closed_ends_its_turns_and_says_so(make_app: MakeApp) -> None:
    held = CannedSource({"*": ()}, gate=anyio.Event())
    sources: dict[SearchType, Handler] = {"kb": held, "web": held}
    events: list[Event] = []
    searching = anyio.Event()

    async def listen(host: Host) -> None:
        async with host.stream("a", "question") as stream:
            async for event in stream:
                events.append(event)
                if event.type == "search_start":
                    searching.set()

    with anyio.fail_after(60):
        async with (
            anyio.create_task_group() as tasks,
            open_host(
                app_with(make_app),
                environment={},
                sources=sources,
                connectors={"script": scripted()},
            ) as host,
        ):
            tasks.start_soon(listen, host)
            await searching.wait()
    assert [event.code for event in of(events, "error")] == ["host_closed"]
    assert events[-1].type == "stream_end"


async def test_an_error_of_the_callers_own_code_is_raised_unchanged(make_app: MakeApp) -> None:
    app = app_with(make_app, NO_SEARCH)
    with pytest.raises(KeyError, match="mine"):
        async with (
            open_host(app, environment={}, connectors={"script": scripted("Fine.")}) as host,
            host.stream("a", "q"),
        ):
            raise KeyError("mine")
    with pytest.raises(UnknownName, match="no assistant 'zz'"):
        async with open_host(app, environment={}) as host, host.stream("zz", "q"):
            pass


async def test_a_search_for_a_hook_ends_before_the_hooks_call_so_that_others_keep_what_they_found(
    make_app: MakeApp,
) -> None:
    package = ASSISTANT.replace('"name"', '"hooks": {"limits": {"call_ms": 3000}}, "name"')
    hook = """
    function Create(ctx) {
      const found = ctx.search.All([{type: "web", query: "a"}, {type: "kb", query: "b"}]);
      return { metadata: { found: found.map((each) => [each.items.length, each.error ?? ""]) }, search: false };
    }
    """
    slow = CannedSource({"*": ()}, gate=anyio.Event())
    events = await run(
        app_with(make_app, package, index_ts=hook),
        sources={"web": slow, "kb": kb(canned_item("k"))},
    )
    (none, error), (one, fine) = end(events).metadata["found"]
    assert (none, one, fine) == (0, 1, "")
    assert "hooks.limits.call_ms" in error


class Stubborn(CannedSource):
    """A source that cannot be interrupted, as one that computes in a thread."""

    async def search(self, request: SearchRequest, scope: Scope, /) -> SourceResult:
        with anyio.CancelScope(shield=True):
            found = await super().search(request, scope)
        await anyio.lowlevel.checkpoint()
        return found


async def test_a_search_that_outlasts_the_hooks_call_names_the_limit_that_ended_it(
    make_app: MakeApp,
) -> None:
    package = ASSISTANT.replace('"name"', '"hooks": {"limits": {"call_ms": 200}}, "name"')
    hook = """
    function Create(ctx) {
      return { metadata: { error: ctx.search.Web("a").error }, search: false };
    }
    """
    events = await run(
        app_with(make_app, package, index_ts=hook),
        sources={"web": Stubborn({"*": ()}, delay=0.5), "kb": kb()},
    )
    [searched] = of(events, "search_complete")
    assert searched.error == (
        "the web search did not end within 180 ms (nine tenths of hooks.limits.call_ms, which is"
        " shorter than search.web.timeout_ms)"
    )
    assert "hooks.limits.call_ms" in end(events).metadata["error"]


async def test_a_requested_search_that_is_impossible_is_reported(make_app: MakeApp) -> None:
    # A web source given to open_host is always ready, so this app has the built-in one.
    events = await run(app_with(make_app, NO_SEARCH), search=True, sources={"kb": kb()})
    assert ["nothing to search" in event.message for event in of(events, "warning")] == [True]


@pytest.mark.parametrize("own", ["agents.b.secret", "open"])
async def test_another_assistants_collection_is_not_reached_by_its_name(
    make_app: MakeApp, own: str
) -> None:
    app = make_app(
        {
            "assistants/a/package.yao": NO_SEARCH,
            "assistants/b/package.yao": NO_SEARCH,
            "assistants/b/kb/secret.kb.yao": COLLECTION,
            "kb/open.kb.yao": COLLECTION,
        }
    )
    part = {"type": "data", "data": {"sources": [{"type": "kb_collection", "name": own}]}}
    messages = [{"role": "user", "content": [{"type": "text", "text": "question"}, part]}]
    source = kb()
    events = await run(app, messages, sources={"kb": source})
    errors = [event.error for event in of(events, "search_complete") if event.error]
    if own == "open":
        assert (errors, len(source.requests)) == ([], 1)
    else:
        assert ["belongs to another assistant" in error for error in errors] == [True]
        assert source.requests == []


async def test_the_trace_has_the_reason_for_each_items_rank_or_removal(
    make_app: MakeApp,
) -> None:
    package = ASSISTANT.replace('"web": true', '"web": false, "rerank": {"top_n": 1}')
    events = await run(app_with(make_app, package))
    (merge,) = [
        event.node.data
        for event in of(events, "trace")
        if event.node.type == "merge" and event.node.data.get("entries")
    ]
    assert [entry["title"] for entry in merge["entries"]] == ["k1"]
    assert [(entry["title"], entry["dropped"]) for entry in merge["dropped"]] == [
        ("k2", "beyond the best 1")
    ]
    assert {event.item.weight for event in of(events, "search_result")} == {0.6}


async def test_a_node_that_was_stopped_says_so_and_no_address(make_app: MakeApp) -> None:
    held = CannedSource({"*": ()}, gate=anyio.Event())
    hook = """function Create(ctx) {
      ctx.search.Any([{type: "web", query: "a"}, {type: "kb", query: "b"}]);
      return { search: false };
    }"""
    events = await run(app_with(make_app, index_ts=hook), sources={"web": held, "kb": kb()})
    failed = {
        event.node.data["error"] for event in of(events, "trace") if event.node.status == "failed"
    }
    assert failed == {"stopped"}


async def test_a_state_folder_that_cannot_be_made_is_reported_with_its_path(
    make_app: MakeApp,
) -> None:
    app = app_with(make_app, NO_SEARCH)
    (app / ".groundhook").write_text("in the way", encoding="utf-8")
    with pytest.raises(StorageError, match=r"the state folder '.*' cannot be made"):
        async with open_host(app, environment={}):
            pass


LEAVES = """
import sys
import anyio, anyio.to_thread
from groundhook import open_host

async def leave():
    sys.exit(3)

async def main(app):
    async with open_host(app):
        await anyio.to_thread.run_sync(int)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(leave)
            await anyio.sleep_forever()

anyio.run(main, sys.argv[1])
"""


def test_a_program_that_leaves_from_one_of_its_tasks_ends(tmp_path: Path) -> None:
    (tmp_path / "assistants").mkdir()
    ended = subprocess.run(
        [sys.executable, "-c", LEAVES, str(tmp_path)], cwd=Path(__file__).parents[2], timeout=240
    )
    assert ended.returncode == 3


async def test_a_source_of_no_type_that_is_searched_is_refused_with_the_nearest_name(
    make_app: MakeApp,
) -> None:
    sources: Any = {"kbb": kb()}
    with pytest.raises(UnknownName, match="no search type 'kbb'") as caught:
        async with open_host(app_with(make_app), environment={}, sources=sources):
            pass
    assert "did you mean 'kb'?" in str(caught.value)
