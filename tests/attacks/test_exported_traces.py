"""What leaves the app with an exported trace, and whose it is."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.conftest import MakeApp
from tests.loopback.server import Loopback
from tests.parts.exported_traces import KEY, attributes, collecting, exported, of_kind, sent


@pytest.fixture
def server() -> Iterator[Loopback]:
    with collecting() as made:
        yield made


async def test_secrets_and_the_fields_that_an_app_names_are_in_no_exported_trace(
    server: Loopback, make_app: MakeApp
) -> None:
    spans = await exported(make_app, server, content=True, redact=["pin", "door_code"])
    for secret in ("anna@example.com", "hunter22", KEY, "9999", "4711"):
        assert secret.encode() not in sent(server)
    [root] = of_kind(spans, "AGENT")
    assert root["input.value"] == (
        "When is the pool open? Write to [email], password: [redacted] $ENV.KEY"
    )
    first, _ = of_kind(spans, "LLM")
    [reply] = json.loads(first["output.value"])["messages"]
    arguments = json.loads(reply["tool_calls"][0]["function"]["arguments"])
    assert arguments == {"number": 12, "pin": "[redacted]"}
    [tool] = of_kind(spans, "TOOL")
    assert json.loads(tool["input.value"]) == {"number": 12, "pin": "[redacted]"}


async def test_people_and_chats_of_one_name_in_two_tenants_stay_two_in_exported_traces(
    server: Loopback, make_app: MakeApp
) -> None:
    for tenant in ("inn", "spa"):
        spans = await exported(make_app, server, tenant, content=True)
    owners = {(each["user.id"], each["session.id"]) for each in map(attributes, spans)}
    assert owners == {("inn/anna", "inn/chat-7"), ("spa/anna", "spa/chat-7")}
