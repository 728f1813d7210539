"""Cassettes: what is recorded is played again, and what is not recorded fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook import open_host
from groundhook.core.errors import SourceRateLimited, SourceTimeout
from groundhook.core.ports import SourceResult
from groundhook.core.types.search import GraphNode, Item, Row, SearchAccount, Table
from groundhook.host.testing.cassette import Cassette, NotRecorded, canonical, joined, lines
from groundhook.host.testing.tape import Tape, error_of, failure, replay
from groundhook.host.testing.taped_sources import found_of, recorded_found
from tests.testing.conftest import RunTests, rerun

ASKS = """
    test("asks", () => {
      const answer = turn("What is a llama?");
      expect(answer.content).toBe("Said by the real one.");
      expect(answer.searches[0].items.map((item) => item.title)).toEqual(["Llamas"]);
    });
    """
CASSETTE = "assistants/a/tests/first.cassette.json"


def cassette(app: Path) -> Any:
    return json.loads((app / CASSETTE).read_text(encoding="utf-8"))


async def filled(app: Path) -> None:
    """Puts one document into the app's collection."""
    page = app / "llamas.md"
    page.write_text(
        "# Llamas\n\nA llama is a domesticated animal of South America.\n", encoding="utf-8"
    )
    async with open_host(app, environment={}) as host:
        await host.kb.add("docs", [page])


async def test_a_recording_is_played_when_the_sources_are_gone(run_tests: RunTests) -> None:
    unrecorded = await run_tests(ASKS)
    assert "no recording of this kb search" in unrecorded.why()
    assert "no recording of this model call" in unrecorded.why()
    app = unrecorded.app
    await filled(app)
    with anyio.fail_after(60):
        recorded = await rerun(app, record=True)
    assert recorded.outcome == {"asks": "passed"}, recorded.why()
    assert [end.written for end in recorded.ends] == [True]
    assert [call["call"] for call in cassette(app)["calls"]] == ["kb search", "model call"]
    assert str(app) not in (app / CASSETTE).read_text(encoding="utf-8")

    (app / "connectors/parrot.conn.yao").write_text(
        '{"type": "openai", "options": {"key": "$ENV.NO_SUCH_KEY"}}', encoding="utf-8"
    )
    async with open_host(app, environment={}) as host:
        await host.kb.remove("docs", None)
    played = await rerun(app)
    assert played.outcome == {"asks": "passed"}, played.why()
    assert [(end.written, end.unused) for end in played.ends] == [(False, 0)]


async def test_recording_again_changes_nothing_when_the_world_has_not_changed(
    run_tests: RunTests,
) -> None:
    first = await run_tests('test("asks", () => { turn("Who?"); });', record=True)
    before = (first.app / CASSETTE).read_bytes()
    again = await rerun(first.app, record=True)
    assert (first.app / CASSETTE).read_bytes() == before
    assert [end.written for end in again.ends] == [False]


async def test_recordings_that_nobody_asks_for_are_counted_and_dropped_by_recording(
    run_tests: RunTests,
) -> None:
    ran = await run_tests('test("asks", () => { turn("Who?"); });', record=True)
    test = ran.app / "assistants/a/tests/first.test.ts"
    test.write_text('test("asks", () => { turn("Who?", { model: ["x"] }); });', encoding="utf-8")
    assert [end.unused for end in (await rerun(ran.app)).ends] == [1]
    await rerun(ran.app, record=True)
    assert [call["call"] for call in cassette(ran.app)["calls"]] == ["kb search"]
    test.write_text(
        'test("asks", () => { turn("Who?", { model: ["x"], searches: { kb: [] } }); });',
        encoding="utf-8",
    )
    await rerun(ran.app, record=True)
    assert not (ran.app / CASSETTE).exists()


async def test_an_unrecorded_call_shows_the_nearest_recorded_one_and_fails_although_searches_never_throw(
    run_tests: RunTests,
) -> None:
    ran = await run_tests(
        'test("asks", () => { turn("What is a llama?", { model: ["x"] }); });', record=True
    )
    test = ran.app / "assistants/a/tests/first.test.ts"
    test.write_text(
        'test("asks", () => {\n  turn("What is a lama?", { model: ["x"] });\n});', encoding="utf-8"
    )
    why = (await rerun(ran.app)).why()
    assert why.startswith("assistants/a/tests/first.test.ts:2:3")
    assert '-   "query": "What is a llama?"' in why
    assert '+   "query": "What is a lama?"' in why
    assert "--record" in why


