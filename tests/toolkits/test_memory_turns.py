"""Turns of conversations as memories, and questions with several facts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.toolkits.conversations import OWN, TOOLKITS, read, recall, write_app
from groundhook import Host, open_host
from groundhook.core.types.events import Event
from groundhook.core.types.tools import ToolOutcome
from tests.conftest import MakeApp
from tests.parts.memory_kit import WRITABLE

ME = {"user_id": "me"}
KIT = "assistants/memory/toolkits/memory.toolkit.yao"
COLLECTION = "assistants/memory/kb/own.kb.yao"
SAID = (
    "Did the piano survive the stairs?",
    "Three men and a lot of swearing, but yes.",
    "How was the holiday?",
    "We swam in a lake every morning.",
)


def kit(*script: Any, **keys: Any) -> dict[str, str]:
    """An app of memories with turns, and a model that answers by a script."""
    own = json.loads(WRITABLE[COLLECTION])
    own["fields"]["turn"] = "keyword"
    model = {"type": "scripted", "options": {"script": list(script)}}
    return {
        **WRITABLE,
        COLLECTION: json.dumps(own),
        KIT: json.dumps({**json.loads(WRITABLE[KIT]), **keys}),
        "connectors/splitter.conn.yao": json.dumps(model),
    }


async def remember(host: Host, texts: Sequence[str], identity: Any = ME, **more: Any) -> list[int]:
    """Store texts, as the turns of a conversation if `more` names one, and return their ids."""
    ids = []
    for place, text in enumerate(texts):
        turn = {**more, "turn": place} if more else {}
        note = {"collection": "own", "title": f"Note {place}", "content": text, **turn}
        outcome = await host.tool("remember", note, identity=identity, assistant="memory")
        assert outcome.error is None, outcome.error
        ids.append(outcome.result["id"])
    return ids


async def search(
    host: Host, query: str, identity: Any = ME, traced: list[Event] | None = None, **more: Any
) -> ToolOutcome:
    arguments = {"query": query, "collection": "own", **more}
    events = traced.append if traced is not None else None
    outcome = await host.tool(
        "search", arguments, identity=identity, assistant="memory", events=events
    )
    assert outcome.error is None, outcome.error
    return outcome


def ids(outcome: ToolOutcome) -> list[int]:
    return [each["id"] for each in outcome.result]


def nodes(traced: Sequence[Event], kind: str) -> list[Mapping[str, Any]]:
    """The data of the ended steps of a kind."""
    return [
        event.node.data
        for event in traced
        if event.type == "trace" and event.node.type == kind and event.node.status != "running"
    ]


FILLER = [f"Filler {n} about apples, pears, plums and how they are stored." for n in range(12)]


async def test_the_turn_after_the_one_that_has_the_words_is_found_with_it(
    make_app: MakeApp,
) -> None:
    traced: list[Event] = []
    async with open_host(make_app(kit())) as host:
        said = await remember(host, SAID, conversation="chat 1")
        await remember(host, FILLER)
        outcome = await search(host, "piano stairs", traced=traced, limit=2)
    assert sorted(ids(outcome)) == said[:2]
    scores = [each["score"] for each in outcome.result]
    assert scores == sorted(scores, reverse=True)
    assert nodes(traced, "turns_beside")[0]["found"] > 0


async def test_the_turn_after_the_one_found_comes_before_the_turn_before_it(
    make_app: MakeApp,
) -> None:
    async with open_host(make_app(kit())) as host:
        said = await remember(host, ["It is raining.", *SAID], conversation="chat 1")
        await remember(host, FILLER)
        outcome = await search(host, "piano stairs", limit=3)
    assert ids(outcome) == [said[1], said[2], said[0]]


async def test_without_neighbours_a_turn_is_found_alone(make_app: MakeApp) -> None:
    traced: list[Event] = []
    async with open_host(make_app(kit(neighbours=0))) as host:
        said = await remember(host, SAID, conversation="chat 1")
        await remember(host, FILLER)
        outcome = await search(host, "piano stairs", traced=traced, limit=2, threshold=0.2)
    assert said[0] in ids(outcome)
    assert said[1] not in ids(outcome)
    assert nodes(traced, "turns_beside") == []


async def test_memories_that_are_no_turns_cost_no_further_request(make_app: MakeApp) -> None:
    traced: list[Event] = []
    async with open_host(make_app(WRITABLE)) as host:
        stored = await remember(host, ["Pears ripen in the cellar."], conversation="kept nowhere")
        outcome = await search(host, "pears", traced=traced)
    assert ids(outcome) == stored
    assert nodes(traced, "turns_beside") == []


async def test_turns_of_other_conversations_and_later_ones_than_as_of_are_not_brought(
    make_app: MakeApp,
) -> None:
    lines = [
        {"id": 1, "content": "The piano was tuned.", "conversation": "a", "turn": 1},
        {"id": 2, "content": "It cost too much.", "conversation": "a", "turn": 2},
        {"id": 3, "content": "Nothing new here.", "conversation": "b", "turn": 2},
    ]
    days = {1: "2026-01-01", 2: "2026-01-03", 3: "2026-01-01"}
    files = kit(source={"file": "turns.jsonl"})
    files["assistants/memory/turns.jsonl"] = "\n".join(
        json.dumps({"collection": "own", "user": "me", "title": "T", "written": days[id], **line})
        for line in lines
        if isinstance(id := line["id"], int)
    )
    async with open_host(make_app(files)) as host:
        await host.syncs.run("agents.memory.memory")
        now = await search(host, "piano tuned", threshold=0.2)
        then = await search(host, "piano tuned", threshold=0.2, as_of="2026-01-02")
    assert (ids(now), ids(then)) == ([1, 2], [1])


@pytest.mark.parametrize("turn", [{"turn": 3}, {"conversation": "chat 1"}])
async def test_a_turn_without_its_conversation_or_its_place_is_refused(
    make_app: MakeApp, turn: dict[str, Any]
) -> None:
    note = {"collection": "own", "title": "T", "content": "Text.", **turn}
    async with open_host(make_app(kit())) as host:
        outcome = await host.tool("remember", note, identity=ME, assistant="memory")
    assert outcome.code == "wrong_arguments"
    assert "both `conversation` and `turn`" in (outcome.error or "")


TWO = "Did the piano survive, and where did we swim in the summer?"
PARTS = ["Did the piano survive?", "Where did we swim?"]
BY = {"by": "connector:splitter", "timeout_ms": 60_000}


async def test_a_question_with_two_facts_finds_both_and_shows_the_parts_in_the_trace(
    make_app: MakeApp,
) -> None:
    traced: list[Event] = []
    app = make_app(kit(json.dumps({"questions": PARTS}), neighbours=0, split=BY))
    async with open_host(app) as host:
        said = await remember(host, ["The piano did survive.", "We swim in a lake."])
        await remember(host, [f"Summer {n}: where and how, and the rest." for n in range(12)])
        outcome = await search(host, TWO, traced=traced, limit=3)
    assert set(said) <= set(ids(outcome))
    assert nodes(traced, "split")[0]["questions"] == PARTS


async def test_no_more_parts_are_searched_than_the_toolkit_allows(make_app: MakeApp) -> None:
    traced: list[Event] = []
    written = json.dumps([f"Which fact has number {n}?" for n in range(500)])
    async with open_host(make_app(kit(written, split={**BY, "most": 3}))) as host:
        await remember(host, SAID)
        await search(host, TWO, traced=traced)
    assert len(nodes(traced, "split")[0]["questions"]) == 3


@pytest.mark.parametrize("written", ['{"questions": []}', '{"questions": ["The one?", " "]}'])
async def test_a_question_of_one_fact_is_searched_as_it_is(make_app: MakeApp, written: str) -> None:
    async with open_host(make_app(kit(written, split=BY))) as host:
        said = await remember(host, SAID)
        outcome = await search(host, "Did the big piano survive the stairs?")
    assert ids(outcome)[0] == said[0]
    assert outcome.warnings == ()


@pytest.mark.parametrize(
    ("script", "split"),
    [
        ({"text": "I would rather not."}, BY),
        ({"error": {"code": "unreachable", "message": "gone"}}, BY),
        ({"text": "{}", "delay_ms": 600_000}, {**BY, "timeout_ms": 50}),
        ({"text": "{}"}, {**BY, "by": "connector:nobody"}),
    ],
)
async def test_if_splitting_fails_the_question_is_searched_as_a_whole_with_a_warning(
    make_app: MakeApp, script: dict[str, Any], split: dict[str, Any]
) -> None:
    async with open_host(make_app(kit(script, split=split))) as host:
        said = await remember(host, SAID)
        outcome = await search(host, "Did the big piano survive the stairs?")
    assert ids(outcome)[0] == said[0]
    [warning] = outcome.warnings
    assert warning.endswith("the question was searched as a whole")


async def test_a_few_words_are_not_sent_to_the_model(make_app: MakeApp) -> None:
    async with open_host(make_app(kit({"error": {"code": "refused"}}, split=BY))) as host:
        await remember(host, SAID)
        outcome = await search(host, "the piano")
    assert outcome.warnings == ()


async def test_more_evidence_of_a_conversation_is_found_with_the_turns_beside(
    tmp_path: Path,
) -> None:
    """By the bundled model: the place of a turn without the words follows from its neighbour's."""
    conversation = read(OWN)[1]  # the one that is kept aside
    async with open_host(write_app(tmp_path, conversation, TOOLKITS), environment={}) as host:
        await host.syncs.run("source")
        alone = await recall(host, "alone", conversation.questions)
        beside = await recall(host, "beside", conversation.questions)
    assert beside[0] > alone[0] + 3  # of 25 questions, among the first five
    assert beside[1] > alone[1] + 3


