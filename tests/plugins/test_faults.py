"""A plug-in with a bug: messages name the part, its plug-in and its distribution."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic import BaseModel

from groundhook import Host, PluginError, open_host
from groundhook.host.testing.canned import CannedSource, canned_item
from groundhook.plugins import Plugin, Plugins, Ranked, Source, SourceResult, Tool, ToolScope
from tests.conftest import MakeApp
from tests.parts.tool_turns import called
from tests.parts.turns import end, of, scripted

Register = Callable[[Plugins], None]
APP = {
    "assistants/a/package.yao": json.dumps(
        {"connector": "odd", "kb": ["docs"], "uses": {"rerank": "odd"}, "search": False}
    ),
    "kb/docs.kb.yao": '{"embedding": {"provider": "hash"}}',
    "connectors/odd.conn.yao": '{"type": "scripted"}',
}
PAGES = CannedSource({"*": [canned_item("first"), canned_item("second")]})


class Odd:
    """A part of any kind whose every method has a bug."""

    async def search(self, *_: object) -> SourceResult:
        raise ValueError("bug in source")

    async def rerank(self, *_: object) -> list[Ranked]:
        raise KeyError("bug in reranker")

    @asynccontextmanager
    async def stream(self, *_: object) -> AsyncIterator[AsyncIterator[Any]]:
        yield self._deltas()

    async def _deltas(self) -> AsyncIterator[Any]:
        raise ValueError("bug in model")
        yield


def odd(*_: object) -> Any:
    return Odd()


def raises(*_: object) -> Any:
    raise ValueError("bug in make")


def lacks(*_: object) -> Any:
    return "a text"


def source(make: Callable[..., Any]) -> Register:
    return lambda plugins: plugins.sources.replace("kb", Source(type="kb", make=make))


def reranker(make: Callable[..., Any]) -> Register:
    def register(plugins: Plugins) -> None:
        plugins.sources.replace("kb", Source(type="kb", make=lambda _: PAGES))
        plugins.rerankers.add("odd", make)

    return register


def connector(make: Callable[..., Any]) -> Register:
    return lambda plugins: plugins.connectors.add("odd", make)


async def searched(host: Host) -> tuple[str, list[str], list[str]]:
    """Return the error of a search, its warnings, and the keys of what it found."""
    warned: list[str] = []
    query = {"type": "kb", "query": "q", "collections": ["docs"], "rerank": {"top_k": 2}}
    found = await host.search(
        query, assistant="a", warned=lambda event: warned.append(event.message)
    )
    return found.error or "", warned, [item.key for item in found.items]


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (odd, "raised ValueError: bug in source"),
        (raises, "cannot be made: ValueError: bug in make"),
        (lacks, "has no `search`: it is a value of str"),
    ],
)
async def test_a_source_with_a_bug_fails_its_search_with_the_plug_in_named(
    make_app: MakeApp, make: Callable[..., Any], reason: str
) -> None:
    plugin = Plugin(source(make), requires=1, name="mine")
    async with open_host(make_app(APP), environment={}, plugins=[plugin]) as host:
        error, _, _ = await searched(host)
    assert f"the search source 'kb' of the plug-in 'mine' {reason}" in error


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (odd, "raised KeyError: 'bug in reranker'"),
        (raises, "cannot be made: ValueError: bug in make"),
        (lacks, "has no `rerank`: it is a value of str"),
    ],
)
async def test_a_reranker_with_a_bug_leaves_the_order_and_warns_with_the_plug_in_named(
    make_app: MakeApp, make: Callable[..., Any], reason: str
) -> None:
    plugin = Plugin(reranker(make), requires=1, name="mine")
    async with open_host(make_app(APP), environment={}, plugins=[plugin]) as host:
        _, warned, keys = await searched(host)
    assert keys == ["first", "second"]
    assert f"the reranker 'odd' of the plug-in 'mine' {reason}" in warned[0]
    assert "the merged order stays" in warned[0]


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (odd, "raised ValueError: bug in model"),
        (raises, "cannot be made: ValueError: bug in make"),
        (lacks, "has no `stream`: it is a value of str"),
    ],
)
async def test_a_model_with_a_bug_ends_the_turn_with_the_plug_in_named(
    make_app: MakeApp, make: Callable[..., Any], reason: str
) -> None:
    plugin = Plugin(connector(make), requires=1, name="mine")
    app = make_app({**APP, "connectors/odd.conn.yao": '{"type": "odd"}'})
    async with (
        open_host(app, environment={}, plugins=[plugin]) as host,
        host.stream("a", "Which pens?") as events,
    ):
        (failed,) = [event async for event in events if event.type == "error"]
    assert failed.code == "plugin"
    assert failed.message == f"the connector type 'odd' of the plug-in 'mine' {reason}"


@pytest.mark.parametrize(
    ("ranked", "reason"),
    [
        ([Ranked(99, 1.0)], "the index 99 for 2 items"),
        ([Ranked(-1, 1.0)], "the index -1 for 2 items"),
        ([Ranked(0, 5.0)], "the score 5.0, which is not between 0 and 1"),
        ([Ranked(1, math.nan)], "the score nan, which is not between 0 and 1"),
        ([(1, 0.5)], "a value of tuple, not a Ranked"),
        (None, "a value of NoneType, not a sequence of Ranked"),
    ],
)
async def test_scores_that_cannot_be_leave_the_merged_order_and_are_a_warning(
    make_app: MakeApp, ranked: Any, reason: str
) -> None:
    class Wrong:
        async def rerank(self, *_: object) -> Any:
            return ranked

    plugin = Plugin(reranker(lambda _: Wrong()), requires=1, name="mine")
    async with open_host(make_app(APP), environment={}, plugins=[plugin]) as host:
        _, warned, keys = await searched(host)
    assert keys == ["first", "second"]
    assert warned == [f"the reranker 'odd' returned {reason}; the merged order stays"]


async def test_a_reader_with_a_bug_is_named_with_its_plug_in(make_app: MakeApp) -> None:
    def register(plugins: Plugins) -> None:
        plugins.readers.add(".log", raises)

    app = make_app({**APP, "today.log": "The press stopped."})
    plugin = Plugin(register, requires=1, name="mine")
    async with open_host(app, environment={}, plugins=[plugin]) as host:
        added = await host.add_documents("docs", [app / "today.log"])
    assert "the document reader '.log' of the plug-in 'mine' raised ValueError: bug in make" in (
        added.files[0].error
    )


class Nothing(BaseModel):
    pass


class Notes:
    """A toolkit whose tools have bugs of each kind."""

    def __init__(self, *_: object) -> None:
        pass

    def sync(self) -> None:
        return None

    def tools(self) -> list[Tool]:
        return [
            Tool(name="late", description="Late.", arguments=Nothing, run=self.late),
            Tool(name="cites", description="Cites.", arguments=Nothing, run=str, items=raises),
            Tool(name="refuses", description="Refuses.", arguments=Nothing, run=raises),
        ]

    async def late(self, _: Nothing, scope: ToolScope) -> None:
        raise KeyError(scope.assistant_id)


async def test_a_tool_with_a_bug_is_a_failed_result_with_the_plug_in_named(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    def register(plugins: Plugins) -> None:
        plugins.toolkits.add("notes", Notes)
        divide = Tool(name="divide", description="Divides.", arguments=Nothing, run=lambda _: 1 / 0)
        plugins.tools.add("divide", divide)

    package = {"connector": "script", "search": False, "tools": ["mine"]}
    app = make_app(
        {
            "assistants/a/package.yao": json.dumps(package),
            "toolkits/mine.toolkit.yao": '{"type": "notes"}',
        }
    )
    names = ["late", "cites", "refuses", "divide"]
    model = scripted(called(*((name, {}) for name in names)), "Done.")
    plugin = Plugin(register, requires=1, name="shop")
    parts: dict[str, Any] = {"plugins": [plugin], "connectors": {"script": model}}
    async with open_host(app, environment={}, **parts) as host, host.stream("a", "q") as stream:
        events = [event async for event in stream]

    failed = {event.name: event.error or "" for event in of(events, "tool_result")}
    toolkit = "of the toolkit 'mine', the toolkit type 'notes' of the plug-in 'shop', raised"
    assert f"the tool 'late' {toolkit} KeyError: 'a'" in failed["late"]
    assert f"the tool 'cites' {toolkit}" in failed["cites"]
    assert failed["refuses"] == "bug in make"  # a ValueError is an answer for the model
    assert "the tool 'divide' of the plug-in 'shop' raised ZeroDivisionError" in failed["divide"]
    assert end(events).content == "Done."
    assert caplog.text.count("Traceback") == 3


WRONG: list[tuple[Callable[[Any], None], str]] = [
    (lambda to: to.readers.add("log", print), r"reader 'log' needs the ending .* its dot"),
    (lambda to: to.readers.add(".LOG", print), r"reader '.LOG' needs .* lower case"),
    (lambda to: to.readers.add(".log", "text"), r"is not a function, but a value of str"),
    (lambda to: to.rerankers.add("", odd), r"'' cannot be the name of a reranker"),
    (lambda to: to.connectors.add(3, odd), r"3 cannot be the name of a connector type"),
    (lambda to: to.rerankers.add("odd", Odd()), r"is not a function that makes it, but a value"),
    (lambda to: to.sources.add("x", odd), r"source 'x' is not a `Source\(…\)`, but a function"),
    (lambda to: to.tools.add("x", odd), r"tool 'x' is not a `Tool\(…\)`, but a function"),
]


@pytest.mark.parametrize(("register", "message"), WRONG)
async def test_a_part_of_the_wrong_name_or_kind_is_refused_when_it_is_registered(
    make_app: MakeApp, register: Register, message: str
) -> None:
    with pytest.raises(PluginError, match=rf"the plug-in 'mine': .*{message}"):
        async with open_host(
            make_app(APP), environment={}, plugins=[Plugin(register, requires=1, name="mine")]
        ):
            pass
