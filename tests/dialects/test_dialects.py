"""Dialects: the same pieces however the events arrive, complete wherever they break off, and
nothing in them that readers may not see."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundhook.core.json_lines import line
from groundhook.core.types.events import (
    CitationSeen,
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
)
from groundhook.core.types.search import Item, OtherReading
from groundhook.host.output.dialects.ag_ui import AGUI
from groundhook.host.output.dialects.audience import Audience
from groundhook.host.output.dialects.ending import ending
from groundhook.host.output.dialects.fold import ClientMessage, Fold, run, steps
from groundhook.host.output.dialects.literal import without_citations
from groundhook.host.output.dialects.native import Answer, Whole
from groundhook.host.output.dialects.openai_chat import DONE, OpenAIChat, completion
from groundhook.host.output.dialects.openwebui import answer_task, task_named, task_of
from groundhook.host.output.dialects.places import address
from groundhook.host.output.dialects.responses import Responses
from groundhook.host.output.dialects.ui_stream import UIStream
from groundhook.host.server.api.conversation import ReadConversation
from tests.dialects.logs import HIDDEN, ITEMS, LOGS

PUBLIC = "https://tea.example"
READER = Audience(public_url=PUBLIC)


def chat(**more: Any) -> OpenAIChat:
    return OpenAIChat(id="chatcmpl-t_1", model="tea", created=1, public_url=PUBLIC, **more)


FOLDS: list[Fold[Any]] = [
    Whole(),
    chat(usage=True),
    chat(citations="links"),
    chat(citations="markers"),
    chat(citations="none"),
    chat(events=True),
    Responses(chat=chat(usage=True)),
    UIStream(chat=chat(usage=True)),
    UIStream(chat=chat(usage=True, citations="markers")),
    AGUI(ui=UIStream(chat=chat(usage=True)), thread_id="c", run_id="r"),
]


def seen(events: Sequence[Event]) -> list[Event]:
    return [shown for event in events if (shown := READER.of(event)) is not None]


def chunks(pieces: Sequence[ClientMessage]) -> list[dict[str, Any]]:
    return [piece.data for piece in pieces if piece.data != DONE]


def deltas(pieces: Sequence[ClientMessage]) -> list[dict[str, Any]]:
    return [choice["delta"] for chunk in chunks(pieces) for choice in chunk.get("choices", ())]


def text(pieces: Sequence[ClientMessage]) -> str:
    return "".join(delta.get("content", "") for delta in deltas(pieces))


def events_of(pieces: Sequence[ClientMessage], type: str) -> list[dict[str, Any]]:
    found = [chunk["event"] for chunk in chunks(pieces) if "event" in chunk]
    return [event["data"] for event in found if event["type"] == type]


@settings(max_examples=40)
@pytest.mark.parametrize("fold", FOLDS, ids=str)
@given(log=LOGS, at=st.integers(0, 40))
def test_a_log_that_is_read_in_two_parts_has_the_pieces_of_the_whole(
    fold: Fold[Any], log: list[Event], at: int
) -> None:
    events = seen(log)
    state, first = steps(fold, fold.begin(), events[:at])
    state, second = steps(fold, state, events[at:])
    assert [*first, *second, *fold.end(state)] == run(fold, events)


@settings(max_examples=40)
@pytest.mark.parametrize("fold", FOLDS, ids=str)
@given(log=LOGS)
def test_no_piece_has_what_a_reader_may_not_see(fold: Fold[Any], log: list[Event]) -> None:
    for piece in run(fold, seen(log)):
        written = (
            json.dumps(piece.data) if isinstance(piece.data, (dict, str)) else line(piece.data)
        )
        assert HIDDEN not in written
        assert "file:" not in written


@given(log=LOGS)
def test_the_text_sent_is_the_answer_with_the_labels_in_the_place_of_its_markers(
    log: list[Event],
) -> None:
    pieces = run(chat(), seen(log))
    sent = text(pieces)
    for annotation in reversed(annotated(pieces)):
        start, end = annotation["start_index"], annotation["end_index"]
        assert sent[start] == "["
        assert sent[end - 1] == "]"
        assert sent[start + 1 : end - 1].isdecimal()
    if not any(event.type == "message" for event in log):
        numbers = iter(labels(log))
        expected = "".join(
            next(numbers) if before.type == "citation" else event.delta
            for before, event in pairwise(log)
            if isinstance(event, Text)
        )
        assert sent == expected


def annotated(pieces: Sequence[ClientMessage]) -> list[dict[str, Any]]:
    listed = [each for delta in deltas(pieces) for each in delta.get("annotations", ())]
    assert [each["index"] for each in listed] == list(range(len(listed)))
    return [each["url_citation"] for each in listed]


def labels(log: Sequence[Event]) -> list[str]:
    """What is shown for each marker, in order, counted anew."""
    places: list[str] = []
    found = []
    for event in log:
        if not isinstance(event, CitationSeen):
            continue
        if event.item is None:
            found.append("[?]")
            continue
        place = address(event.item, "") or event.item.citation_id
        if place not in places:
            places.append(place)
        found.append(f"[{places.index(place) + 1}]")
    return found


@given(log=LOGS)
def test_no_text_is_empty_after_the_first_chunk(log: list[Event]) -> None:
    sent = [delta for delta in deltas(run(chat(), seen(log))) if "content" in delta]
    assert sent[0] == {"role": "assistant", "content": ""}
    assert all(delta["content"] for delta in sent[1:])


@given(log=LOGS, at=st.integers(1, 40))
def test_every_status_ends_wherever_the_log_breaks_off(log: list[Event], at: int) -> None:
    pieces = run(chat(events=True), seen(log[:at]))
    statuses = events_of(pieces, "status")
    begun = sum(not status["done"] for status in statuses)
    assert begun == sum(status["done"] for status in statuses)
    assert pieces[-1].data == DONE
    whole = any(isinstance(event, StreamEnd) for event in log[:at])
    finished = [chunk for chunk in chunks(pieces) if _finish(chunk)]
    failed = any(isinstance(event, Failed) for event in log[:at])
    assert bool(finished) == (whole and not failed)
    assert whole or "error" in chunks(pieces)[-1]


def _finish(chunk: dict[str, Any]) -> bool:
    return any(choice["finish_reason"] for choice in chunk.get("choices", ()))


@given(log=LOGS)
def test_with_events_each_number_is_one_source_with_a_name_of_its_own_and_no_annotation(
    log: list[Event],
) -> None:
    pieces = run(chat(events=True), seen(log))
    names = [source["metadata"][0]["source"] for source in events_of(pieces, "source")]
    assert len(set(names)) == len(names)
    assert len(names) == len({label for label in labels(log) if label != "[?]"})
    assert annotated(pieces) == []


@given(log=LOGS, at=st.integers(1, 40))
def test_a_log_that_was_ended_from_outside_is_complete_and_keeps_its_text(
    log: list[Event], at: int
) -> None:
    ended = [*log[:at], *ending(log[:at], "stopped", "the turn was stopped")]
    assert isinstance(ended[-1], StreamEnd)
    assert ended[-1].content == "".join(e.delta for e in log[:at] if isinstance(e, Text))
    assert {event.turn_id for event in ended} == {"t_1"}
    (piece,) = run(Whole(), ended)
    assert isinstance(piece.data, Answer)
    assert piece.data.content == ended[-1].content
    assert ending(ended, "stopped", "again") == []


def test_one_completion_is_the_stream_in_one_message() -> None:
    item = ITEMS[0]
    events: list[Event] = [
        StreamStart(assistant_id="tea"),
        Text(delta="Two minutes "),
        CitationSeen(marker=item.citation_id, verdict="ok", item=item),
        Text(delta=item.citation_id),
        StreamEnd(content=f"Two minutes {item.citation_id}", finish_reason="length"),
    ]
    whole = completion(run(chat(usage=True), seen(events)))
    (choice,) = whole["choices"]
    assert choice["message"]["content"] == "Two minutes [1]"
    assert choice["finish_reason"] == "length"
    (annotation,) = choice["message"]["annotations"]
    assert annotation == {
        "type": "url_citation",
        "url_citation": {
            "url": f"{PUBLIC}/api/sources/kb/notes/tea/tea.md?start=0&end=12",
            "title": "Tea",
            "start_index": 12,
            "end_index": 15,
        },
    }
    linked = completion(run(chat(citations="links"), seen(events)))
    link = f"[[1]]({PUBLIC}/api/sources/kb/notes/tea/tea.md?start=0&end=12)"
    assert linked["choices"][0]["message"]["content"] == f"Two minutes {link}"


def test_a_hooks_message_and_the_answer_are_paragraphs_of_their_own() -> None:
    def said(id: str, text: str) -> HookMessage:
        return HookMessage(
            action="send", message_id=id, message={"type": "text", "props": {"content": text}}
        )

    item = ITEMS[0]
    events: list[Event] = [
        StreamStart(assistant_id="tea"),
        said("m1", "One moment.\n"),
        CitationSeen(marker=item.citation_id, verdict="ok", item=item),
        Text(delta=f"Two {item.citation_id}"),
        Text(delta=" minutes."),
        said("m2", "Ask a person."),
        StreamEnd(content=""),
    ]
    whole = completion(run(chat(), seen(events)))["choices"][0]["message"]
    assert whole["content"] == "One moment.\n\nTwo [1] minutes.\n\nAsk a person."
    [annotation] = whole["annotations"]
    start, end = (annotation["url_citation"][key] for key in ("start_index", "end_index"))
    assert whole["content"][start:end] == "[1]"


@pytest.mark.parametrize(
    ("item", "written"),
    [
        (ITEMS[2], "https://tea.example/p"),
        (ITEMS[4], f"{PUBLIC}/api/sources/db/tea/1%2F2%20%C3%BC"),
        (ITEMS[5], ""),
        (Item(type="web", url="javascript:alert(1)"), ""),
        (Item(type="web", url="http:///nowhere"), ""),
        (Item(type="web", url="https://[broken"), ""),
    ],
)
def test_only_http_addresses_leave_the_server(item: Item, written: str) -> None:
    assert address(item, PUBLIC) == written


@pytest.mark.parametrize(
    ("text", "header", "task"),
    [
        ('### Task:\nGenerate … ### Output:\nJSON format: { "title": "your title" }', "", "title"),
        ('### Task:\n… { "tags": ["tag1"] }', "", "tags"),
        ('### Task:\n… { "follow_ups": [] }', "", "follow_ups"),
        ('### Task:\n… { "queries": [] }', "", "queries"),
        ("### Task:\nanything", "", "other"),
        ("anything", "title_generation", "title"),
        ("anything", "follow_up_generation", "follow_ups"),
        ("What is a ### Task: here?", "", None),
    ],
)
def test_a_task_is_told_from_a_question(text: str, header: str, task: str | None) -> None:
    assert (task_named(header) if header else task_of([text], sure=True)) == task


def test_a_title_is_the_first_words_of_the_first_question() -> None:
    history = f"### Task:\n<chat_history>\nUSER: {'How long does it take? ' * 9}\nASSISTANT: 4"
    title = json.loads(answer_task("title", history, "Tea"))["title"]
    assert title == "How long does it take? How long does it take? How long does"
    assert json.loads(answer_task("title", "### Task:", "Tea")) == {"title": "Tea"}
    assert json.loads(answer_task("tags", history, "Tea")) == {"tags": []}


def test_all_annotations_are_in_one_chunk_behind_the_text_also_of_an_answer_that_broke_off() -> (
    None
):
    item, other = ITEMS[0], ITEMS[2]
    events: list[Event] = [
        StreamStart(assistant_id="tea"),
        CitationSeen(marker=item.citation_id, verdict="ok", item=item),
        Text(delta=item.citation_id),
        CitationSeen(marker=other.citation_id, verdict="ok", item=other),
        Text(delta=other.citation_id),
    ]
    for last in ([StreamEnd(content="x")], [Failed(code="x", message="y")], []):
        sent = deltas(run(chat(), seen([*events, *last])))
        [listed] = [delta["annotations"] for delta in sent if "annotations" in delta]
        assert [each["index"] for each in listed] == [0, 1]


def test_the_thoughts_of_a_model_are_no_part_of_the_answer() -> None:
    events: list[Event] = [
        StreamStart(assistant_id="tea"),
        Reasoning(delta="Hm"),
        Reasoning(delta=", tea."),
        Text(delta="Tea"),
        StreamEnd(content="Tea", grounded=False),
    ]
    whole = completion(run(chat(), seen(events)))
    message = whole["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("Tea", "Hm, tea.")
    assert whole["groundhook"] == {"grounded": False}


def test_the_readings_of_a_question_are_named_behind_the_answer() -> None:
    readings = (OtherReading(read_as="oils for bread", total=2), OtherReading(read_as="all oils"))
    events: list[Event] = [
        StreamStart(assistant_id="tea"),
        SearchStart(search_id="s1", source="auto", search_type="db", query="oils"),
        SearchComplete(
            search_id="s1", total=0, duration_ms=1, readings=readings, explanation="Which oils?"
        ),
        StreamEnd(content="", certainty="none"),
    ]
    asked = {
        "grounded": None,
        "certainty": "none",
        "explanation": "Which oils?",
        "readings": [
            {"read_as": "oils for bread", "total": 2},
            {"read_as": "all oils", "total": None},
        ],
    }
    pieces = run(chat(), seen(events))
    assert completion(pieces)["groundhook"] == asked
    assert [piece.data["groundhook"] for piece in pieces if "groundhook" in piece.data] == [asked]


def test_a_list_of_attached_files_of_open_webui_is_no_part_of_the_question() -> None:
    files = '<attached_files>\n<file type="image" id="f1" name="s.png"/>\n</attached_files>\n\n'
    contents: list[Any] = [
        f"{files}What is a hook?",
        [{"type": "text", "text": files}, {"type": "text", "text": "What is a hook?"}],
    ]
    for content in contents:
        asked = [{"role": "user", "content": content}]
        read = ReadConversation.of(asked, "user", openwebui=True)
        assert read.messages[0].text == "What is a hook?"
        other = ReadConversation.of(asked, "user")  # a person may write one to any other client
        assert "attached_files" in other.messages[0].text


def test_statuses_count_what_the_model_was_given_and_a_failure_is_one() -> None:
    events: list[Event] = [
        StreamStart(assistant_id="tea"),
        SearchStart(search_id="s1", source="auto", search_type="kb", query="tea"),
        SearchFound(search_id="s1", item=ITEMS[0]),
        SearchFound(search_id="s1", item=ITEMS[2]),
        SearchComplete(search_id="s1", total=223, duration_ms=1),
        SearchStart(search_id="s2", source="auto", search_type="web", query="tea"),
        SearchComplete(search_id="s2", total=0, duration_ms=1, error="no"),
        SourcesGiven(given=1),
    ]
    statuses = events_of(run(chat(events=True), seen(events)), "status")
    ended = [status for status in statuses if status["done"]]
    assert [(each["description"], each.get("count")) for each in ended] == [
        ("Found 2", None),
        ("The search failed", None),
        ("1 source given to the model", 1),
    ]
    failed = [events[0], *events[5:7], SourcesGiven(given=0)]
    actions = [each["action"] for each in events_of(run(chat(events=True), seen(failed)), "status")]
    assert "sources_retrieved" not in actions  # "No sources found", says Open WebUI


@given(log=LOGS, at=st.integers(1, 40))
def test_every_item_of_a_response_is_added_and_done_once_wherever_the_log_breaks_off(
    log: list[Event], at: int
) -> None:
    pieces = run(Responses(chat=chat(usage=True)), seen(log[:at]))
    data = [piece.data for piece in pieces]
    assert [each["sequence_number"] for each in data] == list(range(len(data)))
    added = [each["item"]["id"] for each in data if each["type"] == "response.output_item.added"]
    done = [each["item"] for each in data if each["type"] == "response.output_item.done"]
    assert len(set(added)) == len(added)
    assert {item["id"] for item in done} == set(added)
    assert [item["id"] for item in data[-1]["response"]["output"]] == added
    for item in done:
        grown = [
            each["delta"] for each in data if "delta" in each and each["item_id"] == item["id"]
        ]
        [part] = item.get("content") or item.get("summary")
        assert "".join(grown) == part["text"]


@given(cuts=st.lists(st.integers(0, 60), max_size=6))
def test_only_numbers_that_the_host_writes_stand_in_brackets(cuts: list[int]) -> None:
    item = ITEMS[0]
    text = "Safe [2]. Moon [1], `a[1]`, [1][2] [note] end [3"
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    log: list[Event] = [
        StreamStart(assistant_id="tea"),
        *(Text(delta=text[low:high]) for low, high in pairwise(edges)),
        CitationSeen(marker=item.citation_id, verdict="ok", item=item),
        Text(delta=item.citation_id),
        Text(delta="]"),
        StreamEnd(),
    ]
    answer = completion(run(chat(), log))["choices"][0]["message"]
    assert answer["content"] == "Safe (2). Moon (1), `a[1]`, (1)(2) [note] end [3[1]]"
    (cited,) = (each["url_citation"] for each in answer["annotations"])
    assert answer["content"][cited["start_index"] : cited["end_index"]] == "[1]"
    plain = completion(run(chat(citations="none"), log))["choices"][0]["message"]["content"]
    assert plain == f"{text}]"


def test_earlier_answers_lose_the_numbers_and_links_of_their_citations() -> None:
    text = (
        "Two minutes [1]. Four [[2]](https://tea.example/p) [?]; [a link](https://b.example) a[x]."
    )
    without = "Two minutes. Four; [a link](https://b.example) a[x]."
    assert without_citations(text) == without
    assert without_citations([{"type": "text", "text": text}, {"type": "image_url"}]) == [
        {"type": "text", "text": without},
        {"type": "image_url"},
    ]
    assert without_citations(None) is None


def test_code_and_json_of_earlier_answers_stay_as_they_are() -> None:
    code = "```py\nb = arr[1][2]\nm[0] = {'k': [1]}\n```\n"
    assert without_citations(f"See `arr[1]` [1].\n{code}End [[2]](https://b.example).") == (
        f"See `arr[1]`.\n{code}End."
    )
    assert without_citations("~~~\n[1]\n```\n[2]") == "~~~\n[1]\n```\n[2]"
    assert without_citations('{"teas": [1]}\n') == '{"teas": [1]}\n'


def test_the_pieces_of_an_answer_are_joined_in_time_that_grows_as_they_do() -> None:
    begun = {"id": "x", "created": 1, "model": "m"}
    delta = {"index": 0, "delta": {"content": "𝛼" * 200}, "finish_reason": None}
    pieces = [ClientMessage({**begun, "choices": [delta]})] * 20_000
    began = time.process_time()
    whole = completion(pieces)
    assert time.process_time() - began < 5  # a copy of the whole for each piece took a minute
    assert len(whole["choices"][0]["message"]["content"]) == 4_000_000
