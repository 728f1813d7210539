"""Answers of servers that are right in the protocol and were lost: errors with codes that the SDK
uses as well, blocks beside a text, text that is not UTF-8."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from groundhook.core.errors import ServerMalformed, ServerRefused
from tests.conftest import MakeApp
from tests.loopback.chat import answer, chunk
from tests.loopback.server import Sse, serving
from tests.mcp.conftest import Open, script, value
from tests.parts.turns import of, run

# Answers a call of a tool by its entry of `ANSWERS`; the tool `calls` returns how many there were.
SERVER = """
import json, sys
ANSWERS = {
    "quota": b'"error":{"code":-32000,"message":"quota exceeded"}',
    "later": b'"error":{"code":-32001,"message":"busy until noon"}',
    "latin": b'"result":{"content":[{"type":"text","text":"caf\\xe9 and on"}]}',
    "half": b'"result":{"content":[{"type":"text","text":"a \\\\ud83d b"}]}',
    "broken": b'"result":{"content":[{"type":"text","text":}]}',
    "file": b'"result":{"content":[{"type":"text","text":"downloaded"},{"type":"resource",'
    b'"resource":{"uri":"repo://a.py","mimeType":"text/plain","text":"print(1)"}}]}',
    "link": b'"result":{"content":[{"type":"text","text":"see"},'
    b'{"type":"resource_link","uri":"file:///b","name":"b.txt"}]}',
    "chart": b'"result":{"content":[{"type":"text","text":"a chart"},'
    b'{"type":"image","data":"' + b"QUJD" * 4096 + b'","mimeType":"image/png"}]}',
    "video": b'"result":{"content":[{"type":"text","text":"a film"},{"type":"video","data":"'
    b'QUJD","mimeType":"video/mp4"}]}',
    "many": b'"result":{"content":[' + b",".join([b'{"type":"text","text":"a"}'] * 2001) + b"]}",
    "most": b'"result":{"content":[' + b",".join([b'{"type":"text","text":"a"}'] * 2000) + b"]}",
    "numbers": b'"result":{"content":[],"structuredContent":{"a":[' + b"1," * 100_000 + b"1]}}",
    "unlike": b'"result":{"content":[],"structuredContent":{"b":1}}',
    "slow": b'"result":{"content":[],"structuredContent":{"a":"' + b"a" * 50 + b'!"}}',
    "both": b'"result":{"structuredContent":{"a":1},"content":[{"type":"text","text":"{}"},'
    b'{"type":"resource_link","uri":"file:///b","name":"b.txt"}]}',
}
READS = {"readOnlyHint": True}
calls = 0
for line in sys.stdin:
    asked = json.loads(line)
    id, method = asked.get("id"), asked["method"]
    if id is None:
        continue
    if method == "initialize":
        made = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities":
                {"tools": {}}, "serverInfo": {"name": "odd", "version": "1"}}
    elif method == "tools/list":
        made = {"tools": [{"name": name, "inputSchema": {"type": "object"}, "annotations": READS}
                          for name in (*ANSWERS, "calls")]}
        for tool in made["tools"]:
            if tool["name"] in ("slow", "unlike"):
                tool["outputSchema"] = {"type": "object", "properties": {
                    "a": {"type": "string", "pattern": "^(a+)+$"}, "b": {"type": "string"}}}
    elif method != "tools/call":
        error = {"code": -32601, "message": "no such method"}
        print(json.dumps({"jsonrpc": "2.0", "id": id, "error": error}), flush=True)
        continue
    elif asked["params"]["name"] == "calls":
        made = {"content": [{"type": "text", "text": str(calls)}]}
    else:
        calls += 1
        body = ANSWERS[asked["params"]["name"]]
        sys.stdout.buffer.write(b'{"jsonrpc":"2.0","id":%d,' % id + body + b"}\\n")
        sys.stdout.buffer.flush()
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": made}), flush=True)
"""


@pytest.mark.parametrize(
    ("tool", "kind", "words"),
    [
        ("quota", ServerRefused, r"quota exceeded \(-32000\)"),
        ("later", ServerRefused, r"busy until noon \(-32001\)"),
        ("broken", ServerMalformed, "not valid MCP"),
        ("numbers", ServerMalformed, "has more than 100000 values"),
        ("unlike", ServerMalformed, "violates the schema that it declares: b: 1 is not of type"),
        ("many", ServerMalformed, "has a list of 2001 entries: at most 2000 are read"),
    ],
)
async def test_an_error_of_the_server_is_its_answer_and_the_call_is_not_repeated(
    opened: Open, tool: str, kind: type[Exception], words: str
) -> None:
    async with opened(odd=script(SERVER, timeout=600)) as servers:
        with anyio.fail_after(60), pytest.raises(kind, match=words):
            await servers.call_tool("odd", tool, {})
        assert await value(servers, "odd", "calls") == 1


@pytest.mark.parametrize(
    ("tool", "text"), [("latin", "caf� and on"), ("half", "a � b"), ("most", "\n".join("a" * 2000))]
)
async def test_text_that_is_not_utf_8_arrives_with_a_mark_in_its_place(
    opened: Open, tool: str, text: str
) -> None:
    async with opened(odd=script(SERVER, timeout=600)) as servers:
        with anyio.fail_after(60):
            assert await value(servers, "odd", tool) == text


async def test_a_pattern_in_the_schema_of_a_result_takes_no_time(opened: Open) -> None:
    async with opened(odd=script(SERVER, timeout=600)) as servers:
        with anyio.fail_after(60):
            with pytest.raises(ServerMalformed, match="does not match"):
                await value(servers, "odd", "slow")


@pytest.mark.parametrize(
    ("tool", "text", "unread"),
    [
        ("file", "downloaded\n[resource repo://a.py, text/plain]\nprint(1)", ""),
        ("link", "see\n[resource b.txt file:///b]", ""),
        ("chart", "a chart\n[image, image/png, 12 kB: not read]", "image, image/png, 12 kB"),
        (
            "video",
            "a film\n[video, video/mp4, 1 kB: not read]",
            "video, video/mp4, 1 kB",
        ),
        ("both", '{"a": 1}\n[resource b.txt file:///b]', ""),
    ],
)
async def test_what_stands_beside_the_text_of_a_result_reaches_the_model(
    make_app: MakeApp, tool: str, text: str, unread: str
) -> None:
    called = {"index": 0, "id": "c", "function": {"name": f"odd__{tool}", "arguments": "{}"}}
    with serving() as model:
        model.on(
            "/v1/chat/completions",
            Sse([chunk({"tool_calls": [called]}), chunk(finish="tool_calls"), "[DONE]"]),
            Sse(answer("done")),
        )
        options: dict[str, Any] = {"model": "m", "host": f"{model.url}/v1", "retries": 0}
        app = make_app(
            {
                "assistants/a/package.yao": json.dumps(
                    {"connector": "gpt", "mcp": {"servers": ["odd"]}}
                ),
                "connectors/gpt.conn.yao": json.dumps({"type": "openai", "options": options}),
                "mcps/odd.mcp.yao": json.dumps(script(SERVER)),
            }
        )
        events = await run(app)
        [_, sent] = [received.json["messages"] for received in model.requests]
    assert sent[-1]["content"] == text
    warned = [each.message for each in of(events, "warning") if each.code == "part_not_read"]
    assert warned == ([f"odd__{tool}: not read of its result: {unread}"] if unread else [])
