"""Validation of arguments, lists of servers, and requests by name: everything that needs no
server."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.types.servers import ListedServer, parse_listed
from groundhook.host.check.check import check
from groundhook.host.config.packages import load_app
from groundhook.host.tools.mcp.arguments import (
    problems_of,
    schema_problem,
    unchecked_keywords,
    validator_of,
)
from tests.conftest import MakeApp
from tests.parts.turns import of, run

TEXT = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
OPEN = {
    "$defs": {"base": {"properties": {"a": {}}}},
    "allOf": [{"$ref": "#/$defs/base"}, {"patternProperties": {"^n[0-9]$": {}}}],
    "anyOf": [{"properties": {"b": {}}}, False],
    "if": {"properties": {"a": {"type": "integer"}}},
    "then": {"properties": {"c": {}}},
    "dependentSchemas": {"b": {"properties": {"d": {}}}},
    "unevaluatedProperties": False,
}
NAMES = st.text("abc.-", min_size=1, max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("schema", "arguments", "wrong"),
    [
        (TEXT, {"text": "x"}, []),
        (TEXT, {"text": 1}, ["text: 1 is not of type 'string'"]),
        (TEXT, {}, ["arguments: 'text' is a required property"]),
        ({"properties": {"a": {"items": {"type": "integer"}}}}, {"a": [1, "2"]}, ["a[1]: '2' is not of type 'integer'"]),
        ({"$defs": {"n": {"enum": []}}, "properties": {"a": {"$ref": "#/$defs/n"}}}, {"a": 1}, ["a: 1 is not one of []"]),
        ({"properties": {"a": {"enum": ["b"]}}}, {"a": "c"}, ["a: 'c' is not one of ['b']"]),
        ({"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "a" * 40 + "!"}, [f"a: '{'a' * 40}!' does not match '^(a+)+$'"]),
        ({"properties": {"a": {"pattern": r"^[\u00c0-\u00ff]\/[[]$"}}}, {"a": "ä/["}, []),
        ({"patternProperties": {"^n": {"type": "integer"}}}, {"n1": 1, "n2": "x", "a": "x"}, ["n2: 'x' is not of type 'integer'"]),
        ({"patternProperties": {"^n": {}}, "properties": {"a": {}}, "additionalProperties": False}, {"n1": 1, "a": 1, "b": 1}, ["arguments: Additional properties are not allowed: 'b'"]),
        ({"patternProperties": {"^n": {}}, "additionalProperties": {"type": "null"}}, {"n1": 1, "b": 1}, ["b: 1 is not of type 'null'"]),
        (OPEN, {"a": 1, "b": 2, "n1": 3, "c": 4, "d": 5}, []),
        (OPEN, {"a": "x", "n1": 3, "c": 4, "d": 5, "e": 6}, ["arguments: Unevaluated properties are not allowed: 'c', 'd', 'e'"]),
        ({"properties": {"a": {"prefixItems": [{}], "contains": {"const": 2}, "unevaluatedItems": False}}}, {"a": [1, 2]}, []),
        ({"properties": {"a": {"prefixItems": [{}], "contains": {"const": 2}, "unevaluatedItems": False}}}, {"a": [1, 2, 3]}, ["a: Unevaluated items are not allowed: 2"]),
    ],
)  # fmt: skip
def test_a_problem_names_its_position(
    schema: Mapping[str, Any], arguments: Mapping[str, Any], wrong: list[str]
) -> None:
    assert problems_of(arguments, validator_of(schema)) == wrong


def test_an_unknown_argument_is_named() -> None:
    (message,) = problems_of({"text": "x", "txet": 1}, validator_of(TEXT))
    assert "'txet'" in message


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"pattern": "(?=b)"}}},
        {"properties": {"a": {"pattern": "\\p{L}["}}},
        {"patternProperties": {"^(b+)+$": {}, "\\p{L}[": {}}, "additionalProperties": False},
        {"unevaluatedProperties": False, "patternProperties": {"(": {}}},
        {"properties": {"a": {"pattern": "((a{1000}){1000}){1000}b"}}},
        {"$ref": "#/x", "x": {"properties": 7, "pattern": 7, "allOf": 7}},
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"properties": {"a": {"$ref": "file:///etc/passwd"}}},
        {"$ref": "#"},
        {"properties": {"a": {"$ref": "#/$defs/nowhere"}}},
        {"type": "no such type"},
        {"properties": 7},
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "properties": {"a": {"type": "string"}},
        },
        {"$schema": "no dialect"},
    ],
)
def test_keywords_that_cannot_be_checked_are_left_to_the_server(
    schema: Mapping[str, Any],
) -> None:
    assert problems_of({"a": "a" * 40 + "!"}, validator_of(schema)) == []


def test_a_number_too_large_for_a_fraction_is_left_to_the_server() -> None:
    assert (
        problems_of({"a": 10**400}, validator_of({"properties": {"a": {"multipleOf": 0.3}}})) == []
    )


def test_long_values_and_many_problems_are_shortened() -> None:
    schema = {"properties": {f"a{number}": {"type": "integer"} for number in range(50)}}
    wrong = problems_of({f"a{number}": "x" * 100_000 for number in range(50)}, validator_of(schema))
    assert len(wrong) == 5
    assert max(len(message) for message in wrong) < 250


@pytest.mark.parametrize("pattern", ["a{1,1000}b", "(a?){500}a{500}$", "(.{30}){30}!"])
def test_a_pattern_takes_bounded_time_whatever_it_is(pattern: str) -> None:
    began = time.thread_time()
    wrong = problems_of(
        {"a": "a" * 100_000}, validator_of({"properties": {"a": {"pattern": pattern}}})
    )
    assert "takes too long" in wrong[0]
    assert time.thread_time() - began < 5


@pytest.mark.parametrize("first", ["$dynamicRef", "dependentSchemas"])
def test_parts_that_are_reached_by_many_ways_end_with_a_problem(first: str) -> None:
    def both(ref: str) -> dict[str, Any]:
        other = {"b": {"$ref": ref}} if first == "dependentSchemas" else ref
        return {first: other, "$ref": ref}

    parts: dict[str, Any] = {f"d{n}": both(f"#/$defs/d{n + 1}") for n in range(40)}
    schema = {"unevaluatedProperties": False, **both("#/$defs/d0"), "$defs": {**parts, "d40": {}}}
    assert problems_of({"b": 1}, validator_of(schema)) == TOO_LONG


def test_many_patterns_over_many_names_end_with_a_problem() -> None:
    schema = {"additionalProperties": False, "patternProperties": {f"^{n}": {} for n in range(999)}}
    wrong = problems_of({f"x{n}": 1 for n in range(9_999)}, validator_of(schema))
    assert wrong == TOO_LONG


def test_large_patterns_are_compiled_in_bounded_time() -> None:
    schema = {"allOf": [{"pattern": f"a{{1,1000}}{n}"} for n in range(1_500)]}
    began = time.thread_time()
    assert unchecked_keywords(schema) == ["pattern", "patternProperties"]
    assert time.thread_time() - began < 5


def test_many_entries_are_compared_in_time_that_grows_as_they_do() -> None:
    many = {str(n): n for n in range(20_000)}
    began = time.thread_time()
    wrong = problems_of(many, validator_of({"unevaluatedProperties": False}))
    assert len(wrong) == 1
    assert time.thread_time() - began < 5


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4), JSON)
def test_no_schema_and_no_arguments_make_the_check_raise(
    arguments: dict[str, Any], schema: Any
) -> None:
    for each in (
        {"properties": schema},
        {"type": schema},
        {"required": schema},
        {"allOf": schema},
        {"$ref": schema},
        {"$id": schema},
    ):
        assert isinstance(problems_of(arguments, validator_of(each)), list)


# ------------------------------------------------------------------ checks that would take too long

TOO_LONG = ["the arguments cannot be checked against this schema: it takes too long"]
DOUBLING = {
    "$ref": "#/$defs/a0",
    "$defs": {
        **{f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(40)},
        "a40": {},
    },
}


def test_many_unique_items_are_compared_in_one_pass() -> None:
    validator = validator_of({"properties": {"points": {"uniqueItems": True}}})
    points = [{"x": number} for number in range(10_000)]
    assert problems_of({"points": points}, validator) == []
    (message,) = problems_of({"points": [{"x": 1, "y": 2}, {"y": 2, "x": 1}]}, validator)
    assert message.endswith("has non-unique elements")


def test_true_and_one_are_unique_items_and_equal_numbers_are_not() -> None:
    validator = validator_of({"properties": {"a": {"uniqueItems": True}}})
    assert problems_of({"a": [1, True, "1", [1], None, 1.5]}, validator) == []
    for same in ([1, 1.0], [{"x": [2.0]}, {"x": [2]}], [0, -0.0], [10**22, 1e22]):
        (message,) = problems_of({"a": same}, validator)
        assert message.endswith("has non-unique elements")


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_a_schema_that_doubles_at_each_reference_ends_with_a_problem(keyword: str) -> None:
    text = json.dumps(DOUBLING).replace("allOf", keyword).replace('"a40": {}', '"a40": false')
    schema = DOUBLING if keyword == "allOf" else json.loads(text)
    assert problems_of({"a": 1}, validator_of(schema)) == TOO_LONG


def test_a_part_that_names_its_own_dialect_is_bounded_too() -> None:
    dialect = "https://json-schema.org/draft/2020-12/schema"
    slow = {"$schema": dialect, "pattern": "^(a+)+$"}
    validator = validator_of({"properties": {"a": slow, "b": {"$schema": dialect, **DOUBLING}}})
    [wrong] = problems_of({"a": "a" * 40 + "!"}, validator)
    assert "does not match" in wrong
    nested = {
        "$defs": DOUBLING["$defs"],
        "properties": {"b": {"$schema": dialect, "$ref": "#/$defs/a0"}},
    }
    assert problems_of({"b": 1}, validator_of(nested)) == TOO_LONG


def test_many_valid_arguments_are_within_the_time() -> None:
    point = {
        "type": "object",
        "properties": {"x": {"type": "integer", "minimum": 0}, "y": {"type": "integer"}},
        "required": ["x", "y"],
        "additionalProperties": False,
    }
    schema = {"properties": {"points": {"type": "array", "items": {"anyOf": [TEXT, point]}}}}
    points = [{"x": number, "y": 1} for number in range(1_500)]
    assert problems_of({"points": points}, validator_of(schema)) == []


@pytest.mark.parametrize("keyword", ["type", "enum"])
def test_a_schema_with_a_long_list_of_objects_is_checked_in_one_pass(keyword: str) -> None:
    entries = [{"x": number} for number in range(3_000)]
    schema = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": {"a": {keyword: entries}},
    }
    validator = validator_of(schema)
    assert (validator is None) == (keyword == "type")


# --------------------------------------------------------------------------------- lists of servers


@given(NAMES, st.lists(NAMES, max_size=3))
def test_every_form_of_an_entry_has_the_same_meaning(name: str, tools: list[str]) -> None:
    listed = (ListedServer(name, tuple(tools)),)
    for entry in ({name: tools}, {name: {"tools": tools}}, {"server_id": name, "tools": tools}):
        if name != "server_id":
            assert parse_listed(entry) == listed
    assert parse_listed(name) == (ListedServer(name),)


def test_an_entry_may_name_several_servers_and_resources() -> None:
    assert parse_listed({"a": ["x"], "b": []}) == (ListedServer("a", ("x",)), ListedServer("b"))
    assert parse_listed({"server_id": "a", "resources": ["r"]}) == (ListedServer("a", (), ("r",)),)


@given(st.dictionaries(st.sampled_from(["server_id", "a", "tools", ""]), JSON, max_size=3))
def test_any_entry_is_parsed_or_rejected(entry: dict[str, Any]) -> None:
    with suppress(ValueError):
        assert all(each.name and isinstance(each.tools, tuple) for each in parse_listed(entry))


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("", "names no server"),
        ({}, "names no server"),
        ({"server_id": 3}, "'server_id' must be text"),
        ({"a": "echo"}, "'a' must be followed by a list of tools"),
        ({"a": [1]}, "'tools' of 'a' must be a list of names"),
        ({"server_id": "a", "tool": ["x"]}, "'tool' is not a key of a server"),
    ],
)
async def test_an_invalid_entry_names_its_position(
    make_app: MakeApp, entry: Any, problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_listed(entry)
    package = json.dumps({"name": "A", "connector": "script"})
    hook = f"const Create = () => ({{ mcp_servers: [{json.dumps(entry)}] }})"
    app = make_app(
        {
            "assistants/a/package.yao": package,
            "assistants/a/index.ts": hook,
            "agent/agent.yml": "hooks: {workers: 0}",
        }
    )
    (error,) = of(await run(app), "error")
    assert (error.code, problem in error.message) == ("hook_return", True)


def test_every_server_that_an_entry_names_is_looked_up(make_app: MakeApp) -> None:
    listed = [{"orders": ["a"], "odrers": []}, {"server_id": "oders"}, {"orders": 3}]
    app = make_app(
        {
            "mcps/orders.mcp.yao": '{"command": "x"}',
            "assistants/a/package.yao": json.dumps({"name": "A", "mcp": {"servers": listed[:2]}}),
            "assistants/b/package.yao": json.dumps({"name": "B", "mcp": {"servers": listed[2:]}}),
        }
    )
    found = [problem.message for problem in check(load_app(app, {}))]
    assert found[:2] == ["no MCP server 'odrers'", "no MCP server 'oders'"]
    assert "'orders' must be followed by a list of tools" in found[2]


@pytest.mark.parametrize("keyword", ["if", "not"])
def test_a_schema_without_end_is_said_to_have_none_at_any_depth_of_the_stack(keyword: str) -> None:
    def beneath(depth: int) -> str:
        return beneath(depth - 1) if depth else schema_problem({keyword: {"$ref": "#"}})

    # The stack ends in code of the library that is not Python's at every few of these depths.
    assert {beneath(depth) for depth in range(8)} == {"refers to itself without end: '#'"}


@pytest.mark.parametrize(
    ("schema", "reference"),
    [
        (
            {"properties": {"x": {"items": {"$ref": "#/properties/x/items"}}}},
            "#/properties/x/items",
        ),
        ({"items": {"$ref": "#/$defs/a~1b"}, "$defs": {"a/b": {"not": {"$ref": "#/items"}}}}, "#/"),
        ({"items": {"anyOf": [{}, {"$ref": "#/items"}]}}, "#/items"),
        (
            {
                "properties": {"x": {"$ref": "#"}},
                "items": {"$ref": "#/%24defs/t"},
                "$defs": {"t": {}},
            },
            "",
        ),
        ({"items": {"allOf": [{"$ref": "#/items/allOf/0"}]}}, "#/items/allOf/0"),
    ],
)
def test_a_schema_without_end_is_found_where_no_value_has_led(
    schema: dict[str, Any], reference: str
) -> None:
    said = f"refers to itself without end: '{reference}" if reference else ""
    assert schema_problem(schema).startswith(said)
    assert bool(schema_problem(schema)) == bool(reference)


def test_a_large_schema_of_references_is_looked_through_in_linear_time() -> None:
    many: dict[str, Any] = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(120)
    }
    many["d120"] = {}
    assert schema_problem({"items": {"$ref": "#/$defs/d0"}, "$defs": many}) == ""
    many["d120"] = {"$ref": "#/$defs/d0"}
    endless = schema_problem({"items": {"$ref": "#/$defs/d0"}, "$defs": many})
    assert endless.startswith("refers to itself without end: '#/$defs/d")
