"""`groundhook mcp`, and the example of docs/tools-and-mcp.md as printed there."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from groundhook import open_host
from tests.cli.conftest import Ran, run_in
from tests.conftest import MakeApp
from tests.parts.turns import end, of, scripted

DOCUMENT = Path(__file__).parents[2] / "docs/tools-and-mcp.md"
PATH = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}


def example() -> Mapping[str, str]:
    """The files of the example, each a block that begins with its name."""
    blocks = re.findall(
        r"```(?:python|jsonc|ts)\n(?://|#) (\S+)\n(.*?)```",
        DOCUMENT.read_text(encoding="utf-8"),
        re.DOTALL,
    )
    return dict(blocks)


@pytest.fixture
def app(make_app: MakeApp) -> Path:
    return make_app(example())


def groundhook(app: Path, *arguments: str) -> Ran:
    return run_in(app, *arguments, environment=PATH)


def test_the_example_is_whole_and_without_mistakes(app: Path) -> None:
    assert set(example()) == {
        "servers/orders.py",
        "mcps/orders.mcp.yao",
        "assistants/orders/package.yao",
        "assistants/orders/index.ts",
    }
    ran = groundhook(app, "check")
    assert (ran.code, ran.out) == (0, "No mistakes found.\n")


async def test_the_example_answers_by_model_and_hook(app: Path) -> None:
    model = scripted(
        {"tool_calls": [{"name": "orders__status", "arguments": {"number": 8}}]},
        "Shipped, and packing.",
    )
    async with (
        open_host(app, environment=PATH, connectors={"script": model}) as host,
        host.stream("orders", "Where are order 7 and the one after?", connector="script") as events,
    ):
        seen = [event async for event in events]
    assert [message.text for message in model.calls[0].messages if message.role == "system"] == [
        "Order 7 is shipped."
    ]
    assert [event.result for event in of(seen, "tool_result")] == [
        {"number": 8, "state": "packing"}
    ]
    assert end(seen).data == {"called": ["orders.status"]}


def test_a_tool_can_be_called_from_the_shell(app: Path) -> None:
    ran, output = (
        groundhook(app, "mcp", "call", "orders", "status", '{"number": 7}', *more)
        for more in ((), ("--json",))
    )
    assert (ran.code, ran.err, json.loads(ran.out)) == (0, "", {"number": 7, "state": "shipped"})
    (line,) = output.lines
    assert line["structuredContent"] == {"number": 7, "state": "shipped"}


def test_servers_and_what_they_offer_are_listed(app: Path) -> None:
    (app / "mcps/shop.mcp.yao").write_text(
        '{"transport": "http", "url": "http://127.0.0.1:9/mcp"}', encoding="utf-8"
    )
    ran, output = groundhook(app, "mcp", "list"), groundhook(app, "mcp", "list", "orders", "--json")
    assert re.search(r"^orders\tstdio\tpython servers/orders.py\tOrders", ran.out, re.MULTILINE)
    assert re.search(r"^shop\thttp\thttp://127.0.0.1:9/mcp", ran.out, re.MULTILINE)
    assert [(line["kind"], line["name"]) for line in output.lines] == [("tool", "status")]
    assert re.search(
        r"^tool\tstatus\tnumber\tThe state of an order\.",
        groundhook(app, "mcp", "list", "orders").out,
        re.MULTILINE,
    )


@pytest.mark.parametrize(
    ("arguments", "code", "expected_message"),
    [
        (["call", "order", "status"], 1, "no MCP server 'order' (did you mean 'orders'?)"),
        (
            ["call", "orders", "stats"],
            1,
            "no MCP tool 'orders.stats' (did you mean 'orders.status'?)",
        ),
        (
            ["call", "orders", "status", '{"number": "x"}'],
            1,
            "tool 'status' of MCP server 'orders' failed",
        ),
        (["call", "orders", "status", "7"], 2, "ARGUMENTS must be a JSON object"),
        (["call", "orders", "status", "{"], 2, "ARGUMENTS: not JSON"),
        (
            ["call", "orders", "status", '{"number":' + "[" * 101 + "]" * 101 + "}"],
            2,
            "ARGUMENTS: nested too deeply",
        ),
        (["list", "order"], 1, "no MCP server 'order'"),
    ],
)
def test_failures_are_reported_with_an_exit_code(
    app: Path, arguments: list[str], code: int, expected_message: str
) -> None:
    ran = groundhook(app, "mcp", *arguments)
    assert (ran.code, expected_message in ran.err) == (code, True), ran.err
