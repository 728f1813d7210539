"""What is saved holds from the next turn on; what is broken does not."""

from __future__ import annotations

import pytest

from groundhook import open_host
from groundhook.core.errors import HookSyntaxError, UnknownName
from tests.conftest import MakeApp
from tests.reload.conftest import FILES, HOOK, Author


async def test_an_edit_holds_from_the_next_turn_on(author: Author) -> None:
    assert await author.version() == 1
    swap = await author.save(assistants__a__index_ts=HOOK.replace("VERSION", "2"))
    assert (swap.assistants, swap.problems, swap.removed) == (("a",), (), ())
    assert await author.version() == 2


async def test_a_turn_in_flight_ends_on_the_version_it_began_with(author: Author) -> None:
    slow = """\
        const at = VERSION;
        function Create() { time.Sleep(300); return { metadata: { version: at } }; }
        function Next() { return { data: { version: at } }; }
        """
    await author.save(assistants__a__index_ts=slow.replace("VERSION", "1"))
    async with author.host.stream("a", "hello") as events:
        started = await anext(aiter(events))
        assert started.type == "stream_start"
        await author.save(
            assistants__a__index_ts=slow.replace("VERSION", "2"),
            connectors__says_conn_yao='{"type": "scripted", "options": {"script": ["two"]}}',
        )
        assert await author.version() == 2
        left = [event async for event in events]
    assert left[-1].metadata == {"version": 1}  # type: ignore[union-attr]
    assert left[-1].data == {"version": 1}  # type: ignore[union-attr]
    assert left[-1].content == "one"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("file", "broken", "place"),
    [
        (
            "assistants__a__index_ts",
            "function Create() {\n  return {{;\n}",
            "assistants/a/index.ts:2:11",
        ),
        (
            "assistants__a__index_ts",
            'import "./gone";\nfunction Create() {}',
            "assistants/a/index.ts:1:1",
        ),
        ("assistants__a__package_yao", '{\n  "connector": 5\n}', "assistants/a/package.yao:2:16"),
        (
            "assistants__a__prompts_yml",
            "- role: nobody\n  content: x\n",
            "assistants/a/prompts.yml:1:9",
        ),
        ("assistants__a__locales__de_yml", "a: [\n", "assistants/a/locales/de.yml:2:1"),
    ],
)
async def test_a_broken_edit_keeps_what_was_good_and_names_the_line(
    author: Author, file: str, broken: str, place: str
) -> None:
    path = author.app / file.replace("__", "/").replace("_", ".")
    good = path.read_text(encoding="utf-8") if path.exists() else None
    swap = await author.save(**{file: broken})
    assert [str(problem.place) for problem in swap.problems] == [place]
    assert swap.assistants == ()
    assert await author.version() == 1
    if good is None:
        path.unlink()
        swap = await author.host.reload([path])
    else:
        swap = await author.save(**{file: good})
    assert (swap.assistants, swap.repaired, swap.problems) == (("a",), ("assistants/a",), ())
    assert await author.version() == 1


async def test_a_broken_file_stays_broken_while_others_are_edited(author: Author) -> None:
    await author.save(assistants__a__index_ts="function Create( {")
    swap = await author.save(assistants__b__index_ts=HOOK.replace("VERSION", "7"))
    assert (swap.assistants, swap.repaired, swap.problems) == (("b",), (), ())
    assert (await author.version("a"), await author.version("b")) == (1, 7)
    assert (await author.save(assistants__a__index_ts=HOOK.replace("VERSION", "2"))).repaired == (
        "assistants/a",
    )
    assert await author.version("a") == 2


async def test_an_edit_of_an_imported_file_is_an_edit_of_its_package(author: Author) -> None:
    importing = 'import { version } from "./lib/version";\n' + HOOK.replace("VERSION", "version")
    await author.save(
        assistants__a__package_yao='{"connector": "says", "db": {"models": ["__yao.user"]}}',
        assistants__a__index_ts=importing,
        assistants__a__lib__version_ts="export const version = 5;",
    )
    assert await author.version() == 5
    swap = await author.save(assistants__a__lib__version_ts="export const version = ;")
    assert [str(problem.place) for problem in swap.problems] == ["assistants/a/lib/version.ts:1:24"]
    assert await author.version() == 5
    await author.save(assistants__a__lib__version_ts="export const version = 6;")
    assert await author.version() == 6


async def test_an_edit_without_a_notification_does_not_show(author: Author) -> None:
    (author.app / "assistants/a/index.ts").write_text("nonsense(", encoding="utf-8")
    assert await author.version() == 1


