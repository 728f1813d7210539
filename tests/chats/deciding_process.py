"""A process that approves the call of a kept chat and then hangs in it, until a test kills it:

python -m tests.chats.deciding_process APP
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio
from pydantic import BaseModel

from groundhook import open_host
from groundhook.core.types.tools import Tool
from groundhook.host.testing.canned import CannedSource
from tests.parts.turns import scripted

CHAT = "c_decided"
RAN = "ran.txt"


class Order(BaseModel):
    order: int


async def decide(app: Path) -> None:
    async def cancel(arguments: Order) -> None:
        with (app / RAN).open("a") as file:
            file.write(f"{arguments.order}\n")
        sys.stdout.write("running\n")
        sys.stdout.flush()
        await anyio.sleep_forever()

    tool = Tool(name="cancel", description="Cancel", arguments=Order, run=cancel, confirm=True)
    empty: Any = {kind: CannedSource({}) for kind in ("kb", "web", "db")}
    async with (
        open_host(
            app,
            environment={},
            sources=empty,
            connectors={"script": scripted("Never")},
            tools=[tool],
        ) as host,
        host.chat("a", identity={"tenant_id": "acme", "user_id": "ada"}, chat_id=CHAT) as chat,
        chat.decide(True) as events,
    ):
        async for _ in events:
            pass


if __name__ == "__main__":
    anyio.run(decide, Path(sys.argv[1]))
