"""Reduces the events of a turn to what readers outside may see. Pure.

An assistant's trace, warnings, error files, hints and local paths are for its authors. Readers
see that something failed, never where, why or by which service, and which parts of their message
were not read.
"""

from __future__ import annotations

from typing import Any, TypeVar, assert_never

from groundhook.core.addresses import shared
from groundhook.core.errors import ContractBroken, HookUnasked
from groundhook.core.types.base import Value
from groundhook.core.types.events import (
    STOPPED,
    ApprovalRequired,
    CitationSeen,
    Cited,
    DocumentsSearchCompleted,
    DocumentsSearchStarted,
    Event,
    Failed,
    HookMessage,
    Reasoning,
    SearchComplete,
    SearchFound,
    SearchStart,
    SourcesGiven,
    StreamEnd,
    StreamStart,
    Text,
    ToolProgress,
    ToolResult,
    ToolStart,
    Trace,
    Warned,
)
from groundhook.core.types.search import Item

NOT_PERMITTED = "not permitted"
SEARCH_FAILED = "the search failed"
TOOL_FAILED = "the tool failed"
CALL_REFUSED = "the user refused this call"
TURN_FAILED = "the answer could not be completed"
SENTENCES = {
    "not_permitted": NOT_PERMITTED,
    "model_context_exceeded": "the conversation is too long for the language model",
    "model_truncated": "the answer is incomplete",
    STOPPED: "the answer was stopped",
}
TIMINGS = ("first_text", "total")

_Addressed = TypeVar("_Addressed", Item, Cited)


def for_readers(event: Event) -> Event | None:
    """Return the event as a reader outside may see it; None for an event for authors alone."""
    match event:
        case Trace() | Warned():
            return _not_read(event)
        case Failed():
            message = SENTENCES.get(event.code, TURN_FAILED)
            # What the client demanded, and its own answer; a question to its user.
            if event.code in (ContractBroken.code, HookUnasked.code):
                message = event.message
            bare = Failed(code=event.code, message=message)
            return bare.model_copy(update={"turn_id": event.turn_id, "at_ms": event.at_ms})
        case SearchComplete():
            return _change(event, error=_public_error(event.error), provider="")
        case ToolResult():
            items = tuple(_hide_local_address(item) for item in event.items)
            return _change(event, error=event.error and _tool_error(event.error), items=items)
        case SearchFound():
            return _change(event, item=_hide_local_address(event.item))
        case CitationSeen():
            return _change(event, item=event.item and _hide_local_address(event.item))
        case StreamEnd():
            return _end(event)
        case DocumentsSearchCompleted():
            return _change(event, error=event.error and TOOL_FAILED)
        case (
            StreamStart()
            | SearchStart()
            | SourcesGiven()
            | Text()
            | Reasoning()
            | HookMessage()
            | ToolStart()
            | ToolProgress()
            | ApprovalRequired()
            | DocumentsSearchStarted()
        ):
            return without_journal(event)
        case _:
            assert_never(event)


def _not_read(event: Trace | Warned) -> Warned | None:
    """Return the warning about a part of the reader's message, or of the answer of a tool, that
    nobody read; other warnings are for authors."""
    if isinstance(event, Warned) and event.code == "part_not_read":
        bare = Warned(code=event.code, message=event.message)
        return bare.stamped(event.turn_id, event.at_ms)
    return None


def without_journal(event: Event) -> Event:
    """Return the event without what hooks have read and done, which only the next turn needs."""
    if isinstance(event, ApprovalRequired) and event.journal:
        return _change(event, journal=())
    return event


def _end(event: StreamEnd) -> StreamEnd:
    return _change(
        event,
        message=_hide_reasons(event.message),
        citations=tuple(_hide_local_address(cited) for cited in event.citations),
        timings={name: event.timings[name] for name in TIMINGS if name in event.timings},
    )


def _is_failure(output: Any) -> bool:
    return isinstance(output, dict) and output.get("type") == "error-text"


def _hide_reasons(message: dict[str, Any]) -> dict[str, Any]:
    """Return the message without the reasons why tools failed."""
    parts = [
        {**part, "output": {"type": "error-text", "value": _tool_error(part["output"]["value"])}}
        if part.get("type") == "tool-result" and _is_failure(part.get("output"))
        else part
        for part in message.get("content", ())
    ]
    return {**message, "content": parts} if message else message


_Event = TypeVar("_Event", bound=Value)


def _change(event: _Event, **fields: Any) -> _Event:
    return event.model_copy(update=fields)


def _hide_local_address(found: _Addressed) -> _Addressed:
    """Return the item or citation without the address of a file on this machine."""
    return found if shared(found.url) == found.url else _change(found, url="")


def _tool_error(error: Any) -> str:
    return CALL_REFUSED if str(error).startswith(CALL_REFUSED) else TOOL_FAILED


def _public_error(error: str | None) -> str | None:
    if error is None or error == STOPPED:
        return error
    return NOT_PERMITTED if error.startswith(NOT_PERMITTED) else SEARCH_FAILED
