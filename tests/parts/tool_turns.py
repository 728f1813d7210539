"""Model answers that call tools."""

from __future__ import annotations

from typing import Any

from groundhook.host.llm.scripted import ScriptedConnector


def called(*calls: tuple[str, Any]) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments} for name, arguments in calls]}


def names(model: ScriptedConnector) -> list[str]:
    return [tool["function"]["name"] for tool in model.calls[0].tools]
