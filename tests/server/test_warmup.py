"""What a server does before its first visitor."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.conftest import MakeApp

APP = {
    "connectors/fixed.conn.yao": '{"type": "scripted", "options": {"script": [{"text": "Yes."}]}}',
    "assistants/hooked/package.yao": '{"name": "Hooked", "connector": "fixed"}',
    "assistants/hooked/index.ts": "function Create(ctx: any, messages: any[]) { return {}; }\n",
}
PROGRAM = """
import json, sys
import anyio
from groundhook import open_host
from groundhook.core.types.events import StreamEnd, Text, Trace
from groundhook.host.server.warmup import warm_up

async def main():
    async with open_host(sys.argv[1], environment={}) as host:
        await warm_up(host, ["hooked"])
        before = set(sys.modules)
        unbuilt = [each.__name__ for each in (StreamEnd, Text, Trace) if not each.__pydantic_complete__]
        async with host.stream("hooked", "Is it so?") as events:
            text = "".join([event.delta async for event in events if isinstance(event, Text)])
        print(json.dumps([text, sorted(set(sys.modules) - before), unbuilt]))

anyio.run(main)
"""


def test_the_first_turn_after_the_warm_up_imports_nothing_and_builds_no_event(
    make_app: MakeApp,
) -> None:
    # A process of its own: this one has imported and built everything already.
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(make_app(APP))],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(ran.stdout) == ["Yes.", [], []]
