"""One tool, the same at every door: what it answers, who may use it, and what its errors say."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import BaseModel, model_validator

from groundhook import open_host
from groundhook.core.trace import recording
from groundhook.core.types.events import Event, ToolProgress, TraceNode
from groundhook.plugins import (
    CollectionDocument,
    CollectionQuery,
    Needs,
    Plugin,
    PluginContext,
    Tool,
    ToolkitSpec,
    ToolScope,
)
from tests.conftest import MakeApp
from tests.parts.turns import end, of
from tests.tool_calls.conftest import LISTS, PEARS, AppWith, Citing, ListKit, ListSettings

ANSWER = {"entries": PEARS, "total": 2}


async def turn(app: Path, model: Any, messages: Any = "pears?", **requested: Any) -> list[Event]:
    with anyio.fail_after(60):
        async with (
            open_host(app, environment={}, plugins=[LISTS], connectors={"citing": model}) as host,
            host.stream("a", messages, **requested) as events,
        ):
            return [event async for event in events]


async def test_the_same_call_has_the_same_result_in_a_turn_a_hook_and_python(
    app_with: AppWith,
) -> None:
    hook = """
        function Create(ctx, messages) {
          const outcome = ctx.tools.Call("search", {query: "pears"});
          return {metadata: {outcome}};
        }
    """
    app = app_with(files={"assistants/a/index.ts": hook})
    events = await turn(app, Citing("search"))
    (result,) = of(events, "tool_result")
    assert result.result == ANSWER
    assert result.toolkit == "pears"
    hooked = end(events).metadata["outcome"]
    assert (hooked["result"], hooked["error"]) == (ANSWER, None)
    async with open_host(app, environment={}, plugins=[LISTS]) as host:
        for name, assistant in (
            ("search", "a"),
            ("pears__search", "a"),
            ("pears.search", "a"),
            ("pears.search", None),
            ("agents.a.pears.search", None),
        ):
            outcome = await host.tool(name, {"query": "pears"}, assistant=assistant)
            assert (outcome.result, outcome.error, outcome.tool) == (ANSWER, None, "search")
        markers = [item.citation_id for item in outcome.items]
    assert [item.citation_id for item in result.items] == markers
    assert [item["citation_id"] for item in hooked["items"]] == markers


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"query": ""}, "wrong arguments: query: should not be empty"),
        ({}, "wrong arguments: query: field required"),
        ({"query": "x", "limit": 0}, "wrong arguments: limit: between 1 and 20, not 0"),
        ({"query": "x", "limit": "many"}, "wrong arguments: limit: should be a whole number"),
        (
            {"query": "x", "limt": 3},
            "wrong arguments: limt: unknown key (did you mean 'limit'?)",
        ),
        ({"query": "x", "tenant_id": "t2"}, "wrong arguments: tenant_id: unknown key"),
    ],
)
async def test_wrong_arguments_are_named_with_their_path(
    app_with: AppWith, arguments: Mapping[str, Any], error: str
) -> None:
    async with open_host(app_with(), environment={}, plugins=[LISTS]) as host:
        outcome = await host.tool("search", arguments, assistant="a")
    assert outcome.error is not None
    assert outcome.error.startswith(error)
    assert (outcome.code, outcome.result) == ("wrong_arguments", None)


async def test_a_missing_identity_is_refused_before_anything_runs(app_with: AppWith) -> None:
    app = app_with(pears={"entries": PEARS, "needs": ["tenant"]})
    message = "not permitted: search needs a tenant (institution), and the request names none"
    async with open_host(app, environment={}, plugins=[LISTS]) as host:
        # The arguments are wrong too, and are not looked at.
        outcome = await host.tool("search", {"query": ""}, assistant="a")
        allowed = await host.tool("search", {"query": "x"}, identity={"tenant_id": "t"})
        assert [tool.name for tool in await host.tools(identity={})] == []
        assert [tool.name for tool in await host.tools(identity={"tenant_id": "t"})] == ["search"]
    assert (outcome.error, outcome.code) == (message, "not_permitted")
    assert allowed.result == ANSWER
    events = await turn(app, Citing("search"))
    assert [event.error for event in of(events, "tool_result")] == [message]


async def test_a_toolkit_is_open_to_those_whom_its_permission_names(app_with: AppWith) -> None:
    app = app_with(pears={"entries": PEARS, "permission": {"teams": ["press"]}})
    async with open_host(app, environment={}, plugins=[LISTS]) as host:
        refused = await host.tool("pears.search", {"query": "x"}, identity={"team_id": "other"})
        allowed = await host.tool("pears.search", {"query": "x"}, identity={"team_id": "press"})
    assert refused.error == "not permitted: pears.search is not open to this identity"
    assert allowed.error is None


async def test_an_unknown_tool_is_answered_with_the_nearest(app_with: AppWith) -> None:
    async with open_host(app_with(), environment={}, plugins=[LISTS]) as host:
        outcome = await host.tool("serach", {}, assistant="a")
    assert outcome.code == "unknown_tool"
    assert outcome.error == "no tool 'serach' (did you mean 'search'?)"


async def test_a_name_that_several_tools_have_is_answered_with_all_of_them(
    app_with: AppWith,
) -> None:
    app = app_with(pears={"entries": PEARS}, plums={"entries": PEARS})
    async with open_host(app, environment={}, plugins=[LISTS]) as host:
        outcome = await host.tool("search", {"query": "x"})
    assert outcome.code == "unknown_tool"
    assert outcome.error == (
        "no tool 'search' (several have that name: pears.search, plums.search)"
    )


async def test_a_toolkit_that_cannot_be_made_names_its_file_and_the_turn_goes_on(
    app_with: AppWith,
) -> None:
    app = app_with(pears={"entires": []})
    async with open_host(app, environment={}, plugins=[LISTS]) as host:
        outcome = await host.tool("pears.search", {"query": "x"})
        by_its_name = await host.tool("search", {"query": "x"})
    assert outcome.error is not None
    assert outcome.error.startswith("assistants/a/toolkits/pears.toolkit.yao:1:")
    assert "unknown key 'entires'" in outcome.error
    assert by_its_name.code == "unknown_tool"
    assert "unknown key 'entires'" in (by_its_name.error or "")
    events = await turn(app, Citing("search", say="Fine."))
    assert any("entires" in event.message for event in of(events, "warning"))
    assert end(events).content == "Let me look.\n\nFine."


class Nothing(BaseModel):
    pass


async def test_a_tool_that_takes_too_long_ends_at_its_deadline(make_app: MakeApp) -> None:
    async def sleep(_: Nothing) -> None:
        await anyio.sleep_forever()

    slow = Tool(
        name="slow", description="Never ends.", arguments=Nothing, run=sleep, deadline_ms=30
    )
    app = make_app({"assistants/a/package.yao": "{}"})
    async with open_host(app, environment={}, tools=[slow]) as host:
        with anyio.fail_after(60):
            outcome = await host.tool("slow")
    assert (outcome.error, outcome.code) == ("slow did not answer within 30 ms", "timeout")


async def test_a_check_of_arguments_that_blocks_stops_no_other_request(make_app: MakeApp) -> None:
    checked_in: list[int] = []

    class Checked(BaseModel):
        @model_validator(mode="after")
        def _check(self) -> Checked:
            checked_in.append(threading.get_ident())
            return self

    tool = Tool(name="work", description="Works.", arguments=Checked, run=lambda _: "done")
    app = make_app({"assistants/a/package.yao": "{}"})
    async with open_host(app, environment={}, tools=[tool]) as host:
        await host.tool("work")
    assert checked_in
    assert threading.get_ident() not in checked_in


async def test_a_call_without_events_is_in_no_other_trace(make_app: MakeApp) -> None:
    tool = Tool(name="work", description="Works.", arguments=Nothing, run=lambda _: "done")
    app = make_app({"assistants/a/package.yao": "{}"})
    nodes: list[TraceNode] = []
    async with open_host(app, environment={}, tools=[tool]) as host:
        with recording(nodes.append):  # as a turn does
            outcome = await host.tool("work")
    assert (outcome.result, nodes) == ("done", [])


async def test_progress_and_warnings_of_a_call_reach_its_caller(make_app: MakeApp) -> None:
    async def work(_: Nothing, scope: ToolScope) -> str:
        await scope.progress(done=1, total=3, message="one of three")
        await scope.progress("search_documents.started", query="pears")
        await scope.warn("half", "only half was read")
        with pytest.raises(ValueError, match="no key 'percent'"):
            await scope.progress(percent=30)
        with pytest.raises(ValueError, match="no event 'tool_done' of tools"):
            await scope.progress("tool_done")
        return "done"

    tool = Tool(name="work", description="Works.", arguments=Nothing, run=work)
    app = make_app({"assistants/a/package.yao": "{}"})
    events: list[Event] = []
    async with open_host(app, environment={}, tools=[tool]) as host:
        outcome = await host.tool("work", events=events.append)
    assert (outcome.result, outcome.text, outcome.warnings) == (
        "done",
        "done",
        ("only half was read",),
    )
    seen = [event for event in events if event.type != "trace"]
    assert [event.type for event in seen] == [
        "tool_start",
        "tool_progress",
        "search_documents.started",
        "warning",
        "tool_result",
    ]
    progress = seen[1]
    assert isinstance(progress, ToolProgress)
    assert (progress.name, progress.done, progress.total) == ("work", 1, 3)


async def test_a_tool_needs_scopes_and_metadata_where_it_says_so(make_app: MakeApp) -> None:
    async def show(_: Nothing, scope: ToolScope) -> Any:
        return {"metadata": dict(scope.metadata), "locale": scope.locale}

    tool = Tool(
        name="show",
        description="Shows.",
        arguments=Nothing,
        run=show,
        needs=Needs(scopes=["kb.read", "kb.write"], metadata=["collection_id"]),
    )
    app = make_app({"assistants/a/package.yao": "{}"})
    async with open_host(app, environment={}, tools=[tool]) as host:
        unscoped = await host.tool("show", metadata={"collection_id": "c"})
        reader = {"scope": "chat kb.read"}
        without = await host.tool("show", identity=reader)
        full = await host.tool(
            "show", identity=reader, metadata={"collection_id": "c"}, locale="he"
        )
    assert unscoped.error == (
        "not permitted: show needs 'kb.read' or 'kb.write' in the identity's scope"
    )
    assert without.error == (
        "not permitted: show needs metadata.collection_id, and the request has none"
    )
    assert full.result == {"metadata": {"collection_id": "c"}, "locale": "he"}


async def test_a_toolkit_reaches_the_collections_of_its_own_assistant(
    make_app: MakeApp, shelf: Plugin
) -> None:
    app = make_app(
        {
            "assistants/a/package.yao": '{"tools": ["agents.b.shelf"]}',
            "assistants/b/package.yao": '{"tools": ["shelf"]}',
            "assistants/b/toolkits/shelf.toolkit.yao": '{"type": "shelf"}',
            "assistants/b/kb/books.kb.yao": '{"embedding": {"provider": "hash"}}',
        }
    )
    book = {"id": "1", "title": "On pears", "text": "Pears ripen in autumn."}
    async with open_host(app, environment={}, plugins=[shelf]) as host:
        empty = await host.tool("findBooks", {"query": "pears"}, assistant="a")
        added = await host.tool("addBook", book, assistant="a", identity={"user_id": "u"})
        again = await host.tool("addBook", book, assistant="b", identity={"user_id": "u"})
        found = await host.tool("findBooks", {"query": "When do pears ripen?"}, assistant="a")
        assert await host.check() == []
    assert empty.result == {"books": [], "total": 0}
    assert (added.result, again.result) == (
        {"added": 1, "replaced": 0},
        {"added": 0, "replaced": 0},
    )
    assert [each["id"] for each in found.result["books"]] == ["1"]


class Ask(BaseModel):
    what: str
    text: str = ""


async def test_two_tenants_share_ids_and_see_nothing_of_each_other(make_app: MakeApp) -> None:
    async def shelf(ask: Ask, scope: ToolScope) -> Any:
        notes = scope.collections
        if ask.what == "put":
            document = CollectionDocument(
                id="1", text=ask.text, title=ask.text, tenant="t2", fields={"tag": ask.text}
            )
            return (await notes.put("notes", [document])).added
        if ask.what == "get":
            return {id: one.text for id, one in (await notes.get("notes", ["1", "2"])).items()}
        if ask.what == "count":
            return await notes.count("notes")
        if ask.what == "remove":
            return await notes.remove("notes", ["1", "9"])
        queries = [
            CollectionQuery(collection="notes", text=text, threshold=0, facets=["tag"])
            for text in (ask.text, "", "anything else")
        ]
        answers = await notes.find(queries)
        return [
            [
                [match.title for match in one.matches],
                one.total,
                [f.value for f in one.facets["tag"]],
            ]
            for one in answers
        ]

    app = make_app(
        {
            "assistants/a/package.yao": "{}",
            "kb/notes.kb.yao": json.dumps(
                {
                    "embedding": {"provider": "hash"},
                    "tenant_field": "tenant",
                    "fields": {"tag": {"type": "keyword", "facetable": True}},
                }
            ),
        }
    )
    tool = Tool(name="shelf", description="Notes.", arguments=Ask, run=shelf, reads_only=False)
    async with open_host(app, environment={}, tools=[tool]) as host:

        async def call(tenant: str, what: str, text: str = "") -> Any:
            identity = {"tenant_id": tenant} if tenant else {}
            outcome = await host.tool("shelf", {"what": what, "text": text}, identity=identity)
            return outcome.error or outcome.result

        assert await call("t1", "put", "pears of one") == 1
        assert await call("t2", "put", "pears of two") == 1
        assert await call("t1", "get") == {"1": "pears of one"}
        assert await call("t2", "get") == {"1": "pears of two"}
        assert await call("t1", "count") == 1
        assert await call("t1", "find", "pears") == [[["pears of one"], 1, ["pears of one"]]] * 3
        assert await call("t3", "find", "pears") == [[[], 0, []]] * 3
        for what in ("put", "get", "count", "find", "remove"):
            assert "separates its tenants, and the request names none" in await call("", what, "x")
        assert await call("t1", "remove") == ["1"]
        assert await call("t1", "get") == {}
        assert await call("t2", "get") == {"1": "pears of two"}


async def test_a_reload_makes_a_toolkit_anew_when_its_file_has_changed(app_with: AppWith) -> None:
    made: list[str] = []

    def make(spec: ToolkitSpec, context: PluginContext) -> ListKit:
        made.append(spec.id)
        return ListKit(spec.read(ListSettings))

    plugin = Plugin(lambda plugins: plugins.toolkits.add("list", make), requires=1)
    app = app_with(pears={"entries": PEARS}, plums={"entries": PEARS})
    async with open_host(app, environment={}, plugins=[plugin]) as host:
        assert (await host.tool("pears.search", {"query": "x"})).result == ANSWER
        file = app / "assistants/a/toolkits/pears.toolkit.yao"
        file.write_text('{"type": "list", "entries": []}', encoding="utf-8")
        await host.reload([file])
        assert (await host.tool("pears.search", {"query": "x"})).result["total"] == 0
        file.write_text('{"type": "list", "entires": []}', encoding="utf-8")
        await host.reload([file])
        broken = await host.tool("pears.search", {"query": "x"})
    assert made == ["agents.a.pears", "agents.a.plums", "agents.a.pears", "agents.a.pears"]
    assert "unknown key 'entires'" in str(broken.error)
