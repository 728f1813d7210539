"""Requests that are too large: refused before anything else reads them."""

from __future__ import annotations

from typing import Any

import pytest

from groundhook import UsageError, open_host
from tests.conftest import MakeApp

APP = {
    "agent/agent.yml": "hooks: {workers: 0}\nturns: {messages: 3, characters: 100}\n",
    "assistants/a/package.yao": '{"connector": "s"}',
    "connectors/s.conn.yao": '{"type": "scripted", "options": {"script": ["fine"]}}',
}
PART = {"type": "text", "text": "x" * 60}
CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        (
            [{"role": "user", "content": "x"}] * 4,
            "has 4 messages, more than the limit of 3 .*turns.messages",
        ),
        ("x" * 101, r"have 10\d characters, more than the limit of 100 .*turns.characters"),
        ([{"role": "user", "content": [PART, PART]}], "characters, more than the limit of 100"),
        ([{"role": "user", "content": CYCLE}], "nested too deeply"),
    ],
)
async def test_a_request_with_too_many_or_too_long_messages_is_refused_with_its_limit(
    make_app: MakeApp, messages: Any, says: str
) -> None:
    async with open_host(make_app(APP), environment={}) as host:
        with pytest.raises(UsageError, match=says):
            host.stream("a", messages)


async def test_images_do_not_count_as_characters(make_app: MakeApp) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 1000}}
    message = {"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]}
    async with (
        open_host(make_app(APP), environment={}) as host,
        host.stream("a", [message]) as events,
    ):
        assert [event async for event in events][-1].type == "stream_end"
