"""Plug-ins: every kind of part enters by the same door, and one that does not fit names itself."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import pytest

from groundhook import PluginError, UsageError, open_host
from groundhook.host.testing.canned import CannedSource, canned_item
from groundhook.plugins import Plugin, Plugins, Source
from groundhook.sync import open_host as open_sync
from tests.conftest import MakeApp
from tests.parts.plugin_examples import APP, EXAMPLES


@pytest.fixture
def examples(monkeypatch: pytest.MonkeyPatch) -> list[Plugin]:
    """The example packages of docs/plugins.md."""
    found = []
    for folder in sorted(path for path in EXAMPLES.iterdir() if path.is_dir()):
        monkeypatch.syspath_prepend(str(folder))
        found.append(importlib.import_module(f"groundhook_example_{folder.name}").plugin)
    return found


async def test_every_example_package_works(make_app: MakeApp, examples: list[Plugin]) -> None:
    app = make_app(APP)
    with anyio.fail_after(60):
        async with open_host(app, environment={"PAGES_API_KEY": "k"}, plugins=examples) as host:
            added = await host.add_documents("docs", [app / "today.log"])
            assert added.counts == {"added": 1}
            joined = await host.search(
                {"type": "kb", "query": "Which tenant oiled the press?", "collections": ["docs"]}
            )
            assert joined.error is None
            assert {item.title for item in joined.items} == {"tenant", "today"}
            web = await host.search({"type": "web", "query": "pears"})
            assert (web.provider, [item.title for item in web.items]) == ("pages", ["Pears"])
            judged = await host.search(
                {
                    "type": "kb",
                    "query": "tenant isolate",
                    "collections": ["docs"],
                    "rerank": {"top_k": 2},
                },
                assistant="a",
            )
            assert judged.items[0].title == "tenant"
            async with host.stream("a", "What is a tenant?") as events:
                seen = [event async for event in events]
            assert seen[-1].type == "stream_end"
            assert seen[-1].content == "Echo: What is a tenant?"
            model, name = app / "models/pen.mod.yao", ', {"name": "name", "type": "string"}]}'
            for fields in ({"id": 1}, {"id": 1, "name": "Quill"}):
                async with host.stream("b", "Which pens?") as events:
                    *_, end = [event async for event in events]
                assert end.type == "stream_end"
                assert end.metadata == {"pens": [fields]}
                model.write_text(APP["models/pen.mod.yao"].replace("]}", name), encoding="utf-8")
                await host.reload()
            entry = {
                "type": "data",
                "data": {"sources": [{"type": "kb_document", "name": "docs/tenant"}]},
            }
            question = [
                {"role": "user", "content": [entry, {"type": "text", "text": "Who is it?"}]}
            ]
            async with host.stream("a", question) as events:
                found = [event async for event in events if event.type == "search_result"]
            assert "tenant" in {event.item.title for event in found}
            assert [str(one) for one in await host.check() if one.severity == "error"] == []


async def test_a_source_that_fails_is_a_warning_beside_one_that_does_not(
    make_app: MakeApp,
) -> None:
    def broken(_: object) -> CannedSource:
        return CannedSource({})

    def register(plugins: Plugins) -> None:
        plugins.sources.add("broken", Source(type="kb", make=broken))

    warned: list[str] = []
    async with open_host(
        make_app(APP | {"connectors/echo.conn.yao": '{"type": "scripted"}'}),
        environment={},
        plugins=[Plugin(register, requires=1)],
        sources={"kb": CannedSource({"*": [canned_item("k")]})},
    ) as host:
        result = await host.search(
            {"type": "kb", "query": "q", "collections": ["docs"]},
            warned=lambda event: warned.append(event.message),
        )
    assert [item.key for item in result.items] == ["k"]
    assert len(warned) == 1
    assert "the search source 'broken' failed" in warned[0]


async def test_a_search_that_names_a_plug_in_as_type_of_reranker_learns_where_it_is_named(
    make_app: MakeApp,
) -> None:
    async with open_host(make_app({"assistants/a/package.yao": "{}"}), environment={}) as host:
        with pytest.raises(UsageError, match=r"rerank\.type: .*uses\.rerank names a plug-in's"):
            await host.search({"type": "kb", "query": "q", "rerank": {"type": "shortest"}})


def _nothing(_: Plugins) -> None:
    pass


def _twice(plugins: Plugins) -> None:
    plugins.readers.add(".md", lambda data, name: pytest.fail("read"))


def _raises(_: Plugins) -> None:
    raise KeyError("colour")


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (Plugin(_nothing, requires=0), r"'plugins\[0\]' is written for version 0 .* has version 1"),
        (
            Plugin(_nothing, requires=2, name="far"),
            r"'far' is written for version 2.*update Ground",
        ),
        (Plugin(_nothing, requires="1"), r"requires '1', not a version"),  # type: ignore[arg-type]
        (_nothing, r"is not a `groundhook.plugins.Plugin`, but a function: .* older"),
        (Plugin(_twice, requires=1), r"and Groundhook itself both register the document reader"),
        (Plugin(_raises, requires=1), r"cannot be registered: KeyError: 'colour'"),
    ],
)
async def test_a_plug_in_that_does_not_fit_is_an_error_that_names_it(
    make_app: MakeApp, plugin: Plugin, message: str
) -> None:
    with pytest.raises(PluginError, match=message):
        async with open_host(make_app(APP), environment={}, plugins=[plugin]):
            pass


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, str], None]:
    """Put a distribution with an entry point of this name and value where it is found."""
    monkeypatch.syspath_prepend(str(tmp_path / "site"))

    def write(distribution: str, name: str, value: str) -> None:
        folder = tmp_path / "site" / f"{distribution}-2.1.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 2.1\n", encoding="utf-8"
        )
        (folder / "entry_points.txt").write_text(
            f"[groundhook.plugins]\n{name} = {value}\n", encoding="utf-8"
        )

    return write


@pytest.mark.parametrize(
    ("module", "code", "error"),
    [
        ("acme_wiki_that_raises", "1 / 0\n", "ZeroDivisionError"),
        ("acme_wiki_that_exits", "import sys\nsys.exit(3)\n", "SystemExit: 3"),
    ],
)
async def test_an_installed_plug_in_that_raises_at_import_names_its_distribution(
    make_app: MakeApp,
    tmp_path: Path,
    install: Callable[[str, str, str], None],
    module: str,
    code: str,
    error: str,
) -> None:
    install("acme", "wiki", f"{module}:plugin")
    (tmp_path / f"site/{module}.py").write_text(code, encoding="utf-8")
    message = rf"the plug-in 'wiki' of acme 2\.1 cannot be loaded .*{error}"
    with pytest.raises(PluginError, match=message):
        async with open_host(make_app(APP), environment={}):
            pass


async def test_two_plug_ins_of_one_name_are_an_error_with_both_distributions(
    make_app: MakeApp, tmp_path: Path, install: Callable[[str, str, str], None]
) -> None:
    install("acme", "wiki", "acme_wiki_that_is_there:plugin")
    install("bcme", "wiki", "acme_wiki_that_is_there:plugin")
    (tmp_path / "site/acme_wiki_that_is_there.py").write_text(
        "from groundhook.plugins import Plugin\nplugin = Plugin(lambda _: None, requires=1)\n",
        encoding="utf-8",
    )
    with pytest.raises(PluginError, match=r"two plug-ins .*'wiki'.* acme 2\.1 and .* bcme 2\.1"):
        async with open_host(make_app(APP), environment={}):
            pass


async def test_two_plug_ins_that_register_the_same_are_an_error_that_says_which_to_remove_and_how(
    make_app: MakeApp, tmp_path: Path, install: Callable[[str, str, str], None]
) -> None:
    install("acme", "wiki", "acme_wiki_with_a_reader:plugin")
    (tmp_path / "site/acme_wiki_with_a_reader.py").write_text(
        "from groundhook.plugins import Plugin\n"
        "plugin = Plugin(lambda every: every.readers.add('.wiki', print), requires=1)\n",
        encoding="utf-8",
    )

    def register(plugins: Plugins) -> None:
        plugins.readers.add(".wiki", lambda data, name: pytest.fail("read"))

    mine, other = (Plugin(register, requires=1, name=name) for name in ("mine", "other"))
    both = r"do not pass the plug-in 'mine' to `open_host`, or uninstall the plug-in 'wiki' of acme"
    with pytest.raises(PluginError, match=both):
        async with open_host(make_app(APP), environment={}, plugins=[mine]):
            pass
    (tmp_path / "site/acme-2.1.dist-info/entry_points.txt").unlink()
    with pytest.raises(PluginError, match=r"pass one of them to `open_host`") as error:
        async with open_host(make_app(APP), environment={}, plugins=[mine, other]):
            pass
    assert "uninstall" not in str(error.value)


async def test_a_reranker_that_no_plug_in_has_is_a_message_that_says_how_to_get_it(
    make_app: MakeApp,
) -> None:
    def reranked_by(name: str) -> str:
        return json.dumps({"kb": ["docs"], "uses": {"rerank": name}})

    app = make_app(
        {
            "kb/docs.kb.yao": '{"embedding": {"provider": "hash"}}',
            "assistants/a/package.yao": reranked_by("shortest"),
            "assistants/b/package.yao": reranked_by("cohere"),
            "assistants/c/package.yao": reranked_by("scoer"),
        }
    )
    warned: list[str] = []
    async with open_host(
        app, environment={}, sources={"kb": CannedSource({"*": [canned_item("k")]})}
    ) as host:
        shortest, cohere, nearly = await host.check()
        await host.search(
            {"type": "kb", "query": "q", "collections": ["docs"], "rerank": {"top_k": 1}},
            assistant="a",
            warned=lambda event: warned.append(event.message),
        )
    assert shortest.message == "no reranker or assistant 'shortest'"
    assert "known once its package is installed with pip" in shortest.hint
    assert 'search.rerank to {"type": "model", "provider": "cohere"}' in cohere.hint
    assert "did you mean 'score'?" in nearly.hint
    assert "no reranker or assistant 'shortest'" in warned[0]
    assert "installed with pip" in warned[0]


@pytest.mark.parametrize(
    ("called", "suggested"),
    [("helper", "agents.helper.helper"), ("ordres", "agents.helper.orders")],
)
async def test_a_collection_called_by_its_short_name_is_suggested_by_its_full_one(
    make_app: MakeApp, called: str, suggested: str
) -> None:
    app = make_app(
        {
            "assistants/helper/package.yao": "{}",
            "assistants/helper/kb/helper.kb.yao": '{"embedding": {"provider": "hash"}}',
            "assistants/helper/kb/orders.kb.yao": "{}",
            **{f"kb/{name}.kb.yao": "{}" for name in ("helped", "helpers")},
        }
    )
    async with open_host(app, environment={}) as host:
        result = await host.search({"type": "kb", "query": "q", "collections": [called]})
    assert f"did you mean '{suggested}'?" in str(result.error)


def test_a_script_without_an_event_loop_streams_searches_and_checks(
    make_app: MakeApp, examples: list[Plugin]
) -> None:
    app = make_app({**APP, "kb/docs.kb.yao": '{"embedding": {"provider": "hash"}}'})
    with open_sync(app, environment={}, plugins=examples) as host:
        assert host.assistants() == ["a", "b"]
        with host.stream("a", "hello", search=False) as events:
            assert [event.type for event in events][-1] == "stream_end"
        with host.stream("a", "hello", search=False) as events:
            assert next(events).type == "stream_start"  # and the rest is left
        message: list[int] = []
        added = host.add_documents(
            "docs", app / "today.log", progress=lambda done, *_: message.append(done)
        )
        assert (added.counts, added.failed) == ({"added": 1}, False)
        assert message
        assert host.add_documents("docs", [str(app / "today.log")]).counts == {"unchanged": 1}
        question = "Which tenant oiled the press?"
        found = host.search({"type": "kb", "query": question, "collections": ["docs"]})
        assert {item.title for item in found.items} == {"tenant", "today"}
        assert [problem for problem in host.check() if problem.severity == "error"] == []
        assert host.reload().problems == ()


async def test_the_modules_of_a_source_are_imported_beside_the_event_loop(
    make_app: MakeApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "heavy_source.py").write_text(
        "import threading\nBESIDE = threading.current_thread() is not threading.main_thread()\n"
    )

    def register(plugins: Plugins, module: str) -> None:
        made = Source(type="web", make=lambda _: CannedSource({}), module=module)
        plugins.sources.replace("web", made)

    app = make_app({"assistants/a/package.yao": "{}"})
    query = {"type": "web", "query": "pens"}
    for module in ("heavy_source", "no_such_module"):
        plugin = Plugin(partial(register, module=module), requires=1, name="heavy")
        async with open_host(app, plugins=[plugin]) as host:
            found = await host.search(query)
        if module == "no_such_module":
            assert "the search source 'web' of the plug-in 'heavy' cannot be made" in str(
                found.error
            )
    assert importlib.import_module("heavy_source").BESIDE


async def test_a_check_names_the_variable_of_a_plug_ins_web_provider(
    make_app: MakeApp, examples: list[Plugin]
) -> None:
    package = json.dumps({"search": {"web": {"provider": "pages"}}})
    app = make_app({"assistants/a/package.yao": package})
    async with open_host(app, environment={}, plugins=examples) as host:
        (problem,) = await host.check()
        found = await host.search({"type": "web", "query": "pears"}, assistant="a")
    assert problem.message == ("'search.web' is on, and the web search provider 'pages' has no key")
    assert problem.hint == "set the environment variable PAGES_API_KEY"
    assert problem.hint in str(found.error)