async def test_errors_of_real_sources_are_recorded_and_played(run_tests: RunTests) -> None:
    ran = await run_tests(
        """
        test("asks", () => {
          const answer = turn("Who?", { model: ["x"] });
          expect(answer.searches[0].error).toContain("no web search provider");
        });
        """,
        record=True,
        package_yao='{"name": "A", "search": {"web": true}}',
    )
    assert ran.outcome == {"asks": "passed"}, ran.why()
    assert cassette(ran.app)["calls"][0]["answers"][0]["error"]["code"] == "source_not_configured"
    assert (await rerun(ran.app)).outcome == {"asks": "passed"}


async def test_the_clock_is_fixed_to_the_time_of_the_recording(
    run_tests: RunTests,
) -> None:
    ran = await run_tests('test("asks", () => { turn("Who?"); });', record=True)
    path = ran.app / CASSETTE
    path.write_text(
        json.dumps({**cassette(ran.app), "now": "2020-02-02T02:02:02+00:00"}), encoding="utf-8"
    )
    test = ran.app / "assistants/a/tests/first.test.ts"
    test.write_text(
        'test("now", () => { turn("Who?"); expect(new Date().getUTCFullYear()).toBe(2020); });',
        encoding="utf-8",
    )
    assert (await rerun(ran.app)).outcome == {"now": "passed"}
    await rerun(ran.app, record=True)
    assert cassette(ran.app)["now"] == "2020-02-02T02:02:02+00:00"


@pytest.mark.parametrize(
    ("text", "expected_message"),
    [
        ("{", "is not JSON"),
        ('{"calls": [{"call": 1}]}', "is not a cassette: calls[0]"),
        ('{"cals": []}', "cals"),
    ],
)
async def test_a_broken_cassette_is_reported_with_its_place(
    run_tests: RunTests, text: str, expected_message: str
) -> None:
    ran = await run_tests('test("x", () => {});', tests__first_cassette_json=text)
    assert expected_message in ran.why()
    assert ran.why().startswith(CASSETTE)


def test_the_answers_of_one_request_come_in_order_and_the_last_one_stays(tmp_path: Path) -> None:
    path = tmp_path / "x.cassette.json"
    recording = Cassette(path, "x", recording=True)
    for answer in ("a", "b", "b", "b"):
        recording.keep("kb search", {"query": "q"}, {"text": answer})
    assert recording.save()
    assert [
        answer["text"]
        for answer in json.loads(path.read_text(encoding="utf-8"))["calls"][0]["answers"]
    ] == ["a", "b"]
    playing = Cassette.load(path, "x")
    assert [playing.play("kb search", {"query": "q"})["text"] for _ in range(4)] == [
        "a",
        "b",
        "b",
        "b",
    ]
    assert playing.unused == 0


def test_a_request_is_known_whatever_the_order_of_its_keys_and_never_by_another(
    tmp_path: Path,
) -> None:
    kept = Cassette(tmp_path / "x", "x", recording=False)
    kept.keep("kb search", {"query": "q", "limit": 5}, {"items": []})
    assert kept.play("kb search", {"limit": 5, "query": "q"}) == {"items": []}
    for call, request in (
        ("web search", {"query": "q", "limit": 5}),
        ("kb search", {"query": "q", "limit": 6}),
    ):
        with pytest.raises(NotRecorded):
            kept.play(call, request)


async def test_a_call_that_was_cancelled_is_played_as_one_that_never_answers() -> None:
    with anyio.move_on_after(0.05) as scope:
        await replay({"cancelled": True})
    assert scope.cancelled_caught


async def test_errors_come_back_as_what_they_were() -> None:
    for error in (SourceRateLimited("slow down", hint="wait"), SourceTimeout("late")):
        again = error_of(failure(error)["error"])
        assert (type(again), again.message, again.hint) == (type(error), error.message, error.hint)


async def test_a_request_at_another_time_is_another_request(tmp_path: Path) -> None:
    kept = Cassette(tmp_path / "x", "x", recording=True)

    async def real() -> dict[str, Any]:
        return {"n": 1}

    await Tape(kept).ask("db search", {"query": "q"}, real)
    kept.recording = False
    with pytest.raises(NotRecorded):
        await Tape(kept, "2026-01-01").ask("db search", {"query": "q"}, real)


