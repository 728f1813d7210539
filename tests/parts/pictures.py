"""Turns with pictures that the model does not see, and a scripted model that describes them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import anyio

from groundhook import open_host
from groundhook.core.types.connector_spec import ConnectorOptions, ConnectorSpec
from groundhook.host.llm.scripted import ScriptedConnector
from tests.conftest import MakeApp
from tests.parts.turns import app_with, scripted

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
TEXT = "A receipt: tea, 4 crowns; total 11 crowns."
PACKAGE = json.dumps({"name": "A", "connector": "script", "uses": {"vision": "connector:eyes"}})


def picture(data: bytes = PIXEL, name: str = "receipt.png") -> dict[str, Any]:
    url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    return {"type": "image_url", "image_url": {"url": url, "filename": name}}


def asked(*parts: dict[str, Any], text: str = "What is the total?") -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}, *parts]}


def seeing(*script: Any, id: str = "eyes", sees: bool = True) -> ScriptedConnector:
    return ScriptedConnector(
        ConnectorSpec(
            id=id,
            type="scripted",
            options=ConnectorOptions(script=script),
            capabilities={"vision": sees},
        )
    )


class Turns:
    """Turns of an app whose model does not see."""

    def __init__(self, make_app: MakeApp, package: str = PACKAGE, **files: str) -> None:
        self.app: Path = app_with(make_app, package, **files)
        self.model = scripted(*["It is 11 crowns {ref:0}."] * 3)
        self.eyes = seeing(json.dumps({"text": TEXT}))

    async def __call__(self, *messages: Any, times: int = 1) -> list[Any]:
        given = {"script": self.model, "eyes": self.eyes}
        with anyio.fail_after(60):
            async with open_host(self.app, environment={}, connectors=given) as host:
                for _ in range(times):
                    async with host.stream("a", list(messages)) as events:
                        seen = [event async for event in events]
        return seen

    @property
    def prompt(self) -> str:
        return "\n".join(each.text for each in self.model.calls[-1].messages)
