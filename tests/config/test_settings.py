"""The five layers: what wins, where it came from, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from groundhook.core.errors import ConfigError, HookReturnInvalid, UsageError
from groundhook.core.settings import (
    CitationSettings,
    ModelSettings,
    SearchSettings,
    Settings,
)
from groundhook.core.settings_files import (
    AgentFile,
    PackageFile,
)
from groundhook.core.types.calls import AgentOptions, ModelOptions
from groundhook.core.types.connector_spec import ConnectorOptions
from groundhook.core.types.turn import (
    CitationOverride,
    CreateReturn,
    SearchChoice,
    TurnOptions,
)
from groundhook.host.config.documents import parse_document
from groundhook.host.config.layers import DEFAULTS, Layer, file_layer, hook_layer, request_layer
from groundhook.host.config.resolve import explain, resolve
from groundhook.host.config.validate import check_document


def package(text: str, environment: dict[str, str] | None = None) -> Layer:
    return file_layer(
        "assistant",
        check_document(
            PackageFile, parse_document(text.encode(), "p.yao"), environment or {}, switch_on=True
        ),
    )


def agent(text: str) -> Layer:
    return file_layer(
        "global", check_document(AgentFile, parse_document(text.encode(), "agent/agent.yml"), {})
    )


def search(text: str) -> Layer:
    return file_layer(
        "global",
        check_document(SearchSettings, parse_document(text.encode(), "agent/search.yao"), {}),
        under="search",
    )


def test_without_layers_the_settings_are_the_defaults() -> None:
    resolved = resolve([])

    assert resolved.settings == Settings.model_validate(DEFAULTS.data)
    assert {row.layer for row in explain(resolved)} == {"defaults"}


def test_the_request_outranks_the_hook_the_hook_the_assistant_and_the_assistant_the_app() -> None:
    low = [
        agent("connector: a\nlocale: de\noptions: {temperature: 1, max_tokens: 5}\n"),
        search('{"rerank": {"top_n": 9}, "kb": {"threshold": 0.9}}'),
    ]
    middle = package(
        '{"connector": "b", "options": {"temperature": 0}, "search": {"kb": true, "rerank":'
        ' {"topK": 8}}}'
    )
    hook = hook_layer(
        CreateReturn(
            connector="c",
            max_tokens=0,
            citation=CitationOverride(custom_prompt="x"),
            uses={"query": "q"},
        )
    )
    request = request_layer(TurnOptions(connector="d", rerank={"top_k": 7}))
    settings = resolve([*low, middle, hook, request]).settings

    assert settings.connector == "d"
    assert (settings.options.temperature, settings.options.max_tokens, settings.locale) == (
        0,
        0,
        "de",
    )
    assert (
        settings.search.rerank.top_k,
        settings.search.kb.enabled,
        settings.search.kb.threshold,
    ) == (7, True, 0.9)
    assert (settings.search.citation.custom_prompt, settings.uses.query, settings.uses.web) == (
        "x",
        "q",
        "builtin",
    )


def test_types_that_a_hook_names_switch_those_on_and_the_others_off() -> None:
    layer = hook_layer(CreateReturn(search=SearchChoice(search_types=("web",))))
    settings = resolve([package('{"search": {"kb": true, "db": {}}}'), layer]).settings.search

    assert (settings.web.enabled, settings.kb.enabled, settings.db.enabled) == (True, False, False)


def test_whether_to_search_at_all_is_left_to_the_plan() -> None:
    assert (
        hook_layer(CreateReturn(search=False)).data
        == hook_layer(CreateReturn(search=SearchChoice())).data
    )
    without = resolve([]).settings
    assert resolve([request_layer(TurnOptions(search=True))]).settings == without


def test_fields_that_a_hook_and_a_request_omit_change_nothing() -> None:
    base = [package('{"locale": "fr", "connector": "x", "mcp": ["s"]}')]

    assert (
        resolve([*base, hook_layer(CreateReturn()), request_layer(TurnOptions())]).settings
        == resolve(base).settings
    )
    assert (
        resolve([*base, hook_layer(None), request_layer(None)]).settings == resolve(base).settings
    )


def test_everything_else_that_a_hook_may_return_reaches_the_settings() -> None:
    returned = CreateReturn(
        temperature=0.5,
        max_completion_tokens=9,
        prompt_preset="p",
        disable_global_prompts=True,
        locale="he",
        mcp_servers=[{"server_id": "s", "tools": ["t"]}],
        citation=CitationOverride(format="[{id}]", auto_inject_prompt=False),
    )
    settings = resolve([hook_layer(returned)]).settings

    assert (settings.options.temperature, settings.options.max_completion_tokens) == (0.5, 9)
    assert (settings.prompt_preset, settings.disable_global_prompts, settings.locale) == (
        "p",
        True,
        "he",
    )
    assert settings.mcp.servers == ({"server_id": "s", "tools": ["t"]},)
    assert (settings.search.citation.format, settings.search.citation.auto_inject_prompt) == (
        "[{id}]",
        False,
    )


def test_a_key_of_a_hook_or_request_that_nothing_reads_is_reported_and_a_wrong_value_refused() -> (
    None
):
    assert [str(key) for key in hook_layer(CreateReturn(uses={"querry": "x"})).unknown] == [
        "unknown key 'uses.querry' (did you mean 'query'?)"
    ]
    assert [str(key) for key in request_layer(TurnOptions(rerank={"top": 1})).unknown] == [
        "unknown key 'search.rerank.top' (did you mean 'top_k'?)"
    ]
    both = resolve(
        [hook_layer(CreateReturn(uses={"a": "x"})), request_layer(TurnOptions(rerank={"b": 1}))]
    )
    assert [key.path for key in both.unknown] == ["uses.a", "search.rerank.b"]
    with pytest.raises(HookReturnInvalid, match=r"Create returned a wrong 'citation\.format'"):
        hook_layer(CreateReturn(citation=CitationOverride(format="[]")))
    with pytest.raises(UsageError, match=r"the request says a wrong 'search\.rerank\.top_n'"):
        request_layer(TurnOptions(rerank={"top_n": 0}))


def test_lists_to_search_follow_what_the_assistant_may_use_unless_a_layer_says_otherwise() -> None:
    follows = resolve([package('{"kb": ["docs"], "db": ["order"], "search": {"kb": true}}')])
    empty = resolve([package('{"kb": ["docs"], "search": {"kb": {"collections": []}}}')])

    assert follows.settings.search.kb.collections == ("docs",)
    assert follows.settings.search.db.models == ("order",)
    assert empty.settings.search.kb.collections == ()
    row = next(row for row in explain(follows) if row.key == "search.kb.collections")
    assert (row.layer, str(row.place)) == ("assistant", "p.yao:1:8")


def test_a_variable_that_is_not_set_matters_only_where_its_value_wins() -> None:
    layer = package('{\n  "connector": "$ENV.MODEL"\n}')

    assert resolve([layer, request_layer(TurnOptions(connector="x"))]).settings.connector == "x"
    with pytest.raises(
        ConfigError,
        match=r"^p\.yao:2:16: 'connector' needs the environment variable 'MODEL', which is not set",
    ):
        resolve([layer])


def test_explaining_names_the_layer_and_the_place_of_every_value_and_shows_no_secret() -> None:
    layers = [
        agent("connector: a\nuses:\n  web: x\n"),
        search('{\n  "citation": {"format": "[{id}]"}\n}'),
        package(
            '{"search": {\n "web": true, "rerank": {"topN": 3},\n "kb": {"threshold": 0.1}},'
            ' "locale": "$ENV.S"}',
            {"S": "s3cret"},
        ),
        hook_layer(CreateReturn(temperature=0.1)),
        request_layer(TurnOptions(connector="b")),
    ]
    rows = {
        row.key: (row.value, row.layer, str(row.place or "")) for row in explain(resolve(layers))
    }

    assert rows["connector"] == ("b", "request", "")
    assert rows["options.temperature"] == (0.1, "hook", "")
    assert rows["uses.web"] == ("x", "global", "agent/agent.yml:3:8")
    assert rows["search.citation.format"] == ("[{id}]", "global", "agent/search.yao:2:26")
    assert rows["search.web.enabled"] == (True, "assistant", "p.yao:2:9")
    assert rows["search.rerank.top_k"] == (3, "assistant", "p.yao:2:34")
    assert rows["search.kb.enabled"] == (True, "assistant", "p.yao:3:8")
    assert rows["search.kb.threshold"] == (0.1, "assistant", "p.yao:3:22")
    assert rows["locale"] == ("$ENV.S", "assistant", "p.yao:3:39")
    assert rows["search.weights.user"] == (1.0, "defaults", "")


@given(
    st.lists(
        st.sampled_from(
            [
                "{}",
                '{"search": {"kb": false}}',
                '{"search": {"web": {"max_results": 1}}}',
                '{"kb": []}',
            ]
        ),
        max_size=4,
    )
)
def test_an_empty_layer_may_come_anywhere(texts: list[str]) -> None:
    layers = [package(text) for text in texts]
    padded = [each for layer in layers for each in (package("{}"), layer)]

    assert resolve(padded).settings == resolve(layers).settings


def test_hook_workers_of_the_app_are_no_setting_of_a_run() -> None:
    layer = agent("hooks: {workers: 0, on_error: continue}\nstate: x\n")

    assert layer.data == {"hooks": {"on_error": "continue"}}
    assert resolve([layer]).settings.hooks.on_error == "continue"


@pytest.mark.parametrize(
    "format",
    [
        " {id}",
        "#ref: {id}",
        "[{id} ]",
        "[{id}] ",
        "#ref:\n{id}",
        "[{id}]\n",
        "#\u200b{id}",
        "#{id}\u00a0",
        "#\x07{id}",
        "#\ufe0f{id}",
        "#" * 100 + "{id}",
    ],
)
def test_a_format_of_citations_that_nobody_could_see_or_write_is_refused(format: str) -> None:
    with pytest.raises(ValidationError, match=r"must (not|have)"):
        CitationSettings(format=format)


@pytest.mark.parametrize(
    "format", ["#ref:{id}", "[{id}]", "(see #{id})", "【{id}】", "<ref>{id}</ref>", '"{id}"']
)
def test_a_format_of_citations_may_be_any_sign_that_sets_the_id_off(format: str) -> None:
    assert CitationSettings(format=format).format == format


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_tokens": -1},
        {"temperature": -0.1},
        {"temperature": 2.1},
        {"temperature": float("nan")},
    ],
)
def test_an_option_that_no_model_accepts_is_refused_in_every_layer(wrong: dict[str, float]) -> None:
    for model in (
        TurnOptions,
        CreateReturn,
        ModelSettings,
        AgentOptions,
        ModelOptions,
        ConnectorOptions,
    ):
        with pytest.raises(ValidationError, match=r"(greater|less) than or equal to"):
            model.model_validate(wrong)
