"""Pictures and files in messages: they have limits of their own, and the text keeps its limit."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from groundhook.core.server_settings import LimitSettings
from groundhook.core.types.turn import Message
from groundhook.host.server.problems import WrongRequest
from groundhook.host.server.request_body import check_lengths, parse_json
from tests.server.conftest import Served

MB = 1024 * 1024


def picture(size: int) -> dict[str, Any]:
    """A picture of `size` bytes."""
    data = "QUJD" * (size // 3)
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}


def asked(*parts: Any, text: str = "all teas") -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}, *parts]}


@pytest.mark.parametrize("sizes", [[300_000], [1_500_000], [7 * MB], [2 * MB, 2 * MB]])
def test_a_photo_is_accepted(one_process: Served, sizes: list[int]) -> None:
    body = {"model": "tea", "messages": [asked(*map(picture, sizes))]}
    with one_process.client() as client:
        assert client.post("/v1/chat/completions", json=body).status_code == 200


@pytest.mark.parametrize(
    ("parts", "text", "status", "words"),
    [
        ([9 * MB], "?", 400, "messages[0]: an image or a file has at most 8 MB (server.limits.im"),
        ([], "x" * 300_000, 400, "256 kB of text together are accepted (server.limits.message_kb)"),
        ([300_000], "x" * 300_000, 400, "(server.limits.message_kb)"),
        ([7 * MB, 7 * MB, 7 * MB], "?", 413, "at most 16 MB together (images_mb)"),
        ([], "x" * 2 * MB, 413, "at most 1024 kB (server.limits.body_kb)"),
        ([2 * MB], "x" * 2 * MB, 413, "at most 1024 kB (server.limits.body_kb)"),
    ],
)
def test_what_is_too_large_is_refused_with_the_name_of_its_limit(
    one_process: Served, parts: list[int], text: str, status: int, words: str
) -> None:
    body = {"model": "tea", "messages": [asked(*map(picture, parts), text=text)]}
    with one_process.client() as client:
        answer = client.post("/v1/chat/completions", json=body)
    assert answer.status_code == status
    assert words in answer.text


def test_a_part_of_an_odd_type_is_no_picture() -> None:
    odd = {"type": ["image_url"], "url": "x" * 300_000}
    with pytest.raises(WrongRequest, match="of text together"):
        check_lengths([Message(role="user", content=[odd])], LimitSettings())


def test_the_largest_pictures_are_read_faster_than_a_reader_notices() -> None:
    body = json.dumps({"messages": [asked(picture(8 * MB), picture(8 * MB - 1000))]}).encode()
    began = time.thread_time()
    given = parse_json(body)
    check_lengths([Message(**each) for each in given["messages"]], LimitSettings())
    assert time.thread_time() - began < 2.0  # about 0.06 s alone
