"""JSON of strangers: repeated keys, depth, long numbers."""

from __future__ import annotations

import time

import pytest

from groundhook.host.server.problems import WrongRequest
from groundhook.host.server.request_body import parse_json


def test_a_key_that_appears_twice_among_many_is_named_at_once() -> None:
    body = "{" + ",".join(f'"{n}":{n}' for n in range(50_000)) + ',"7":1}'
    began = time.process_time()
    with pytest.raises(WrongRequest, match="the key '7' appears twice"):
        parse_json(body.encode())
    assert time.process_time() - began < 5  # counting each key took minutes