async def test_assistants_come_and_go(author: Author) -> None:
    swap = await author.save(
        assistants__c__package_yao='{"name": "C", "connector": "says"}',
        assistants__c__index_ts=HOOK.replace("VERSION", "3"),
    )
    assert swap.assistants == ("c",)
    assert await author.version("c") == 3
    for name in ("package.yao", "index.ts"):
        (author.app / "assistants/c" / name).unlink()
    assert (await author.host.reload([author.app / "assistants/c/package.yao"])).removed == ("c",)
    with pytest.raises(UnknownName):
        await author.ask("c")


async def test_a_turn_of_a_new_broken_assistant_raises(
    author: Author,
) -> None:
    swap = await author.save(
        assistants__c__package_yao='{"name": "C"}', assistants__c__index_ts="function Create( {"
    )
    assert [problem.code for problem in swap.problems] == ["hook_syntax"]
    assert [event.code for event in await author.ask("c") if event.type == "error"] == [
        "hook_syntax"
    ]
    assert await author.version("a") == 1


async def test_a_connector_is_made_anew_and_a_broken_one_stays_what_it_was(author: Author) -> None:
    await author.save(
        connectors__says_conn_yao=(
            '{"type": "scripted", "options": {"script": [{"text": "two", "times": 0}]}}'
        )
    )
    assert (await author.ask())[-1].content == "two"  # type: ignore[union-attr]
    swap = await author.save(connectors__says_conn_yao='{"type": "nothing"}')
    assert [str(problem.place) for problem in swap.problems] == ["connectors/says.conn.yao:1:10"]
    assert (await author.ask())[-1].content == "two"  # type: ignore[union-attr]
    await author.save(assistants__b__index_ts=HOOK)
    assert (await author.ask())[-1].content == "two"  # type: ignore[union-attr]
    swap = await author.save(
        connectors__says_conn_yao=(
            '{"type": "scripted", "options": {"script": [{"text": "3", "times": 0}]}}'
        )
    )
    assert swap.repaired == ("the declarations",)
    assert (await author.ask())[-1].content == "3"  # type: ignore[union-attr]


async def test_the_apps_own_files_are_taken_over_and_kept_when_broken(author: Author) -> None:
    await author.save(
        agent__prompts_yml="- role: system\n  content: Be brief.\n", agent__agent_yml="locale: he\n"
    )
    assert author.host.app.prompts[0].content == "Be brief."
    swap = await author.save(agent__agent_yml="locale: 5\n")
    assert [str(problem.place) for problem in swap.problems] == ["agent/agent.yml:1:9"]
    assert {entry.key: entry.value for entry in author.host.explain("a")}["locale"] == "he"
    swap = await author.save(agent__agent_yml="locale: fr\ndatabase:\n  timeout_ms: 7\n")
    assert (swap.repaired, swap.restart) == (("the app",), ("database",))
    assert {entry.key: entry.value for entry in author.host.explain("a")}["locale"] == "fr"


async def test_a_model_that_was_declared_later_can_be_searched(author: Author) -> None:
    model = """\
        {
          "name": "Pen",
          "table": { "name": "pen" },
          "columns": [{ "name": "id", "type": "ID" }, { "name": "name", "type": "string" }],
          "values": [{ "id": 1, "name": "Red pen" }]
        }
        """
    await author.save(models__pen_mod_yao=model)
    await author.host.database.load()
    result = await author.host.search({"type": "db", "query": "pens", "models": ["pen"]})
    assert [item.title for item in result.items] == ["Red pen"]


async def test_an_assistant_broken_from_the_start_is_reported_and_the_rest_works(
    make_app: MakeApp,
) -> None:
    app = make_app({**FILES, "assistants/a/index.ts": "function Create( {"})
    async with open_host(app, environment={}) as host, host.runtime.hooks.keep_compiler():
        swap = await host.reload()
        assert [problem.code for problem in swap.problems] == [HookSyntaxError.code]
        assert await Author(app, host).version("b") is None


async def test_the_models_of_users_and_teams_are_there_after_a_reload_of_models(
    author: Author,
) -> None:
    search = "ctx.search.DB('anna', { models: ['__yao.user'] }).error ?? ''"
    await author.save(
        assistants__a__package_yao='{"connector": "says", "db": {"models": ["__yao.user"]}}',
        assistants__a__index_ts=f"function Create(ctx) {{ return {{ metadata: {{ version: {search} }} }}; }}",
    )
    before = await author.version()
    assert "no model" not in before
    model = '{"name": "M", "table": {"name": "m"}, "columns": [{"name": "id", "type": "ID"}]}'
    await author.save(models__m_mod_yao=model)
    assert await author.version() == before
