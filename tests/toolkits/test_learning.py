"""`searchResources` over the sample of 60 sections, with queries by rules and by a model."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from groundhook import Host, open_host
from groundhook.core.errors import ModelError
from groundhook.core.ports import Delta, ModelCall, TextDelta
from groundhook.core.types.events import Event
from groundhook.core.types.tools import ToolOutcome
from tests.loopback.chat import answer
from tests.loopback.server import Answer, Hang, Json, Loopback, Sse, serving
from tests.parts.turns import end, of
from tests.toolkits.conftest import OpenSample

NORTH = {"tenant_id": "north-college"}
COURSE = {"courseId": "b1", "title": "Biology", "outcomes": []}
PATH = "/v1/chat/completions"
PATIENCE = 20_000  # milliseconds for a model that answers


@pytest.fixture
async def host(open_sample: OpenSample) -> AsyncIterator[Host]:
    async with open_sample("learning") as opened:
        yield opened


async def search(
    host: Host, intent: str, course: Any = COURSE, identity: Any = NORTH, **options: Any
) -> ToolOutcome:
    return await host.tool(
        "searchResources",
        {"userIntent": intent, "courseContext": course},
        identity=identity,
        assistant="learning",
        **options,
    )


def ids(outcome: ToolOutcome) -> list[str]:
    assert outcome.error is None, outcome.error
    return [one["id"] for one in outcome.result["resources"]]


async def test_sections_have_the_five_keys_and_scores_that_never_rise(host: Host) -> None:
    outcome = await search(host, "photosynthesis in leaf cells")
    sections = outcome.result["resources"]
    assert sections[0]["id"] == "bio-2"
    assert all(set(one) == {"id", "title", "bookTitle", "summary", "score"} for one in sections)
    scores = [one["score"] for one in sections]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert sections[0]["bookTitle"] == "Foundations of Biology"


async def test_a_vague_intent_finds_the_sections_of_the_outcomes_and_a_topic_its_own(
    host: Host,
) -> None:
    outcomes = ["mitosis: a spindle divides the chromosomes", "nerve impulses along a fibre"]
    course = {**COURSE, "outcomes": outcomes}
    assert {"bio-4", "bio-10"} <= set(ids(await search(host, "quiz", course))[:3])
    assert ids(await search(host, "Photosynthesis", course))[0] == "bio-2"


async def test_the_sample_cites_a_section_and_a_turn_without_an_institution_says_what_is_missing(
    host: Host,
) -> None:
    async with host.stream("learning", "photosynthesis in leaf cells", identity=NORTH) as events:
        answered = [event async for event in events]
    assert "https://books.example/bio/2" in [cited.url for cited in end(answered).citations]
    async with host.stream("learning", "photosynthesis in leaf cells") as events:
        (failed,) = of([event async for event in events], "error")
    assert "searchResources needs a tenant (institution)" in failed.message


async def test_an_institution_sees_open_books_and_its_own(host: Host) -> None:
    north = await search(host, "Liquidität der Bank und fixe Kosten")
    assert "bwl-4" in ids(north)
    south = await search(host, "Liquidität Bank fixe Kosten", identity={"tenant_id": "x"})
    assert not [id for id in ids(south) if id.startswith("bwl")]
    assert ids(south)


async def test_without_an_institution_nothing_is_searched(host: Host) -> None:
    outcome = await search(host, "x", identity=None)
    assert outcome.error == (
        "not permitted: searchResources needs a tenant (institution), and the request names none"
    )


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"userIntent": " ", "courseContext": COURSE}, "userIntent"),
        ({"userIntent": "x"}, "courseContext"),
        ({"userIntent": "x", "courseContext": {"title": "t", "outcomes": []}}, "courseId"),
        ({"userIntent": "x", "courseContext": {"courseId": "c", "outcomes": []}}, "title"),
        ({"userIntent": "x", "courseContext": {"courseId": "c", "title": "t"}}, "outcomes"),
        ({"userIntent": "x", "courseContext": {**COURSE, "outcomes": "all"}}, "outcomes"),
        ({"userIntent": "x", "courseContext": COURSE, "institutionId": "n"}, "institutionId"),
        ({"userIntent": "x", "courseContext": {**COURSE, "tenant": "n"}}, "tenant"),
    ],
)
async def test_wrong_arguments_are_refused_with_their_path(
    host: Host, arguments: Any, path: str
) -> None:
    outcome = await host.tool("searchResources", arguments, identity=NORTH, assistant="learning")
    assert (outcome.error or "").startswith("wrong arguments: ")
    assert path in (outcome.error or "")


async def test_long_intents_and_outcomes_are_cut_and_only_very_long_ones_refused(
    host: Host,
) -> None:
    course = {
        "courseId": "c" * 200,
        "title": "Biology " * 200,
        "outcomes": ["explain photosynthesis " + "x" * 2000] * 200,
    }
    outcome = await search(host, "photosynthesis in leaf cells " + "word " * 4000, course)
    assert outcome.error is None
    assert "bio-2" in ids(outcome)
    for intent, change, path in (
        ("x" * 32_001, {}, "userIntent"),
        ("x", {"outcomes": ["y"] * 201}, "outcomes"),
        ("x", {"courseId": "c" * 201}, "courseId"),
    ):
        refused = await search(host, intent, {**COURSE, **change})
        assert path in (refused.error or "")


async def test_a_model_is_told_which_outcomes_no_section_serves(host: Host) -> None:
    outcomes = ["photosynthesis: light splits water in leaf cells", "zzz qqq"]
    outcome = await search(host, "photosynthesis", {**COURSE, "outcomes": outcomes})
    assert 'No section serves these outcomes: ["zzz qqq"]' in outcome.text


async def test_outcomes_beyond_the_first_eight_are_said_not_to_be_compared(host: Host) -> None:
    course = {**COURSE, "outcomes": ["", *(f"zzz{number} qqq" for number in range(10))]}
    traced: list[Event] = []
    outcome = await search(host, "photosynthesis", course, events=traced.append)
    assert 'No section serves these outcomes (of the first 8): ["zzz0 qqq", ' in outcome.text
    assert "zzz8" not in outcome.text
    [*_, node] = [each.node for each in of(traced, "trace") if each.node.type == "coverage"]
    assert (len(node.data["coverage"]), node.data["not_compared"]) == (8, 2)


async def test_the_trace_has_the_queries_that_found_each_section(host: Host) -> None:
    traced: list[Event] = []
    outcome = await search(host, "photosynthesis in leaf cells", events=traced.append)
    [*_, node] = [each.node for each in of(traced, "trace") if each.node.type == "merge"]
    assert [one["id"] for one in node.data["shown"]] == ids(outcome)
    assert node.data["shown"][0] == {"id": "bio-2", "queries": [0, 1]}


async def test_sections_that_are_hardly_similar_to_the_intent_are_said_to_be_so(host: Host) -> None:
    nonsense = await search(host, "xateqo pupa vahuqi")
    assert ids(nonsense)
    assert "Nothing is very similar to what is looked for" in nonsense.text
    clear = await search(host, "photosynthesis: light splits water in leaf cells")
    assert clear.text == json.dumps(clear.result, ensure_ascii=False)


async def test_an_empty_answer_says_how_many_sections_the_threshold_left_out(
    synchronised: Callable[[str], Path], tmp_path: Path
) -> None:
    app = shutil.copytree(
        synchronised("learning"), tmp_path / "app", ignore=shutil.ignore_patterns("*.sock")
    )
    file = app / "assistants/learning/toolkits/learning.toolkit.yao"
    text = file.read_text(encoding="utf-8").replace('"limit": 5', '"limit": 5, "threshold": 0.99')
    file.write_text(text, encoding="utf-8")
    async with open_host(app) as host:
        outcome = await search(host, "xateqo pupa vahuqi")
    assert ids(outcome) == []
    assert outcome.warnings == ("Sections below the threshold: 55",)
    assert outcome.text.endswith("\nSections below the threshold: 55")


async def test_nothing_was_ever_synchronised(
    synchronised: Callable[[str], Path], tmp_path: Path
) -> None:
    app = synchronised("learning")
    (tmp_path / "assistants").symlink_to(app / "assistants")
    async with open_host(tmp_path) as host:
        outcome = await search(host, "x")
    assert "nothing is indexed for 'learning'" in (outcome.error or "")
    assert "groundhook tools sync learning" in (outcome.error or "")


async def test_an_intent_of_signs_alone_finds_little_and_fails_nothing(host: Host) -> None:
    outcome = await search(host, "\N{SEEDLING}?", {"courseId": "b1", "title": "", "outcomes": []})
    assert len(ids(outcome)) == len(set(ids(outcome)))


# Queries by a model

ByModel = Callable[..., AbstractAsyncContextManager[Host]]


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving() as made:
        yield made


@pytest.fixture
def by_model(server: Loopback, synchronised: Callable[[str], Path], tmp_path: Path) -> ByModel:
    @asynccontextmanager
    async def opened(
        reply: Answer, queries: Mapping[str, Any] | None = None, **keys: Any
    ) -> AsyncIterator[Host]:
        server.on(PATH, reply)
        app = synchronised("learning")
        package = tmp_path / "assistants/learning"
        package.mkdir(parents=True)
        for each in (app / "assistants/learning").iterdir():
            if each.name != "toolkits":
                (package / each.name).symlink_to(each)
        (package / "toolkits").mkdir()
        toolkit = {
            "type": "learning",
            "collections": ["library", "institution"],
            # The first call imports the client's library, which takes a busy machine seconds.
            "queries": {"by": "connector:writer", "timeout_ms": PATIENCE, **(queries or {})},
            **keys,
        }
        (package / "toolkits/learning.toolkit.yao").write_text(json.dumps(toolkit))
        (package / "connectors").mkdir()
        options = {"model": "m", "host": f"{server.url}/v1", "key": "k", "retries": 0}
        connector = {"name": "Writer", "type": "openai", "options": options}
        (package / "connectors/writer.conn.yao").write_text(json.dumps(connector))
        (tmp_path / ".groundhook").symlink_to(app / ".groundhook")
        async with open_host(tmp_path) as host:
            yield host

    return opened


async def queries_of(host: Host, intent: str) -> tuple[ToolOutcome, list[str]]:
    events: list[Event] = []
    outcome = await search(host, intent, events=events.append)
    made = [
        event.node.data["queries"]
        for event in events
        if event.type == "trace"
        and "queries" in (event.node.data or {})
        and event.node.type == "query_generation"
    ]
    return outcome, made[-1]


async def test_a_model_adds_up_to_four_queries_to_the_intent(by_model: ByModel) -> None:
    written = {"queries": ["1. leaf cells", "sugar", "", "LEAF CELLS", "light", "oxygen", "x y"]}
    async with by_model(Sse(answer(json.dumps(written)))) as host:
        outcome, queries = await queries_of(host, "photosynthesis")
    assert queries[0] == "photosynthesis"
    assert queries[1:] == ["leaf cells", "sugar"]
    assert ids(outcome)[0] == "bio-2"


BAD = [
    Json({"error": {"message": "no"}}, 500),
    Json({"error": {"message": "no"}}, 401),
    Hang(),
    *(
        Sse(answer(text))
        for text in (
            "",
            "no queries come to mind",
            '{"queries": []}',
            '{"queries": [null, 3]}',
            '{"queries": ["", "  ", "1."]}',
            '{"queries": ["stock exchange crash", "war in europe", "rent"]}',
            '{"quer',
            "[" * 5000,
            "[" * 800 + '"cells"' + "]" * 800,
            json.dumps({"queries": ["word " * 5000]}),
        )
    ),
]


@pytest.mark.parametrize("reply", BAD, ids=range(len(BAD)))
async def test_whatever_a_model_writes_the_section_of_a_clear_intent_is_among_the_first(
    by_model: ByModel, reply: Answer
) -> None:
    soon = {"timeout_ms": 300} if isinstance(reply, Hang) else {}
    async with by_model(reply, queries=soon) as host:
        outcome, queries = await queries_of(host, "photosynthesis in leaf cells")
    assert queries[0] == "photosynthesis in leaf cells"
    assert "bio-2" in ids(outcome)[:3]


async def test_a_model_puts_the_intent_into_the_languages_of_the_sections(
    by_model: ByModel, server: Loopback
) -> None:
    written = {"queries": [], "translations": ["היצע וביקוש מחיר שיווי המשקל", "third language"]}
    writer = {"languages": ["he"]}
    async with by_model(Sse(answer(json.dumps(written))), queries=writer) as host:
        outcome, queries = await queries_of(host, "supply and demand")
    assert queries == ["supply and demand", "היצע וביקוש מחיר שיווי המשקל"]
    assert ids(outcome)[0] == "eco-1"
    sent = json.loads(server.requests[0].json["messages"][-1]["content"])
    assert sent["languages"] == ["he"]


async def test_a_wrong_translation_leaves_the_section_of_a_clear_intent_among_the_first(
    by_model: ByModel,
) -> None:
    written = {"translations": ["Mittelwert und Median Streuung Stichproben Diagramme"]}
    writer = {"languages": ["de"]}
    async with by_model(Sse(answer(json.dumps(written))), queries=writer) as host:
        outcome = await search(host, "photosynthesis in leaf cells")
    assert "bio-2" in ids(outcome)[:3]


# The order of a model


class InGroup:
    """A connector that fails in a task group, as those of plug-ins may."""

    @asynccontextmanager
    async def stream(self, call: ModelCall, /) -> AsyncIterator[AsyncIterator[Delta]]:
        async with anyio.create_task_group() as group:
            group.start_soon(self._fail)
            yield self._wait()

    async def _fail(self) -> None:
        raise ModelError("the model is away")

    async def _wait(self) -> AsyncIterator[Delta]:
        await anyio.sleep_forever()
        yield TextDelta("")


async def test_an_error_in_a_group_is_replaced_by_the_rules_like_any_other(
    synchronised: Callable[[str], Path], tmp_path: Path
) -> None:
    app = tmp_path / "app"
    shutil.copytree(synchronised("learning"), app, symlinks=True)
    toolkit = {
        "type": "learning",
        "collections": ["library", "institution"],
        "queries": {"by": "connector:away"},
    }
    path = app / "assistants/learning/toolkits/learning.toolkit.yao"
    path.write_text(json.dumps(toolkit), encoding="utf-8")
    async with open_host(app, connectors={"away": InGroup()}) as host:
        outcome = await search(host, "photosynthesis")
    assert ids(outcome)[0] == "bio-2"
    assert "the model is away" in outcome.warnings[0]


JUDGE = {"queries": {"by": "builtin"}, "rerank": {"by": "connector:writer", "most": 4}}


async def test_a_model_orders_the_first_sections_and_scores_never_rise(
    by_model: ByModel, host: Host
) -> None:
    before = ids(await search(host, "cells"))
    order = Sse(answer(json.dumps({"order": ["s3", "s99", "s1", "s3"]})))
    async with by_model(order, **JUDGE) as judged:
        outcome = await search(judged, "cells")
    first, second, third, fourth, *rest = before
    assert ids(outcome)[:5] == [third, first, second, fourth, *rest[:1]]
    scores = [one["score"] for one in outcome.result["resources"]]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    "reply",
    [*BAD[:3], *(Sse(answer(text)) for text in ("no", '{"order": ["x"]}', "[]"))],
    ids=range(6),
)
async def test_a_model_that_fails_leaves_the_order_and_a_warning(
    by_model: ByModel, host: Host, reply: Answer
) -> None:
    before = ids(await search(host, "cells"))
    judge = {**JUDGE, "rerank": {"by": "connector:writer", "timeout_ms": 500}}
    async with by_model(reply, **judge) as judged:
        outcome = await search(judged, "cells")
    assert ids(outcome)[: len(before)] == before[: len(ids(outcome))]
    assert "judged no sections" in outcome.warnings[0]