tables = [
    Table(id=f"t{n}", name="T", columns=("A",), total=n, account=SearchAccount(unread=("x",)))
    for n in range(2)
]
items = st.builds(
    Item,
    row=st.none()
    | st.builds(Row, table=st.sampled_from(tables), cells=st.tuples(st.text(max_size=5))),
    type=st.sampled_from(["web", "kb", "db"]),
    title=st.text(max_size=20),
    content=st.text(max_size=60),
    score=st.floats(0, 1),
    key=st.text(max_size=20),
    record_id=st.none() | st.integers() | st.text(max_size=5),
    data=st.none()
    | st.dictionaries(
        st.text(max_size=5), st.none() | st.text(max_size=5) | st.integers(), max_size=3
    ),
)
found = st.builds(
    SourceResult,
    items=st.lists(items, max_size=3).map(tuple),
    total=st.none() | st.integers(0, 1000),
    graph_nodes=st.none() | st.just((GraphNode(id="1", type="t", name="n", score=0.5),)),
    dsl=st.none() | st.just({"wheres": []}),
    account=st.builds(SearchAccount, certainty=st.sampled_from([None, "sure", "none"])),
)


@given(found)
def test_the_items_of_a_source_are_the_same_after_they_went_through_a_file(
    value: SourceResult,
) -> None:
    assert found_of(json.loads(json.dumps(recorded_found(value)))) == value


@given(st.text())
def test_text_in_lines_is_the_same_text(text: str) -> None:
    assert joined(lines(text)) == text


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_a_canonical_request_is_canonical(value: Any) -> None:
    text = canonical({"value": value})
    assert canonical(json.loads(text)) == text


async def test_what_a_model_reads_is_a_part_of_the_recorded_search(run_tests: RunTests) -> None:
    where = {"field": "title", "op": "=", "value": "Red"}
    query = {"query": {"model": "article", "wheres": [where]}}
    files = {
        "assistants/a/package.yao": json.dumps(
            {
                "name": "A",
                "connector": "gpt",
                "search": {"db": {"timeout_ms": 60_000}},
                "db": {"models": ["article"]},
                "uses": {"query": "connector:gpt"},
            }
        ),
        "models/article.mod.yao": json.dumps(
            {
                "name": "Article",
                "table": {"name": "article"},
                "columns": [{"name": "id", "type": "ID"}, {"name": "title", "type": "string"}],
                "values": [{"id": 1, "title": "Red"}, {"id": 2, "title": "Blue"}],
            }
        ),
        "connectors/gpt.conn.yao": json.dumps(
            {"type": "scripted", "options": {"script": [{"text": json.dumps(query), "times": 0}]}}
        ),
    }
    asks = f"""
    test("asks", () => {{
      const answer = turn({json.dumps("anything red among the pens, pal")}, {{ model: ["It is {{ref:0}}."] }});
      expect(answer.content).toContain("It is");
      expect(answer.searches[0].items.length).toBe(1);
    }});
    """
    ran = await run_tests(asks)
    for path, text in files.items():
        file = ran.app / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    async with open_host(ran.app, environment={}) as host:
        await host.database.load()
    recorded = await rerun(ran.app, record=True)
    assert recorded.outcome == {"asks": "passed"}, recorded.why()
    assert [call["call"] for call in cassette(ran.app)["calls"]] == ["db search"]
    played = await rerun(ran.app)
    assert played.outcome == {"asks": "passed"}, played.why()
    assert [each.unused for each in played.ends] == [0]


async def test_a_model_that_does_a_step_takes_no_answer_of_the_turn(run_tests: RunTests) -> None:
    package = {
        "name": "A",
        "connector": "parrot",
        "uses": {"rewrite": "connector:writer"},
        "kb": {"collections": ["docs"]},
        "search": {"kb": True},
    }
    writer = {
        "type": "scripted",
        "options": {"script": [{"text": '{"query": "How large are llamas?"}', "times": 0}]},
    }
    asks = """
    test("asks", () => {
      const messages = [
        { role: "user", content: "What is a llama?" },
        { role: "assistant", content: "An animal." },
        { role: "user", content: "How large are they?" },
      ];
      const answer = turn(messages, { model: ["Large."], searches: { kb: [] } });
      expect(answer.content).toBe("Large.");
      expect(answer.searches[0].query).toBe("How large are llamas?");
    });
    """
    ran = await run_tests(asks)
    for path, content in (
        ("assistants/a/package.yao", package),
        ("connectors/writer.conn.yao", writer),
    ):
        (ran.app / path).write_text(json.dumps(content), encoding="utf-8")
    for record in (True, False):
        rerun_ = await rerun(ran.app, record=record)
        assert rerun_.outcome == {"asks": "passed"}, rerun_.why()
    assert [call["call"] for call in cassette(ran.app)["calls"]] == ["model call"]
