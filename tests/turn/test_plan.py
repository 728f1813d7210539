"""The control table of automatic search."""

from __future__ import annotations

import itertools
from collections.abc import Container
from importlib.resources import files
from typing import get_args

import pytest
from pydantic import ValidationError

from groundhook.core.settings import SearchSettings, Settings, UsesSettings
from groundhook.core.types.search import (
    PLACES,
    SEARCH_TYPES,
    SearchRequest,
    SearchType,
    SourceType,
)
from groundhook.core.types.turn import CreateReturn, Message, SearchChoice
from groundhook.hooks.api.search import OPTIONS
from groundhook.hooks.globals import SHARED
from groundhook.host.output.single_lines import SOURCES
from groundhook.host.search.plan import complete, plan, timeout_ms

PLAIN = Settings()
CONFIGURED = Settings.model_validate(
    {"search": {"kb": {"enabled": True}, "web": {"enabled": True}}}
)
CONTEXT = CreateReturn(messages=(Message(role="system", content="found"),))


@pytest.mark.parametrize(
    ("requested", "configured", "handled"),
    list(itertools.product([True, False, None], [True, False], [True, False])),
)
def test_the_request_outranks_the_hook_and_the_hook_outranks_the_assistant(
    requested: bool | None, configured: bool, handled: bool
) -> None:
    settings = CONFIGURED if configured else PLAIN
    types = plan(requested, CONTEXT if handled else None, settings, 0, {"kb"}).types
    if requested is True:
        assert types == (("web", "kb") if configured else ("kb",))
    elif requested is False or handled or not configured:
        assert types == ()
    else:
        assert types == ("web", "kb")


def test_enough_results_of_the_users_own_data_make_searching_needless() -> None:
    assert plan(None, None, CONFIGURED, 4, set()).types
    skipped = plan(None, None, CONFIGURED, 5, set())
    assert skipped.types == ()
    assert "5 results" in skipped.reason
    assert plan(True, None, CONFIGURED, 5, set()).types


def test_a_hook_may_choose_the_types() -> None:
    choice = CreateReturn(search=SearchChoice(search_types=("db",)), messages=CONTEXT.messages)
    assert plan(None, choice, CONFIGURED, 0, set()).types == ("db",)
    assert (
        plan(None, CreateReturn(search=SearchChoice(need_search=False)), CONFIGURED, 0, set()).types
        == ()
    )
    assert plan(None, CreateReturn(search=False), CONFIGURED, 0, set()).types == ()
    assert plan(
        None, CreateReturn(search=True, messages=CONTEXT.messages), PLAIN, 0, {"db"}
    ).types == ("db",)


def test_a_hook_that_returns_no_messages_has_not_handled_the_search() -> None:
    assert plan(None, CreateReturn(messages=()), CONFIGURED, 0, set()).types == ("web", "kb")


@pytest.mark.parametrize("type", SEARCH_TYPES)
def test_every_type_of_search_is_in_every_table(type: SearchType) -> None:
    tables: dict[str, Container[str]] = {
        "SearchSettings": SearchSettings.model_fields,
        "UsesSettings": UsesSettings.model_fields,
        "OPTIONS in hooks/api/search.py": OPTIONS,
    }
    for name, table in tables.items():
        assert type in table, f"{name} lacks the type of search {type!r}"
    assert plan(True, None, PLAIN, 0, {type}).types == (type,)
    assert timeout_ms(type, PLAIN)


@pytest.mark.parametrize("type", get_args(SourceType))
def test_every_type_of_source_has_a_name_for_people(type: SourceType) -> None:
    assert SOURCES[type]
    assert PLACES[type]


def test_every_type_of_search_is_in_the_handwritten_declarations_of_hooks() -> None:
    request = SHARED.partition("export type SearchRequest =")[2].partition(";\n\n")[0]
    missing = [type for type in SEARCH_TYPES if f'type: "{type}"' not in request]
    assert not missing, f"SearchRequest in hooks/globals.py lacks {missing}"
    tests = (files("groundhook.hooks") / "testing.d.ts").read_text(encoding="utf-8")
    union = " | ".join(f'"{type}"' for type in SEARCH_TYPES)
    assert tests.count(union) == tests.count('"web"'), f"hooks/testing.d.ts: a union is not {union}"


def test_every_skip_says_why() -> None:
    for requested, hook, settings in [
        (False, None, CONFIGURED),
        (None, CONTEXT, CONFIGURED),
        (None, None, PLAIN),
        (True, None, PLAIN),
        (None, CreateReturn(search=True), PLAIN),
    ]:
        decided = plan(requested, hook, settings, 0, set())
        assert decided.types == ()
        assert decided.reason


def test_a_requests_gaps_are_filled_from_the_settings_and_its_own_values_stay() -> None:
    settings = Settings.model_validate(
        {"search": {"kb": {"threshold": 0.4, "max_results": 7}}, "kb": {"collections": ["a", "b"]}}
    )
    filled = complete(SearchRequest(type="kb", query="q"), settings)
    assert (filled.limit, filled.threshold, filled.collections, filled.graph) == (
        7,
        0.4,
        ("a", "b"),
        False,
    )
    completed = complete(
        SearchRequest(type="kb", query="q", limit=1, threshold=0.0, collections=("c",)), settings
    )
    assert (completed.limit, completed.threshold, completed.collections) == (1, 0.0, ("c",))


@pytest.mark.parametrize("type", ["db", "kb"])
def test_pages_of_a_source_without_pages_are_refused(type: SearchType) -> None:
    with pytest.raises(ValidationError, match="a web search has no pages"):
        SearchRequest(type="web", query="q", offset=10)
    assert SearchRequest(type=type, query="q", offset=10).offset == 10
