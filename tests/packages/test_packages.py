"""Apps written into a folder: what is found, under which id, and what a broken file costs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from groundhook.core.errors import ConfigError, ConfigErrors, UnknownName
from groundhook.core.types.turn import CreateReturn, TurnOptions
from groundhook.host.check.check import check
from groundhook.host.config import tree
from groundhook.host.config.packages import load_app
from groundhook.host.config.resolve import explain
from tests.conftest import MakeApp

MODEL = '{"table": {"name": "t"}, "columns": [{"name": "id", "type": "ID"}]}'
CONNECTOR = '{"type": "openai", "options": {"key": "$ENV.KEY"}}'


def findings(root: Path) -> list[str]:
    return [str(problem) for problem in check(load_app(root, {}))]


def test_an_assistant_is_found_by_its_path_with_dots(make_app: MakeApp) -> None:
    root = make_app(
        {
            "assistants/docs/package.yao": '{"name": "Docs", "description": "About us"}',
            "assistants/sales/package.yao": "{}",
            "assistants/sales/bots/first/package.yao": "{}",
            "assistants/sales/tests/x/package.yao": "{}",
            "assistants/.old/package.yao": "{}",
        }
    )
    app = load_app(root, {})

    assert list(app.packages) == ["docs", "sales", "sales.bots.first"]
    assert (app.package("docs").name, app.package("docs").description) == ("Docs", "About us")
    first = app.package("sales.bots.first")
    assert (first.name, first.shown, first.folder) == (
        "sales.bots.first",
        "assistants/sales/bots/first",
        root / first.shown,
    )


@pytest.mark.parametrize("name", sorted(tree.PARTS))
def test_a_folder_with_the_name_of_a_part_is_a_group_outside_of_a_package(
    make_app: MakeApp, name: str
) -> None:
    root = make_app(
        {
            f"assistants/{name}/hook-basic/package.yao": '{"name": "Basic"}',
            f"assistants/{name}/hook-basic/src/index.ts": "function Create() {}",
            f"assistants/{name}/deep/{name}/one/package.yao": "{}",
            f"assistants/node_modules/{name}/package.yao": "{}",
        }
    )
    app = load_app(root, {})

    assert list(app.packages) == [f"{name}.deep.{name}.one", f"{name}.hook-basic"]
    assert app.package(f"{name}.hook-basic").name == "Basic"
    assert findings(root) == []


def test_a_package_inside_a_part_of_a_package_is_reported_as_that(make_app: MakeApp) -> None:
    root = make_app(
        {
            "assistants/sales/package.yao": "{}",
            "assistants/sales/tests/fixture/package.yao": "{}",
            "assistants/sales/tests/fixture/index.ts": "function Create() {}",
        }
    )

    assert findings(root) == [
        "assistants/sales/tests/fixture: warning: part of the package 'sales', so this is not"
        " an assistant (move the folder out of that package)"
    ]
    with pytest.raises(UnknownName, match=r"fixture is part of the package 'sales'\)$"):
        load_app(root, {}).package("sales.tests.fixture")


def test_an_unknown_assistant_is_answered_with_the_nearest_name(make_app: MakeApp) -> None:
    app = load_app(
        make_app({"assistants/docs/package.yao": "{}", "assistants/research/index.ts": ""}), {}
    )

    with pytest.raises(UnknownName, match=r"^no assistant 'dcos' \(did you mean 'docs'\?\)$"):
        app.package("dcos")
    with pytest.raises(
        UnknownName, match=r"^no assistant 'research' \(assistants/research has no package\.yao\)$"
    ):
        app.package("research")


@pytest.mark.parametrize("name", ["..", "/", "a/../../x", "\0", ""])
def test_a_name_that_is_no_id_leads_nowhere(make_app: MakeApp, name: str) -> None:
    with pytest.raises(UnknownName):
        load_app(make_app({"assistants/docs/package.yao": "{}"}), {}).package(name)


def test_a_folder_without_an_app_is_refused(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(
            ConfigError, match=r"no app in '.*' \(an app has a folder 'assistants' or 'agent'"
        ):
            load_app(folder, {})


def test_a_broken_package_leaves_a_good_one_usable(make_app: MakeApp) -> None:
    root = make_app(
        {
            "assistants/bad/package.yao": '{\n "name": "Bad"\n "search": {}\n}',
            "assistants/worse/package.yao": (
                '{"serch": {"kb": true}, "prompts": [{"role": "robot", "content": "x"}]}'
            ),
            "assistants/good/package.yao": '{"name": "Good"}',
            "kb/bad.kb.yao": "[]",
            "kb/good.kb.yao": "{}",
        }
    )
    app = load_app(root, {})

    assert app.package("good").name == "Good"
    assert app.resolve_collection("good", "good").id == "good"
    with pytest.raises(
        ConfigError, match=r"^assistants/bad/package\.yao:3:2: expected ',' or the closing bracket"
    ):
        app.package("bad")
    with pytest.raises(ConfigErrors) as caught:
        app.package("worse")
    assert str(caught.value).splitlines() == [
        "assistants/worse/package.yao:1:2: unknown key 'serch' (did you mean 'search'?)",
        (
            "assistants/worse/package.yao:1:46: 'prompts[0].role': "
            "should be 'system', 'developer', 'user' or 'assistant', not 'robot'"
        ),
    ]
    with pytest.raises(
        ConfigError, match=r"^kb/bad\.kb\.yao:1:1: should hold an object, not a list$"
    ):
        app.resolve_collection("good", "bad")


def test_an_assistants_own_declarations_come_before_those_of_the_app(make_app: MakeApp) -> None:
    root = make_app(
        {
            "assistants/sales/bot/package.yao": "{}",
            "assistants/sales/bot/kb/docs.kb.yao": '{"name": "own"}',
            "assistants/sales/bot/models/order.mod.yao": MODEL,
            "assistants/other/package.yao": "{}",
            "kb/docs.kb.yao": '{"name": "global"}',
            "kb/sub/faq.kb.yao": "{}",
            "models/customer.mod.yao": MODEL,
            "assistants/sales/bot/mcps/files.mcp.yao": (
                '{"transport": "http", "url": "https://example.org/mcp"}'
            ),
            "mcps/files.mcp.yao": '{"command": "files", "env": {"KEY": "$ENV.KEY"}}',
        }
    )
    app = load_app(root, {})

    assert app.resolve_collection("sales.bot", "docs").id == "agents.sales.bot.docs"
    assert app.resolve_collection("other", "docs").name == "global"
    assert app.resolve_collection("", "sub.faq").id == "sub.faq"
    assert app.resolve_collection("other", "agents.sales.bot.docs").name == "own"
    assert app.resolve_model("sales.bot", "order").id == "agents.sales.bot.order"
    assert app.resolve_model("sales.bot", "customer").id == "customer"
    assert app.resolve_server("sales.bot", "files").id == "agents.sales.bot.files"
    assert app.resolve_server("sales.bot", "files").url == "https://example.org/mcp"
    with pytest.raises(
        ConfigError,
        match=r"^mcps/files\.mcp\.yao:1:\d+: 'env\.KEY' needs the environment variable 'KEY'",
    ):
        app.resolve_server("other", "files")
    with pytest.raises(UnknownName, match=r"no MCP server 'fils' \(did you mean 'files'\?\)"):
        app.resolve_server("other", "fils")
    with pytest.raises(UnknownName, match=r"no model 'custmer' \(did you mean 'customer'\?\)"):
        app.resolve_model("other", "custmer")


def test_a_hook_is_the_first_of_the_entry_files_that_is_there(make_app: MakeApp) -> None:
    root = make_app(
        {
            "assistants/a/package.yao": "{}",
            "assistants/b/package.yao": "{}",
            "assistants/b/src/index.ts": "",
            "assistants/b/index.js": "",
            "assistants/c/package.yao": "{}",
            "assistants/c/src/index.js": "",
        }
    )
    app = load_app(root, {})
    hooks = {id: app.package(id).hook for id in "abc"}

    assert hooks["a"] is None
    assert hooks["b"] is not None
    assert (hooks["b"].entry, hooks["b"].root, hooks["b"].shown) == (
        root / "assistants/b/index.js",
        root / "assistants/b",
        "assistants/b",
    )
    assert hooks["c"] is not None
    assert hooks["c"].entry == root / "assistants/c/src/index.js"
    assert [str(problem) for problem in app.package("b").warnings] == [
        "assistants/b/src/index.ts: warning: two hooks, 'index.js' and 'src/index.ts'; 'index.js'"
        " runs"
    ]


def test_prompts_come_from_the_package_or_its_file_and_presets_from_either(
    make_app: MakeApp,
) -> None:
    root = make_app(
        {
            "agent/prompts.yml": "- {role: system, content: Be kind.}\n",
            "assistants/a/package.yao": '{"prompts": {"formal": [{"content": "Dear all"}]}}',
            "assistants/a/prompts.yml": (
                "- role: system\n  content: |\n    You help.\n- role: user\n  content: Hi"
                " $ENV.WHO\n"
            ),
            "assistants/a/prompts/short.yml": "- content: Be short.\n",
            "assistants/a/prompts/chat/friendly.yml": "- content: Be friendly.\n",
            "assistants/b/package.yao": '{"prompts": "You are b."}',
            "assistants/c/package.yao": "{}",
        }
    )
    app = load_app(root, {"WHO": "Ada"})
    a = app.package("a")

    assert [message.text for message in app.prompts] == ["Be kind."]
    assert [(message.role, message.text) for message in a.prompts_for("")] == [
        ("system", "You help.\n"),
        ("user", "Hi Ada"),
    ]
    assert [a.prompts_for(name)[0].text for name in a.presets if name != "default"] == [
        "Be friendly.",
        "Dear all",
        "Be short.",
    ]
    assert [message.wire() for message in app.package("b").prompts] == [
        {"role": "system", "content": "You are b."}
    ]
    assert app.package("c").prompts == ()
    with pytest.raises(UnknownName, match=r"no prompt preset 'shrt' \(did you mean 'short'\?\)"):
        a.prompts_for("shrt")


def test_an_app_around_a_folder_that_is_none_is_named(make_app: MakeApp) -> None:
    root = make_app({"agent/agent.yml": "", "assistants/a/package.yao": "{}"})
    with pytest.raises(ConfigError) as caught:
        load_app(root / "assistants/a", {})
    assert caught.value.hint == f"there is one in {str(root)!r}"


def test_the_prompts_of_the_page_for_authors_are_read(make_app: MakeApp) -> None:
    page = (Path(__file__).parents[2] / "docs/writing-assistants.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    root = make_app({"assistants/helper/package.yao": "{}", "assistants/helper/prompts.yml": text})
    prompts = load_app(root, {"COMPANY": "Tea & Co"}).package("helper").prompts
    assert [prompt.role for prompt in prompts] == ["system", "user", "assistant"]
    assert prompts[0].text.startswith("You answer for Tea & Co, from the sources")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "- content: [x]\n",
            "assistants/a/prompts.yml:1:12: 'prompts[0].content': should be text, not a list",
        ),
        ("- role: system\n", "assistants/a/prompts.yml:1:3: 'prompts[0].content' is missing"),
        (
            "- hello\n",
            "assistants/a/prompts.yml:1:3: 'prompts[0]': should be an object, not 'hello'",
        ),
        ("role: system\n", "assistants/a/prompts.yml:1:1: should hold a list, not an object"),
        (
            "- content: x\n  rôle: y\n",
            "assistants/a/prompts.yml:2:3: unknown key 'prompts[0].rôle' (did you mean 'role'?)",
        ),
    ],
)
def test_a_wrong_prompt_is_placed_in_its_file(make_app: MakeApp, text: str, message: str) -> None:
    app = load_app(
        make_app({"assistants/a/package.yao": "{}", "assistants/a/prompts.yml": text}), {}
    )

    with pytest.raises(ConfigError) as caught:
        app.package("a")
    assert str(caught.value) == message


def test_words_for_clients_and_texts_by_language_are_carried_along(make_app: MakeApp) -> None:
    root = make_app(
        {
            "assistants/a/package.yao": (
                """{
              "name": "A", "avatar": "/a.png", "tags": ["x"], "placeholder": {"title": "Hi"}, "locales": {"de": {"name": "AA"}},
              "connector": "extractive"
            }"""
            ),
            "assistants/a/locales/de.yml": "greeting: Hallo\n",
        }
    )
    package = load_app(root, {}).package("a")

    assert package.info == {
        "avatar": "/a.png",
        "tags": ["x"],
        "placeholder": {"title": "Hi"},
        "locales": {"de": {"name": "AA"}},
    }
    assert {name: dict(package.locales[name]) for name in package.locales} == {
        "de": {"greeting": "Hallo"}
    }
    assert package.layer.data == {"connector": "extractive"}


def test_a_connector_asks_for_its_variable_only_when_it_is_used(make_app: MakeApp) -> None:
    root = make_app({"assistants/a/package.yao": "{}", "connectors/gpt.conn.yao": CONNECTOR})
    app = load_app(root, {})

    assert list(app.connectors) == ["extractive", "gpt"]
    assert app.connector("extractive").type == "extractive"
    with pytest.raises(
        ConfigError,
        match=(
            r"^connectors/gpt\.conn\.yao:1:39: 'options\.key' needs the environment variable 'KEY'"
        ),
    ):
        app.connector("gpt")
    assert load_app(root, {"KEY": "k"}).connector("gpt").options.key == "k"


def test_settings_come_from_the_app_the_package_the_hook_and_the_request(make_app: MakeApp) -> None:
    root = make_app(
        {
            "agent/agent.yml": (
                "connector: low\nhooks: {workers: 0, limits: {calls: 5}}\nstate: .s\ndatabase:"
                " {timeout_ms: 7}\n"
            ),
            "agent/search.yao": '{"web": {"max_results": 3}, "kb": {"threshold": 0.5}}',
            "assistants/a/package.yao": (
                '{"search": {"web": true}, "hooks": {"limits": {"cpu_ms": 9}}}'
            ),
        }
    )
    app = load_app(root, {})
    package = app.package("a")
    settings = app.settings_for(
        package, returned=CreateReturn(connector="mid"), options=TurnOptions(max_tokens=4)
    ).settings

    assert (settings.connector, settings.options.max_tokens) == ("mid", 4)
    assert (
        settings.search.web.enabled,
        settings.search.web.max_results,
        settings.search.kb.enabled,
    ) == (True, 3, False)
    assert (settings.hooks.limits.calls, settings.hooks.limits.cpu_ms) == (5, 9)
    assert (app.settings.hook_workers, app.settings.database.timeout_ms, app.state) == (
        0,
        7,
        root / ".s",
    )
    rows = {row.key: str(row.place) for row in explain(app.settings_for(package)) if row.place}
    assert rows == {
        "connector": "agent/agent.yml:1:12",
        "search.web.enabled": "assistants/a/package.yao:1:20",
        "search.web.max_results": "agent/search.yao:1:25",
        "search.kb.threshold": "agent/search.yao:1:49",
        "hooks.limits.calls": "agent/agent.yml:2:37",
        "hooks.limits.cpu_ms": "assistants/a/package.yao:1:58",
    }


def test_every_command_that_needs_settings_reports_a_broken_file_of_the_app(
    make_app: MakeApp,
) -> None:
    root = make_app(
        {
            "agent/agent.yml": "conector: x\n",
            "agent/search.yao": '{"wbe": {}}',
            "assistants/a/package.yao": "{}",
        }
    )
    app = load_app(root, {})

    with pytest.raises(ConfigErrors) as caught:
        app.settings_for(app.package("a"))
    assert [str(error.place) for error in caught.value.errors] == [
        "agent/agent.yml:1:1",
        "agent/search.yao:1:2",
    ]
    with pytest.raises(ConfigError, match="unknown key 'conector'"):
        _ = app.settings


def test_an_unset_variable_is_reported_where_the_app_needs_it(
    make_app: MakeApp,
) -> None:
    root = make_app(
        {"agent/agent.yml": "qdrant:\n  api_key: $ENV.QKEY\n", "assistants/a/package.yao": "{}"}
    )
    app = load_app(root, {})

    assert app.settings_for(app.package("a")).settings.connector == "extractive"
    with pytest.raises(
        ConfigError,
        match=r"^agent/agent\.yml:2:12: 'qdrant\.api_key' needs the environment variable 'QKEY'",
    ):
        _ = app.settings
    assert load_app(root, {"QKEY": "q"}).settings.qdrant.api_key == "q"


def test_an_app_is_no_state_of_the_process(make_app: MakeApp) -> None:
    root = make_app({"assistants/a/package.yao": '{"name": "one"}'})
    first, second = load_app(root, {}), load_app(root, {})
    assert first.package("a").name == "one"
    (root / "assistants/a/package.yao").write_text('{"name": "two"}', encoding="utf-8")

    assert (first.package("a").name, second.package("a").name) == ("one", "two")


def test_a_link_to_a_folder_above_does_not_hang_the_search_for_assistants(
    make_app: MakeApp,
) -> None:
    root = make_app({"assistants/a/package.yao": "{}"})
    (root / "assistants/a/loop").symlink_to(root / "assistants")

    assert load_app(root, {}).package("a").id == "a"
