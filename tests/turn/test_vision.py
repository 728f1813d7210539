"""Pictures in messages that the model does not see: described by what `uses.vision` names."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

import anyio
import pytest

from groundhook import open_host
from groundhook.core.types.delegation import VisionAsk
from groundhook.core.types.events import Event
from groundhook.core.types.uses import VISION
from groundhook.host.llm.scripted import ScriptedConnector
from groundhook.host.turn.delegation import DelegateTargets, TurnDelegates
from tests.conftest import MakeApp
from tests.parts.pictures import TEXT, Turns, asked, picture, seeing
from tests.parts.turns import end, of, scripted


async def test_a_picture_that_the_model_does_not_see_becomes_a_cited_text(
    make_app: MakeApp,
) -> None:
    turns = Turns(make_app)
    events = await turns(asked(picture()))
    assert TEXT in turns.prompt
    assert "[attached file receipt.png: a picture that this model does not see;" in turns.prompt
    (cited,) = end(events).citations
    assert (cited.title, cited.verdict) == ("receipt.png (description of a picture)", "ok")
    assert not of(events, "warning")
    # The model that sees gets the picture, and no question about it.
    (call,) = turns.eyes.calls
    text, image = cast(list[dict[str, Any]], call.messages[-1].content)
    assert image["image_url"]["url"] == picture()["image_url"]["url"]
    assert "total" not in text["text"]
    assert "base64" not in text["text"]
    nodes = [each.node for each in of(events, "trace") if each.node.data.get("use") == "vision"]
    assert (nodes[-1].label, nodes[-1].status) == ("connector:eyes", "completed")


async def test_a_model_that_sees_gets_the_picture_itself(make_app: MakeApp) -> None:
    turns = Turns(make_app)
    turns.model = seeing("It is 11 crowns.", id="script")
    events = await turns(asked(picture()))
    assert turns.eyes.calls == []
    assert cast(list[Any], turns.model.calls[-1].messages[-1].content)[-1] == picture()
    assert not of(events, "search_start")


async def test_without_what_describes_it_the_picture_is_named_as_not_read(
    make_app: MakeApp,
) -> None:
    turns = Turns(make_app, '{"name": "A", "connector": "script"}')
    turns.model = scripted("No.")
    (warning,) = of(await turns(asked(picture())), "warning")
    assert warning.code == "part_not_read"
    assert "image receipt.png" in warning.message


async def test_a_picture_is_described_once(make_app: MakeApp) -> None:
    turns = Turns(make_app)
    await turns(asked(picture()), {"role": "assistant", "content": "11."}, asked(), times=3)
    assert len(turns.eyes.calls) == 1
    assert TEXT in turns.prompt


async def test_the_newest_pictures_are_described_up_to_the_limit(make_app: MakeApp) -> None:
    turns = Turns(make_app)
    (turns.app / "agent").mkdir(exist_ok=True)
    (turns.app / "agent/agent.yml").write_text("attachments: {pictures: 1}\n")
    old, new = picture(name="old.png"), picture(name="new.png")
    await turns(asked(old), {"role": "assistant", "content": "."}, asked(new))
    assert len(turns.eyes.calls) == 1
    assert "[attached file new.png: a picture" in turns.prompt
    assert "[attached file old.png" not in turns.prompt


@pytest.mark.parametrize(
    ("package", "part", "eyes", "words"),
    [
        ({}, picture(), seeing({"error": {"message": "gone"}, "text": ""}), "gone"),
        ({}, picture(), seeing("", ""), "no usable answer"),
        ({}, picture(), seeing(TEXT, sees=False), "does not see pictures"),
        ({}, picture(b"<svg onload='x'/>"), seeing(TEXT), "no PNG, JPEG, GIF or WebP"),
        ({"vision": "nobody"}, picture(), seeing(TEXT), "no assistant 'nobody'"),
        ({"vision": "blind"}, picture(), seeing(TEXT), "the model of 'blind' does not see"),
    ],
)
async def test_a_reader_is_told_that_a_picture_was_not_seen(
    make_app: MakeApp, package: dict[str, str], part: Any, eyes: ScriptedConnector, words: str
) -> None:
    uses = {"vision": "connector:eyes", **package}
    turns = Turns(make_app, json.dumps({"name": "A", "connector": "script", "uses": uses}))
    blind = turns.app / "assistants/blind"
    blind.mkdir()
    (blind / "package.yao").write_text('{"name": "Blind", "connector": "script"}')
    turns.model, turns.eyes = scripted("I cannot see it."), eyes
    warnings = of(await turns(asked(part)), "warning")
    assert any(words in each.message for each in warnings)
    assert [each.code for each in warnings].count("part_not_read") == 1
    assert "not read by this model" in turns.prompt or "image_url" in str(turns.model.calls)


async def test_an_assistant_describes_pictures(make_app: MakeApp) -> None:
    uses = {"vision": "looks"}
    turns = Turns(make_app, json.dumps({"name": "A", "connector": "script", "uses": uses}))
    looks = turns.app / "assistants/looks"
    looks.mkdir()
    (looks / "package.yao").write_text('{"name": "Looks", "connector": "eyes"}')
    await turns(asked(picture()))
    assert TEXT in turns.prompt
    request = json.loads(turns.eyes.calls[0].messages[-1].text)
    assert (request["task"], request["name"]) == ("vision", "receipt.png")
    assert "image" not in request


class Looking:
    """A server with a tool that reads text in pictures."""

    def __init__(self) -> None:
        self.arguments: Any = None

    def start_ms(self, server: str, /) -> int:
        return 0

    async def ask(self, server: str, method: str, params: Any, /) -> dict[str, Any]:
        if method == "tools/list":
            properties = {"image": {"type": "string"}, "prompt": {"type": "string"}}
            schema = {"type": "object", "properties": properties, "required": ["image", "prompt"]}
            return {"tools": [{"name": "ocr", "inputSchema": schema}, {"name": "other"}]}
        self.arguments = params["arguments"]
        return {"content": [{"type": "text", "text": TEXT}]}


async def test_a_tool_gets_the_picture_as_a_data_url_and_answers_with_text() -> None:
    async def nobody(*_: Any) -> Any:
        raise AssertionError

    server, url = Looking(), picture()["image_url"]["url"]
    targets = DelegateTargets(
        model=nobody,
        assistant=nobody,
        server=lambda name: name,
        permit=lambda *_: None,
        servers=server,
    )
    request = VisionAsk(prompt=VISION.task, media_type="image/png", image=url, max_length=100)
    answer = await TurnDelegates(targets).ask(VISION, "mcp:tools", request, timeout_ms=60_000)
    assert answer.text == TEXT
    assert server.arguments == {"image": url, "prompt": VISION.task}


async def read(turn: AbstractAsyncContextManager[AsyncIterator[Event]]) -> list[Event]:
    async with turn as events:
        return [event async for event in events]


async def test_a_chat_keeps_the_description_for_later_hosts(make_app: MakeApp) -> None:
    turns, id = Turns(make_app), ""
    given = {"script": turns.model, "eyes": turns.eyes}
    with anyio.fail_after(60):
        for question in ([*asked(picture())["content"]], "And the tea?"):
            async with (
                open_host(turns.app, environment={}, connectors=given) as host,
                host.chat("a", identity={"user_id": "ada"}, chat_id=id or None) as chat,
            ):
                await read(chat.send(question))
                id = chat.id
    assert len(turns.eyes.calls) == 1
    assert TEXT in turns.prompt
