"""Pure functions: lines, names and values."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import CallToolResult

from groundhook.core.errors import ToolFailed
from groundhook.host.check.check import check
from groundhook.host.config.packages import load_app
from groundhook.host.tools.mcp.lines import EDGE, LineSplitter, Oversize
from groundhook.host.tools.mcp.shapes import (
    answered_id,
    attachments_of,
    function_schema,
    is_read_only,
    known_block,
    prompt_arguments,
    text_of,
    tool_result,
    unique_names,
    unread_of,
    value_of,
)
from tests.conftest import MakeApp

LARGEST = 2 * EDGE
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "jsonrpc", "a"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    at = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(at)]


@given(
    st.lists(st.integers(0, 3 * LARGEST), max_size=6), st.lists(st.integers(0, 10_000), max_size=8)
)
def test_lines_are_the_same_however_the_bytes_arrive(sizes: list[int], cuts: list[int]) -> None:
    lines = [
        bytes(97 + (number + at) % 26 for at in range(size)) for number, size in enumerate(sizes)
    ]
    splitter = LineSplitter(LARGEST)
    found = [
        line
        for piece in pieces(b"".join(line + b"\n" for line in lines) + b"rest", cuts)
        for line in splitter.feed(piece)
    ]

    assert found == [
        line if len(line) <= LARGEST else Oversize(line[:EDGE], line[-EDGE:], len(line))
        for line in lines
    ]


@given(
    st.integers(0, 10**9),
    JSON,
    st.permutations(["jsonrpc", "id", "result"]),
    st.sampled_from([None, 1]),
)
def test_the_id_of_an_oversized_message_is_found_whatever_the_order_of_its_keys(
    number: int, inside: Any, order: list[str], indent: int | None
) -> None:
    message = {"jsonrpc": "2.0", "id": number, "result": [inside, "x" * LARGEST, inside]}
    line = json.dumps(
        {key: message[key] for key in order}, separators=None if indent else (",", ":")
    ).encode()

    found = answered_id(Oversize(line[:EDGE], line[-EDGE:], len(line)))

    assert found == number


@pytest.mark.parametrize(
    "line",
    [b'{"result":{"x":"%s","id":7}}', b'{"x":{"id":7,"y":"%s"}}', b'{"x":"%s \\"id\\":7}"}', b"%s"],
)
def test_a_result_cannot_pretend_to_answer_another_request(line: bytes) -> None:
    line = line.replace(b"%s", b"x" * LARGEST)

    assert answered_id(Oversize(line[:EDGE], line[-EDGE:], len(line))) is None


names = st.text(st.sampled_from("ab._-é "), min_size=1, max_size=70)


@given(st.lists(st.tuples(names, names), max_size=8))
def test_names_of_tools_are_unique_and_valid(tools: list[tuple[str, str]]) -> None:
    given_names = unique_names(tools)

    assert set(given_names) == set(tools)
    assert len(set(given_names.values())) == len(set(tools))
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in given_names.values())
    assert unique_names(reversed(tools)) == given_names


def test_a_result_is_its_structure_or_its_content_as_text() -> None:
    text = {"content": [{"type": "text", "text": "[1,"}, {"type": "text", "text": "2]"}]}
    image = {"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]}

    assert value_of("s", "t", {**text, "structuredContent": {"a": None}}) == {"a": None}
    assert value_of("s", "t", text) == [1, 2]
    assert value_of("s", "t", image) == "[image, image/png, 1 kB: not read]"
    assert text_of(text) == "[1,\n2]"


@pytest.mark.parametrize(
    ("block", "note"),
    [
        ({"type": "video", "data": "aGk=", "mimeType": "video/mp4"}, "video, video/mp4, 1 kB"),
        ({"type": "image", "url": "http://a.b/c.png"}, "image"),
        ({"type": "resource", "resource": {"uri": "a:b"}}, "resource a:b"),
        ({"type": "resource", "resource": "a:b"}, "resource"),
        ({"type": ["text"]}, "['text']"),
        ({"text": "a"}, "part"),
    ],
)
def test_a_block_that_the_protocol_does_not_have_is_named_beside_the_others(
    block: dict[str, Any], note: str
) -> None:
    known = [{"type": "text", "text": "a"}, {"type": "image", "data": "", "mimeType": "a/b"}]
    result = {"content": [known_block(each) for each in (known[0], block)]}
    assert text_of(result) == f"a\n[{note}: not read]"
    assert (unread_of(result), attachments_of(result)) == ([note], f"[{note}: not read]")
    CallToolResult.model_validate(result)
    assert list(map(known_block, known)) == known


def test_a_failure_without_a_message_gets_one() -> None:
    failed = tool_result({"content": [], "isError": True, "structuredContent": {}})

    assert failed == {
        "content": [],
        "isError": True,
        "error": "the tool failed without a message",
    }
    with pytest.raises(ToolFailed, match="without a message"):
        value_of("s", "t", failed)


def test_only_tools_that_the_server_declares_repeatable_are_read_only() -> None:
    assert is_read_only({"annotations": {"readOnlyHint": True}})
    assert is_read_only({"annotations": {"idempotentHint": True, "readOnlyHint": False}})
    assert not is_read_only({"annotations": {"destructiveHint": False}})
    assert not is_read_only({})


def test_a_function_has_a_schema_even_if_the_tool_has_none() -> None:
    shown = function_schema("s__t", {"name": "t", "title": "T" * 2000})["function"]

    assert shown["parameters"] == {"type": "object", "properties": {}}
    assert shown["description"] == "T" * 1024


def test_arguments_of_a_prompt_are_text() -> None:
    assert prompt_arguments({"a": "x", "b": 7, "c": {"é": None}}) == {
        "a": "x",
        "b": "7",
        "c": '{"é": null}',
    }


def test_problems_of_a_servers_file_name_their_position(make_app: MakeApp) -> None:
    root = make_app(
        {
            "assistants/a/package.yao": "{}",
            "mcps/empty.mcp.yao": "{}",
            "mcps/far.mcp.yao": '{\n  "transport": "http",\n  "url": "example.org"\n}',
            "mcps/odd.mcp.yao": '{"command": "x", "tool": ["y"], "timeout": 0}',
        }
    )

    assert [str(problem) for problem in check(load_app(root, {}))] == [
        (
            "mcps/empty.mcp.yao:1:1: error: 'command': a stdio server needs 'command', the program"
            " to run (or use transport: 'http')"
        ),
        (
            "mcps/far.mcp.yao:3:10: error: 'url': should be an http(s) address, such as"
            " 'https://host:8443/path', not 'example.org'"
        ),
        "mcps/odd.mcp.yao:1:18: error: unknown key 'tool' (did you mean 'tools'?)",
        "mcps/odd.mcp.yao:1:44: error: 'timeout': should be greater than 0, not 0",
    ]