def test_the_bench_reads_the_evidence_of_the_public_format(tmp_path: Path) -> None:
    said = {
        "speaker_a": "A",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [{"speaker": "A", "dia_id": "D1:1", "text": "Hi", "blip_caption": "a dog"}],
        "session_2_date_time": "soon",
        "session_2": [{"speaker": "B", "dia_id": "D2:1", "text": "Ho"}],
        "session_3_date_time": "a summary without turns",
        "session_1_summary": "ignored",
    }
    asked = [
        {"question": "1", "evidence": ["D1:1; D2:01", "D"], "category": 1},
        {"question": "2", "evidence": ["D7:1"], "category": 2},
        {"question": "3", "evidence": ["D1:1"], "category": 5},
        {"question": "4", "category": 4},
    ]
    file = tmp_path / "locomo.json"
    file.write_text(json.dumps([{"sample_id": "x", "conversation": said, "qa": asked}]))
    [conversation] = read(file)
    first, second = conversation.lines
    assert first["content"] == "A: Hi [shows a dog]"
    assert first["written"] == "2023-05-08T13:56:00"
    assert second["turn"] - first["turn"] > 1
    assert [(each.text, each.evidence) for each in conversation.questions] == [
        ("1", frozenset({first["id"], second["id"]}))
    ]
