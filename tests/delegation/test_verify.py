"""A tool of a real MCP server that verifies the sentences of an answer."""

from __future__ import annotations

import json

import pytest

from groundhook.core.types.events import VerifiedSentence
from tests.conftest import MakeApp
from tests.mcp.conftest import HttpServer
from tests.parts.turns import end, of
from tests.parts.verifying import SUPPORTED, Verifier, judged, step, verified


@pytest.mark.parametrize("by", ["mcp:steps", "mcp:steps.verify"])
async def test_a_tool_says_which_sentences_the_sources_support(
    make_app: MakeApp, steps: HttpServer, by: str
) -> None:
    events = await verified(make_app, Verifier(), by=by, files=server(steps))
    assert of(events, "warning") == []
    assert judged(events) == {
        "Passwords": [
            VerifiedSentence(
                sentence="Passwords change after a leak.",
                supported=True,
                quote=SUPPORTED.rstrip("."),
            ),
            VerifiedSentence(sentence="They have twelve signs.", supported=False),
        ],
        "Tea": [VerifiedSentence(sentence="Tea is calm.", supported=False)],
    }
    assert step(events) == {"sentences": 3, "requests": 2, "verified": 1, "unsupported": 2}


async def test_a_tool_for_something_else_costs_a_warning_and_no_answer(
    make_app: MakeApp, steps: HttpServer
) -> None:
    events = await verified(make_app, Verifier(), by="mcp:steps.rerank", files=server(steps))
    [warning] = of(events, "warning")
    assert "tool 'agents.a.steps.rerank' requires 'query'" in warning.message
    assert warning.message.endswith("sentences not verified: 3")
    assert "Passwords change after a leak" in end(events).content
    assert end(events).claims.verified == 0


def server(steps: HttpServer) -> dict[str, str]:
    return {"mcps/steps.mcp.yao": json.dumps(steps.spec)}
