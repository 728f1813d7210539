"""The schemas of every tool that comes with Groundhook."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from groundhook import open_host
from tests.conftest import MakeApp
from tests.parts.memory_kit import WRITABLE

IDENTITY = re.compile(r"tenant|user(?!intent)|team|institution|member|partner|owner", re.IGNORECASE)


async def test_every_tool_refuses_unknown_keys_and_lets_no_argument_name_an_identity(
    make_app: MakeApp,
) -> None:
    file = "assistants/memory/toolkits/memory.toolkit.yao"
    writing = json.dumps({**json.loads(WRITABLE[file]), "write": True, "forget": True})
    tools = []
    for app in (Path(__file__).parents[2], make_app({**WRITABLE, file: writing})):
        async with open_host(app) as host:
            tools += await host.tools()
    assert {tool.canonical for tool in tools} >= {
        *("catalogue.searchDatasets", "catalogue.searchResources", "learning.searchResources"),
        *("documents.search_documents", "memory.search", "memory.fetch", "memory.batch_fetch"),
        *("memory.remember", "memory.forget"),
    }
    for tool in tools:
        for schema in objects(tool.parameters):
            assert schema.get("additionalProperties") is False, tool.canonical
            assert [key for key in schema["properties"] if IDENTITY.search(key)] == []


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """The schemas of objects with keys, in a schema."""
    if isinstance(schema, dict):
        if schema.get("type") == "object" and "properties" in schema:
            yield schema
        for value in schema.values():
            yield from objects(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from objects(value)
