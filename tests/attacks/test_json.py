"""JSON of strangers: repeated keys, depth, long numbers, and texts in which some is looked for."""

from __future__ import annotations

import time

import pytest

from groundhook.core.readers.json_in_text import extract_json
from groundhook.host.llm.questions import parts
from groundhook.host.server.problems import WrongRequest
from groundhook.host.server.request_body import parse_json


def test_a_key_that_appears_twice_among_many_is_named_at_once() -> None:
    body = "{" + ",".join(f'"{n}":{n}' for n in range(50_000)) + ',"7":1}'
    began = time.process_time()
    with pytest.raises(WrongRequest, match="the key '7' appears twice"):
        parse_json(body.encode())
    assert time.process_time() - began < 5  # counting each key took minutes


NO_JSON = {
    "fences": "```a\n" * 60_000,
    "comments": "[1, " + "/* " * 100_000,
    "quotations": '\\"' * 150_000,
    "brackets": "[" * 300_000,
    "words": "[a" * 150_000,
    "values": "[null," * 300 + "null," * 60_000,
    "texts": "[null," * 300 + '"' + "a" * 300_000,
    "typographic quotes": "[“" * 150_000,
    "keys": '{"a":' * 60_000,
    "blocks": "```json\n[tru\n```\n" * 18_000,
}


@pytest.mark.parametrize("kind", NO_JSON)
def test_json_is_looked_for_in_time_that_grows_as_the_text_does(kind: str) -> None:
    began = time.process_time()
    assert extract_json(NO_JSON[kind]) is None
    assert time.process_time() - began < 5  # 0.2 s at most; each took minutes, or 300 times as long


def test_a_question_with_a_run_of_blanks_is_read_at_once() -> None:
    began = time.process_time()
    found = parts(f"how long is a loan{' ' * 100_000}and how is it renewed?")
    assert [part.text for part in found] == ["how long is a loan", "how is it renewed"]
    assert time.process_time() - began < 5  # 20 minutes at the square of its length


def test_what_follows_a_fence_that_nothing_closes_is_prose() -> None:
    assert extract_json('```json\n{"a": 1}\n') == {"a": 1}
    assert extract_json('```\n{"a": 1}\n```\nand ```json\n{"b": 2}\n```') == {"a": 1}
    assert extract_json('~~~text\nno value\n~~~\nThe value is {"b": 2}.') == {"b": 2}
