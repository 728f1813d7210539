"""Sources that take some searches, and programs that run several at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import anyio
import pytest

from groundhook import SearchRequest, UsageError, open_host
from groundhook.core.types.search import SearchType
from groundhook.host.testing.canned import CannedSource, canned_item
from groundhook.plugins import (
    Handler,
    Plugin,
    PluginContext,
    Plugins,
    Scope,
    Source,
    SourceResult,
)
from groundhook.sync import open_host as open_blocking
from tests.conftest import MakeApp

APP = {"assistants/a/package.yao": "{}", "kb/docs.kb.yao": '{"embedding": {"provider": "hash"}}'}
NO_ONE = "no source takes this kb search (asked: kb)"


class Picky:
    """A source of the questions that `takes` accepts."""

    def __init__(self, key: str, takes: Callable[[SearchRequest, Scope], object]) -> None:
        self.takes, self.asked = takes, list[str]()
        self._item = canned_item(key, type="kb")

    def can_handle(self, request: SearchRequest, scope: Scope, /) -> bool:
        return self.takes(request, scope)  # type: ignore[return-value]

    async def search(self, request: SearchRequest, _: Scope, /) -> SourceResult:
        self.asked.append(request.query)
        return SourceResult(items=(self._item,))


def given(source: Handler, _: PluginContext) -> Handler:
    return source


def of(**sources: Handler) -> Plugin:
    def register(plugins: Plugins) -> None:
        for name, source in sources.items():
            add = plugins.sources.replace if name == "kb" else plugins.sources.add
            add(name, Source(type="kb", make=partial(given, source)))

    return Plugin(register, requires=1, name="picky")


def kb(query: str) -> dict[str, object]:
    return {"type": "kb", "query": query, "collections": ["docs"]}


async def test_a_source_is_asked_only_what_it_takes(make_app: MakeApp) -> None:
    teas = Picky("teas", lambda request, _: "tea" in request.query)
    mine = Picky("mine", lambda _, scope: scope.identity.user_id == "u1")
    async with open_host(make_app(APP), plugins=[of(kb=teas, mine=mine)], environment={}) as host:
        both = await host.search(kb("a tea"), identity={"user_id": "u1"})
        one = await host.search(kb("a tea"))
        none = await host.search(kb("a pen"))
    assert [item.key for item in both.items] == ["teas", "mine"]
    assert [item.key for item in one.items] == ["teas"]
    assert (none.items, none.error) == ((), "no source takes this kb search (asked: kb, mine)")
    assert (teas.asked, mine.asked) == (["a tea", "a tea"], ["a tea"])


async def test_a_source_alone_may_refuse_as_well(make_app: MakeApp) -> None:
    plugin = of(kb=Picky("teas", lambda request, _: "tea" in request.query))
    async with open_host(make_app(APP), plugins=[plugin], environment={}) as host:
        assert (await host.search(kb("a pen"))).error == NO_ONE
        assert (await host.search(kb("a tea"))).error is None
        await host.reload()
        assert (await host.search(kb("a pen"))).error == NO_ONE


async def test_a_bug_in_the_choice_names_the_plug_in_and_spares_the_others(
    make_app: MakeApp,
) -> None:
    wrong = Picky("wrong", lambda *_: 1 // 0)
    plugin = of(kb=CannedSource({"*": [canned_item("fine", type="kb")]}), wrong=wrong)
    warned: list[str] = []
    async with open_host(make_app(APP), plugins=[plugin], environment={}) as host:
        found = await host.search(kb("q"), warned=lambda event: warned.append(event.message))
    assert [item.key for item in found.items] == ["fine"]
    assert "the search source 'wrong' of the plug-in 'picky' raised ZeroDivisionError" in warned[0]


class Slow:
    """A source that answers when the test lets it, and says if it was cancelled."""

    def __init__(self) -> None:
        self.cancelled = anyio.Event()

    async def search(self, *_: object) -> SourceResult:
        try:
            await anyio.sleep_forever()
        finally:
            self.cancelled.set()
        raise AssertionError


async def test_several_searches_are_all_the_first_with_items_or_the_first(
    make_app: MakeApp,
) -> None:
    pages = CannedSource({"*": [canned_item("page", type="web")], "nothing": []})
    notes = CannedSource({"*": [canned_item("note", type="kb")], "nothing": []})
    empty, page = {"type": "web", "query": "nothing"}, {"type": "web", "query": "pears"}
    sources: dict[SearchType, Handler] = {"web": pages, "kb": notes}
    async with open_host(make_app(APP), sources=sources, environment={}) as host:
        every = await host.search_many([kb("pears"), empty, page])
        assert [[item.key for item in each.items] for each in every] == [["note"], [], ["page"]]
        [found] = await host.search_many([empty, page], mode="any")
        assert [item.key for item in found.items] == ["page"]
        [found] = await host.search_many([empty, empty], mode="any")
        assert found.items == ()
        assert await host.search_many([]) == await host.search_many([], mode="race") == []
        with pytest.raises(UsageError, match="type"):
            await host.search_many([page, {"type": "wiki", "query": "x"}])


async def test_the_searches_that_are_left_are_cancelled(make_app: MakeApp) -> None:
    slow = Slow()
    pages = CannedSource({"*": []})
    page = {"type": "web", "query": "pears"}
    sources: dict[SearchType, Handler] = {"web": pages, "kb": slow}
    async with open_host(make_app(APP), sources=sources, environment={}) as host:
        with anyio.fail_after(60):
            [first] = await host.search_many([kb("pears"), page], mode="race")
            await slow.cancelled.wait()
    assert (first.type, first.items) == ("web", ())


def test_programs_without_an_event_loop_have_it_as_well(make_app: MakeApp) -> None:
    plugin = of(kb=CannedSource({"*": [canned_item("note", type="kb")]}))
    with open_blocking(make_app(APP), plugins=[plugin], environment={}) as host:
        every = host.search_many([kb("a"), kb("b")])
        [first] = host.search_many([kb("a")], mode="any")
    assert [each.query for each in every] == ["a", "b"]
    assert [item.key for item in first.items] == ["note"]
