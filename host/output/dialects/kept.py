"""The stored form of a turn: a fold over its events, and the events that show it again. Pure. The
stored turn shows the same as the live one: `kept(events_of(kept(log))) == kept(log)` for any log,
also for one that breaks off. Omitted are the trace, the passages of what was found and not cited,
and the moment of each event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from groundhook.core import hook_messages
from groundhook.core.pieces import TextPieces, grown
from groundhook.core.types.chats import (
    KeptAnswer,
    KeptCitation,
    KeptMessage,
    KeptSearch,
    KeptTool,
    PendingCall,
)
from groundhook.core.types.events import (
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
from groundhook.host.search.citations.index import cited


@dataclass(frozen=True)
class Keeping:
    """The state of the fold: the answer so far, with its text and the messages of hooks apart,
    since each event changes a little of much; and the citations whose text has not come yet."""

    parts: KeptAnswer = KeptAnswer()
    pieces: TextPieces = ()  # of the text
    length: int = 0  # characters of the text
    announced: tuple[CitationSeen, ...] = ()
    awaited: str = ""  # the text since they were announced, in which their markers are
    messages: hook_messages.Messages = field(default_factory=dict)
    sent_at: Mapping[str, int] = field(default_factory=dict)  # characters before each message

    @property
    def answer(self) -> KeptAnswer:
        """The answer so far."""
        shown = tuple(
            KeptMessage(
                message_id=id,
                message=each.message,
                block_id=each.block_id,
                thread_id=each.thread_id,
                ended=each.ended,
                at=self.sent_at[id],
            )
            for id, each in self.messages.items()
        )
        return self.parts.model_copy(update={"content": "".join(self.pieces), "messages": shown})


def kept(events: Iterable[Event]) -> KeptAnswer:
    """Return the stored form of a turn."""
    state = Keeping()
    for event in events:
        state = step(state, event)
    return state.answer


def step(state: Keeping, event: Event) -> Keeping:  # noqa: C901 - one case for each event
    """Return the state after one more event."""
    answer = state.parts
    match event:
        case (
            Trace()
            | SourcesGiven()
            | ToolProgress()
            | DocumentsSearchStarted()
            | DocumentsSearchCompleted()
        ):
            return state
        case StreamStart():
            if answer.assistant_id:  # a hook delegated the turn
                return state
            return _change_answer(
                state,
                turn_id=event.turn_id,
                assistant_id=event.assistant_id,
                connector=event.connector,
            )
        case SearchStart() | SearchFound() | SearchComplete():
            return _change_answer(state, searches=_searches(answer.searches, event))
        case Reasoning():
            return state
        case Text():
            return _place_citations(_add_text(state, event.delta))
        case CitationSeen():
            awaited = state.awaited if state.announced else ""
            return replace(state, announced=(*state.announced, event), awaited=awaited)
        case HookMessage():
            return _add_message(state, event)
        case ToolStart() | ToolResult():
            return _change_answer(state, tools=_tools(answer.tools, event))
        case ApprovalRequired():
            pending = PendingCall(**event.model_dump(include=set(PendingCall.model_fields)))
            return _change_answer(state, pending=(*answer.pending, pending))
        case Warned():
            return _change_answer(state, warnings=(*answer.warnings, event))
        case Failed():
            return _change_answer(state, errors=(*answer.errors, event))
        case StreamEnd():
            return _end(state, event)
        case _:
            assert_never(event)


def _end(state: Keeping, event: StreamEnd) -> Keeping:
    ended = {each.marker: each for each in event.citations}
    return _change_answer(
        state,
        citations=tuple(_as_judged(each, ended) for each in state.parts.citations),
        claims=event.claims,
        data=event.data,
        metadata=event.metadata,
        finish_reason=event.finish_reason,
        grounded=event.grounded,
        certainty=event.certainty,
        usage=event.usage,
        timings=event.timings,
        complete=True,
    )


def events_of(answer: KeptAnswer) -> Iterator[Event]:
    """Yield events that show a kept answer as the events of its turn did."""
    for event in _events(answer):
        # Warnings and errors were kept with their turn and time.
        yield event if event.turn_id else event.stamped(answer.turn_id, 0)


def _events(answer: KeptAnswer) -> Iterator[Event]:
    yield StreamStart(assistant_id=answer.assistant_id, connector=answer.connector)
    for search in answer.searches:
        yield from _search_events(search)
    yield from _tool_events(answer.tools)
    yield from _list_text_events(answer)
    for pending in answer.pending:
        yield ApprovalRequired(**pending.model_dump())
    yield from answer.warnings
    yield from answer.errors
    if answer.complete:
        yield StreamEnd(
            content=answer.content,
            citations=tuple(
                cited(each.marker, each.verdict, each.item, each.missing, each.verified)
                for each in answer.citations
            ),
            data=answer.data,
            metadata=answer.metadata,
            finish_reason=answer.finish_reason,
            grounded=answer.grounded,
            claims=answer.claims,
            certainty=answer.certainty,
            usage=answer.usage,
            timings=answer.timings,
        )


# ---- text and citations


def _as_judged(citation: KeptCitation, ended: Mapping[str, Cited]) -> KeptCitation:
    """Return a citation with what the end of the turn says of the sentences that cite it."""
    judged = ended.get(citation.marker)
    if judged is None or citation.item is None or not (judged.missing or judged.verified):
        return citation
    return citation.model_copy(update={"missing": judged.missing, "verified": judged.verified})


def _add_text(state: Keeping, text: str) -> Keeping:
    return replace(
        state,
        pieces=grown(state.pieces, text),
        length=state.length + len(text),
        awaited=state.awaited + text if state.announced else "",
    )


def _place_citations(state: Keeping) -> Keeping:
    """Place the announced citations whose markers have come."""
    answer, announced, awaited = state.parts, state.announced, state.awaited
    if not announced:
        return state
    citations = {each.marker: each for each in answer.citations}
    while announced:
        seen = announced[0]
        _, found, after = awaited.partition(seen.marker)
        if not found:
            break
        at = state.length - len(after) - len(seen.marker)
        awaited, announced = after, announced[1:]
        item = seen.item.model_copy(update={"key": ""}) if seen.item else None
        before = citations.get(seen.marker) or KeptCitation(
            marker=seen.marker, verdict=seen.verdict, item=item
        )
        citations[seen.marker] = before.model_copy(update={"places": (*before.places, at)})
    changed = replace(state, announced=announced, awaited=awaited)
    return _change_answer(changed, citations=tuple(citations.values()))


def _list_text_events(answer: KeptAnswer) -> Iterator[Event]:
    """Yield the text in pieces: each citation before its marker, each message where it was sent."""
    # A message at the place of a marker was sent before it.
    marks: list[tuple[int, int, KeptMessage | KeptCitation]] = [
        *((message.at, 0, message) for message in answer.messages),
        *((place, 1, citation) for citation in answer.citations for place in citation.places),
    ]
    done = 0
    for at, _, mark in sorted(marks, key=lambda entry: entry[:2]):
        if at > done:
            yield Text(delta=answer.content[done:at])
            done = at
        if isinstance(mark, KeptMessage):
            yield HookMessage(
                action="send",
                message_id=mark.message_id,
                block_id=mark.block_id,
                thread_id=mark.thread_id,
                streaming=not mark.ended,
                message=mark.message,
            )
            continue
        yield CitationSeen(marker=mark.marker, verdict=mark.verdict, item=mark.item)
        yield Text(delta=mark.marker)
        done = at + len(mark.marker)
    if done < len(answer.content):
        yield Text(delta=answer.content[done:])


# ---- messages of hooks


def _add_message(state: Keeping, event: HookMessage) -> Keeping:
    messages, sent_at = hook_messages.step(state.messages, event), state.sent_at
    if event.action == "send" and event.message_id not in sent_at:
        sent_at = {**sent_at, event.message_id: state.length}
    return replace(state, messages=messages, sent_at=sent_at)


# ---- searches and tools


def _searches(
    searches: tuple[KeptSearch, ...], event: SearchStart | SearchFound | SearchComplete
) -> tuple[KeptSearch, ...]:
    if isinstance(event, SearchStart):
        began = KeptSearch(
            search_id=event.search_id,
            source=event.source,
            search_type=event.search_type,
            query=event.query,
        )
        return (*(each for each in searches if each.search_id != event.search_id), began)
    return tuple(
        _search(each, event) if each.search_id == event.search_id else each for each in searches
    )


def _search(search: KeptSearch, event: SearchFound | SearchComplete) -> KeptSearch:
    if isinstance(event, SearchFound):
        return search.model_copy(update={"items": (*search.items, _drop_passage(event.item))})
    ended = {
        "total": event.total,
        "duration_ms": event.duration_ms,
        "error": event.error,
        "provider": event.provider,
        "tables": event.tables,
        "complete": True,
        **dict(event.account),
    }
    return search.model_copy(update=ended)


def _drop_passage(item: Item) -> Item:
    return item.model_copy(update={"content": "", "data": None, "query": None, "key": ""})


def _search_events(search: KeptSearch) -> Iterator[Event]:
    yield SearchStart(
        search_id=search.search_id,
        source=search.source,
        search_type=search.search_type,
        query=search.query,
    )
    for item in search.items:
        yield SearchFound(search_id=search.search_id, item=item)
    if search.complete:
        yield SearchComplete(
            search_id=search.search_id,
            total=search.total,
            duration_ms=search.duration_ms,
            error=search.error,
            provider=search.provider,
            tables=search.tables,
            **dict(search.account),
        )


def _tools(tools: tuple[KeptTool, ...], event: ToolStart | ToolResult) -> tuple[KeptTool, ...]:
    if isinstance(event, ToolStart):
        # The calls of a round begin before any of the next round, which begins after their ends.
        last = tools[-1].round if tools else 0
        waiting = not tools or any(not each.complete for each in tools)
        began = KeptTool(
            call_id=event.call_id,
            name=event.name,
            server=event.server,
            toolkit=event.toolkit,
            arguments=event.arguments,
            round=last if waiting else last + 1,
        )
        return (*tools, began)
    ended = {
        "result": event.result,
        "error": event.error,
        "items": tuple(_drop_passage(item) for item in event.items),
        "duration_ms": event.duration_ms,
        "complete": True,
    }
    at = next(
        (
            index
            for index, each in enumerate(tools)
            if each.call_id == event.call_id and not each.complete
        ),
        None,
    )
    if at is None:
        return tools
    return (*tools[:at], tools[at].model_copy(update=ended), *tools[at + 1 :])


def _tool_events(tools: tuple[KeptTool, ...]) -> Iterator[Event]:
    for round in sorted({each.round for each in tools}):
        calls = [each for each in tools if each.round == round]
        for call in calls:
            yield ToolStart(
                call_id=call.call_id,
                name=call.name,
                server=call.server,
                toolkit=call.toolkit,
                arguments=call.arguments,
            )
        for call in calls:
            if call.complete:
                yield ToolResult(
                    call_id=call.call_id,
                    name=call.name,
                    server=call.server,
                    toolkit=call.toolkit,
                    result=call.result,
                    error=call.error,
                    items=call.items,
                    duration_ms=call.duration_ms,
                )


def _change_answer(state: Keeping, **changes: object) -> Keeping:
    return replace(state, parts=state.parts.model_copy(update=changes))
