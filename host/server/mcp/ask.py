"""Runs a whole turn for an MCP client. The answer has numbered citations and a link to each source.
Knows no SDK."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from groundhook.core.audience import for_readers
from groundhook.core.types.events import Cited, SearchComplete, SearchStart
from groundhook.host.app.host import Host
from groundhook.host.output.dialects import fold, native
from groundhook.host.output.dialects.audience import Audience
from groundhook.host.output.dialects.openai_chat import OpenAIChat
from groundhook.host.server.mcp.caller import McpCaller
from groundhook.host.server.mcp.values import RESOURCES, McpAnswer, Report


async def ask(
    host: Host, assistant: str, question: str, caller: McpCaller, report: Report, public_url: str
) -> McpAnswer:
    """Run a turn and return its answer; report its searches while they run. Raises HostError for a
    turn that cannot begin."""
    # Without an address of the server, a path below it would lead a client nowhere.
    reduced = Audience(public_url=public_url).of if public_url else for_readers
    whole = native.Whole()
    chat = OpenAIChat(id="", model="", created=0, public_url=public_url)
    gathered, sent, text, steps = whole.begin(), chat.begin(), "", 0
    async with (
        caller.admit(),
        host.stream(assistant, question, identity=caller.identity) as events,
    ):
        async for event in events:
            seen = reduced(event)
            if seen is None:
                continue
            gathered, _ = whole.step(gathered, seen)
            sent, pieces = chat.step(sent, seen)
            text += _content(pieces)
            if isinstance(seen, SearchStart | SearchComplete):
                steps += 1
                await report(steps, None, _step_of(seen))
    answer = native.answer(gathered)
    if answer.error is not None and not text:
        return McpAnswer(text=answer.error.message, failed=True)
    cited = [(_link(one), one.title) for one in answer.citations if _link(one)]
    return McpAnswer(
        text=text,
        structured=answer.model_dump(mode="json"),
        links=list(dict.fromkeys(cited)),
    )


def _content(pieces: Sequence[fold.Piece]) -> str:
    return "".join(
        choice["delta"].get("content", "")
        for piece in pieces
        if isinstance(piece.data, dict)
        for choice in piece.data.get("choices", ())
    )


def _step_of(event: SearchStart | SearchComplete) -> str:
    if isinstance(event, SearchStart):
        return f"searching: {event.query}"
    return "the search failed" if event.error else f"found {event.total}"


def _link(cited: Cited) -> str:
    """Return where a client can read a source: its address, or the resource of a document or
    record."""
    if cited.url.startswith(("http://", "https://")):
        return cited.url
    if cited.type == "db" and cited.model and cited.record_id is not None:
        return f"{RESOURCES}db/{cited.model}/{quote(str(cited.record_id))}"
    if cited.type != "kb" or not cited.collection or not cited.document_id:
        return ""
    return f"{RESOURCES}kb/{cited.collection}/{quote(cited.document_id)}"
