"""Attacks on memories: what another user remembers, by way of a conversation's name."""

from __future__ import annotations

import json
from typing import Any

from groundhook import open_host
from tests.conftest import MakeApp
from tests.parts.memory_kit import WRITABLE

ME, YOU = {"user_id": "me"}, {"user_id": "you"}
COLLECTION = "assistants/memory/kb/own.kb.yao"
KIT = "assistants/memory/toolkits/memory.toolkit.yao"


async def test_a_conversation_with_the_name_of_anothers_brings_no_turn_of_it(
    make_app: MakeApp,
) -> None:
    own = json.loads(WRITABLE[COLLECTION])
    own["fields"]["turn"] = "keyword"
    kit = {**json.loads(WRITABLE[KIT]), "neighbours": 3}
    app = make_app({**WRITABLE, COLLECTION: json.dumps(own), KIT: json.dumps(kit)})
    async with open_host(app) as host:

        async def call(tool: str, arguments: dict[str, Any], identity: Any) -> Any:
            outcome = await host.tool(tool, arguments, identity=identity, assistant="memory")
            assert outcome.error is None, outcome.error
            return outcome

        for identity, turn, content in (
            (YOU, 1, "What is the code of the safe?"),
            (YOU, 2, "It is 4711."),
            (ME, 2, "Did the piano survive the stairs?"),
        ):
            note = {"title": "Said", "content": content, "conversation": "chat 1", "turn": turn}
            await call("remember", {"collection": "own", **note}, identity)
        asked = {"query": "piano stairs", "collection": "own"}
        mine = await call("search", asked, ME)
        theirs = await call("search", asked, YOU)
    assert [each["preview"] for each in mine.result] == ["Did the piano survive the stairs?"]
    assert "4711" not in mine.text
    assert "piano" not in theirs.text
