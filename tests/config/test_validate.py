"""Spellings that mean the same, and every problem of a file with its place."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from groundhook.core.app_settings import AppSettings
from groundhook.core.errors import ConfigError, ConfigErrors
from groundhook.core.settings import (
    SearchSettings,
    Settings,
)
from groundhook.core.settings_files import (
    AgentFile,
    PackageFile,
)
from groundhook.core.types.collection_spec import CollectionSpec
from groundhook.core.types.connector_spec import ConnectorSpec
from groundhook.core.types.model_spec import ModelSpec
from groundhook.host.config.documents import parse_document
from groundhook.host.config.normalise import normalise, spellings
from groundhook.host.config.validate import check_document, read_value


def expected_message(
    model: type[BaseModel], raw: dict[str, Any], *, switch_on: bool = True
) -> dict[str, Any]:
    normal = normalise(model, raw, switch_on=switch_on)
    assert normal.strays == ()
    return normal.data


def errors(model: type[BaseModel], text: str, file: str = "x.yao") -> list[str]:
    return [
        str(error)
        for error in check_document(model, parse_document(text.encode(), file), {}).errors
    ]


@pytest.mark.parametrize("spelling", ["top_k", "topK", "top_n", "topN"])
def test_every_spelling_of_a_key_becomes_the_same_key(spelling: str) -> None:
    assert expected_message(PackageFile, {"search": {"rerank": {spelling: 3}}}) == {
        "search": {"rerank": {"top_k": 3}}
    }


def test_camel_case_is_the_same_key_too() -> None:
    raw = {
        "search": {"web": {"maxResults": 3}, "options": {"skipThreshold": 2}},
        "promptPreset": "x",
    }

    assert expected_message(PackageFile, raw) == {
        "search": {"web": {"enabled": True, "max_results": 3}, "options": {"skip_threshold": 2}},
        "prompt_preset": "x",
    }


@pytest.mark.parametrize(
    ("written", "in_package", "in_search_file"),
    [
        (True, {"enabled": True}, {"enabled": True}),
        (False, {"enabled": False}, {"enabled": False}),
        ({}, {"enabled": True}, {}),
        ({"threshold": 0.5}, {"threshold": 0.5, "enabled": True}, {"threshold": 0.5}),
        ({"enabled": False}, {"enabled": False}, {"enabled": False}),
    ],
)
def test_a_source_is_switched_on_by_true_and_by_an_object_in_a_package(
    written: Any, in_package: Any, in_search_file: Any
) -> None:
    assert expected_message(SearchSettings, {"kb": written}, switch_on=True) == {"kb": in_package}
    assert expected_message(SearchSettings, {"kb": written}, switch_on=False) == {
        "kb": in_search_file
    }


def test_one_word_switches_all_sources_off_and_none_switches_them_all_on() -> None:
    off = {"enabled": False}
    assert expected_message(PackageFile, {"search": False}) == {
        "search": {"web": off, "kb": off, "db": off}
    }
    assert errors(PackageFile, '{"search": true}') == [
        "x.yao:1:2: 'search': true does not say what to search (name it, as in {\"web\": true};"
        " known: web, kb, db)"
    ]


def test_a_list_alone_is_the_list_of_its_section_and_a_name_alone_a_list_of_one() -> None:
    raw = {
        "kb": ["docs"],
        "db": "order",
        "mcp": {"servers": "files"},
        "search": {"kb": {"collections": "faq"}},
    }

    assert expected_message(PackageFile, raw) == {
        "kb": {"collections": ["docs"]},
        "db": {"models": ["order"]},
        "mcp": {"servers": ["files"]},
        "search": {"kb": {"enabled": True, "collections": ["faq"]}},
    }


def models_of(model: type[BaseModel]) -> set[type[BaseModel]]:
    found = {model}
    for info in model.model_fields.values():
        kind = info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            found |= models_of(kind)
    return found


def test_the_first_spelling_of_a_field_is_its_own_name_so_that_errors_can_be_placed() -> None:
    for model in models_of(AgentFile) | models_of(PackageFile) | models_of(ModelSpec):
        for name, info in model.model_fields.items():
            first = next(iter(getattr(info.validation_alias, "choices", [name])))
            assert first == name
        assert set(spellings(model).values()) == set(model.model_fields)


def test_every_setting_of_the_app_is_accepted_in_its_file_and_nowhere_else() -> None:
    for name in AppSettings.model_fields.keys() - {"hook_workers"}:
        assert name in AgentFile.model_fields
        assert name not in PackageFile.model_fields


def test_an_unknown_key_is_placed_and_the_nearest_known_one_named() -> None:
    text = '{\n  // comment\n  "search": {\n    "kb": {"treshold": 0.5}\n  }\n}'

    assert errors(PackageFile, text) == [
        "x.yao:4:12: unknown key 'search.kb.treshold' (did you mean 'threshold'?)"
    ]


def test_every_problem_of_a_file_is_reported_in_the_order_of_the_file() -> None:
    text = """{
      "conector": "x",
      "search": {
        "web": {"max_results": 500}, "kb": 3,
        "citation": {"format": "[]"}
      },
      "tags": 1, "name": ["x"],
      "options": {"temperature": "hot"}
    }"""

    assert errors(PackageFile, text) == [
        "x.yao:2:7: unknown key 'conector' (did you mean 'connector'?)",
        "x.yao:4:32: 'search.web.max_results': should be less than or equal to 100, not 500",
        "x.yao:4:44: 'search.kb': should be an object, not 3",
        (
            "x.yao:5:32: 'search.citation.format': must contain {id} or {index} exactly once, such"
            " as '#ref:{id}' or '[{index}]', or be 'xml', not '[]'"
        ),
        "x.yao:7:15: 'tags': should be a list, not 1",
        "x.yao:7:26: 'name': should be text, not a list",
        "x.yao:8:34: 'options.temperature': should be a number, not 'hot'",
    ]


@pytest.mark.parametrize(
    ("text", "expected_message"),
    [
        ("hooks:\n", "x.yml:1:1: 'hooks': should be an object, and it is empty"),
        (
            "hooks: {workers: many}",
            "x.yml:1:18: 'hooks.workers': should be a whole number, not 'many'",
        ),
        ("hooks: {workers: 1.5}", "x.yml:1:18: 'hooks.workers': should be a whole number, not 1.5"),
        (
            "disable_global_prompts: maybe",
            "x.yml:1:25: 'disable_global_prompts': should be true or false, not 'maybe'",
        ),
        ('state: ""', "x.yml:1:8: 'state': should not be empty"),
        (
            "mcp: {servers: [a, 5]}",
            (
                "x.yml:1:20: 'mcp.servers[1]': should be the id of a server, {id: [tools]}, or"
                " {server_id, tools, resources}, not 5"
            ),
        ),
    ],
)
def test_the_expected_value_is_reported_in_plain_words(text: str, expected_message: str) -> None:
    assert errors(AgentFile, text, "x.yml") == [expected_message]


@pytest.mark.parametrize(
    ("model", "text", "expected_message"),
    [
        (
            PackageFile,
            '{"state": "x"}',
            "unknown key 'state' (it applies to the whole app: set it in agent/agent.yml)",
        ),
        (
            PackageFile,
            '{"hooks": {"workers": 2}}',
            "unknown key 'hooks.workers' (it applies to the whole app: set it in agent/agent.yml)",
        ),
        (
            SearchSettings,
            '{"search": {}}',
            "unknown key 'search' (this file holds its keys directly: web, kb, db, …)",
        ),
    ],
)
def test_a_key_that_belongs_elsewhere_is_sent_there(
    model: type[BaseModel], text: str, expected_message: str
) -> None:
    assert [error.partition(": ")[2] for error in errors(model, text)] == [expected_message]


def test_a_key_written_in_two_spellings_is_an_error() -> None:
    assert errors(PackageFile, '{"search": {"rerank": {"top_n": 3, "topK": 4}}}') == [
        "x.yao:1:36: 'search.rerank.topK': the same key as 'top_n' (keep one of them)"
    ]


def test_a_wrong_value_under_another_spelling_is_placed_where_it_is_written() -> None:
    text = "search:\n  rerank:\n    topN: 0\n"

    assert errors(AgentFile, text, "agent/agent.yml") == [
        "agent/agent.yml:3:11: 'search.rerank.topN': should be greater than or equal to 1, not 0"
    ]


def test_keys_inside_mappings_and_lists_of_declarations_are_checked_as_well() -> None:
    assert errors(CollectionSpec, '{"fields": {"kind": {"typ": "text"}}}') == [
        "x.yao:1:22: unknown key 'fields.kind.typ' (did you mean 'type'?)"
    ]
    assert errors(
        ModelSpec,
        '{"table": {"name": "t"}, "columns": [{"name": "id", "type": "ID", "lable": "x"}, {"name":'
        ' "a"}]}',
    ) == [
        "x.yao:1:67: unknown key 'columns[0].lable' (did you mean 'label'?)",
        "x.yao:1:82: 'columns[1].type' is missing",
    ]
    assert errors(ConnectorSpec, '{"type": "openai", "options": {"headers": {"X-Any": "1"}}}') == []


def test_one_problem_is_raised_as_it_is_and_several_as_one_error() -> None:
    with pytest.raises(ConfigError) as one:
        read_value(ConnectorSpec, parse_document(b'{"type": ["opnai"]}', "x.yao"), {})
    with pytest.raises(ConfigErrors) as several:
        read_value(ConnectorSpec, parse_document(b'{"typ": "openai"}', "x.yao"), {})

    assert not isinstance(one.value, ConfigErrors)
    assert one.value.place is not None
    assert [error.message for error in several.value.errors] == [
        "'type' is missing",
        "unknown key 'typ'",
    ]
    assert str(several.value).splitlines() == [
        "x.yao:1:1: 'type' is missing",
        "x.yao:1:2: unknown key 'typ' (did you mean 'type'?)",
    ]


def test_a_file_that_says_nothing_is_a_layer_that_says_nothing() -> None:
    for model in (Settings, PackageFile, AgentFile):
        checked = check_document(model, parse_document(b"{}", "x.yao"), {})
        assert (checked.data, checked.errors) == ({}, ())
