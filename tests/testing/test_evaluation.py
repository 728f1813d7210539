"""Suites of questions: read, asked, scored, compared, reported."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook import open_host
from groundhook.core.errors import ConfigError, SourceError, UsageError
from groundhook.core.ports import Handler
from groundhook.core.types.connector_spec import Price
from groundhook.core.types.events import Cited, Event, SearchFound, StreamEnd, StreamStart
from groundhook.core.types.search import Item
from groundhook.core.types.turn import Usage
from groundhook.host.testing.canned import CannedSource, canned_item
from groundhook.host.testing.evaluation.comparing import (
    MEASURES,
    bootstrap,
    certainty_table,
    compare,
    sign_test,
)
from groundhook.host.testing.evaluation.evaluator import (
    Configuration,
    Evaluation,
    cassette_of,
)
from groundhook.host.testing.evaluation.html_report import EvaluationReport, html_report
from groundhook.host.testing.evaluation.scoring import Outcome, Turn, outcome_of
from groundhook.host.testing.evaluation.suite import (
    EvaluationRow,
    EvaluationSuite,
    append_rows,
    assistant_of,
    read_suite,
)
from tests.conftest import MakeApp

ROOT = Path(__file__).parents[2]
TEA = Item(
    key="kb:notes/tea.md",
    type="kb",
    collection="notes",
    document_id="guides/tea.md",
    title="Tea › Green",
)
PACKAGE = '{"name": "A", "kb": {"collections": ["notes"]}, "search": {"kb": true, "web": true}}'
APP = {
    "assistants/a/package.yao": PACKAGE,
    "kb/notes.kb.yao": '{"name": "Notes", "embedding": {"provider": "hash"}}',
    "connectors/says.conn.yao": json.dumps(
        {"label": "x", "type": "scripted", "options": {"script": [{"text": "42.", "times": 0}]}}
    ),
}
SUITE = "assistants/a/tests/first.suite.jsonl"


def written(folder: Path, *rows: Any) -> Path:
    path = folder / SUITE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def scored(row: dict[str, Any], content: str, *cited: Cited) -> Outcome:
    events: list[Event] = [
        StreamStart(assistant_id="a", connector="m"),
        SearchFound(search_id="s1", item=TEA),
        StreamEnd(
            content=content,
            citations=cited,
            certainty="sure",
            usage=Usage(prompt_tokens=1000, completion_tokens=500),
        ),
    ]
    prices = {"m": Price(prompt=1, completion=2)}
    return outcome_of(Turn(0, 0, 0), EvaluationRow(question="?", **row), events, prices)


CITED = Cited(
    marker="#ref:a1b2",
    verdict="ok",
    title="Tea › Green",
    collection="notes",
    document_id="guides/tea.md",
)


@pytest.mark.parametrize(
    "name", ["tea.md", "guides/TEA.md", "notes", "Green", "notes/guides/tea.md"]
)
def test_a_source_is_expected_by_any_of_its_names(name: str) -> None:
    outcome = scored({"sources": [name]}, "Two minutes.", CITED)
    assert (outcome.checks, outcome.found, outcome.passed) == ({"sources": 1.0}, 1.0, True)


def test_a_part_of_a_name_is_another_source() -> None:
    outcome = scored({"sources": ["ea.md", "Tea"]}, "Two minutes.", CITED)
    assert outcome.checks == {"sources": 0.5}
    assert outcome.lacks == ("does not cite 'ea.md'",)


def test_a_source_that_was_found_and_not_cited_is_found() -> None:
    outcome = scored({"sources": ["tea.md"]}, "Two minutes.")
    assert (outcome.found, outcome.checks["sources"], outcome.passed) == (1.0, 0.0, False)


def test_phrases_and_figures_are_found_in_any_form() -> None:
    row = {"phrases": ["green  TEA", ["Sencha", "brewed"]], "figures": ["1,234.50", 2, "80 °C"]}
    assert scored(row, "**Green tea** is brewed two minutes at 80°C, 1 234,5 times.").passed
    missing = scored(row, "Black tea at 90 °C.")
    assert missing.score == 0.0
    assert "does not say 'Sencha' or 'brewed'" in missing.lacks
    assert "lacks the figure '80 °C'" in missing.lacks


def test_a_refusal_cites_nothing() -> None:
    assert scored({"refusal": True}, "I do not know.").passed
    cites = scored({"refusal": True}, "Two minutes.", CITED)
    assert (cites.passed, cites.lacks) == (False, ("cites 'Tea › Green', and was to refuse",))


def test_a_turn_costs_what_its_tokens_cost() -> None:
    outcome = scored({}, "x")
    assert outcome.tokens == 1500
    assert outcome.cost == pytest.approx(0.002)


def test_a_row_that_expects_nothing_has_no_score() -> None:
    assert (scored({}, "x").score, scored({}, "x").passed) == (None, True)


@pytest.mark.parametrize(
    ("better", "worse", "p"), [(0, 0, 1.0), (5, 0, 0.0625), (9, 1, 0.021484375), (3, 3, 1.0)]
)
def test_the_sign_test_has_the_values_of_its_table(better: int, worse: int, p: float) -> None:
    assert sign_test(better, worse) == pytest.approx(p)
    assert sign_test(worse, better) == pytest.approx(p)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=30))
def test_the_interval_lies_within_the_differences_and_repeats(differences: list[float]) -> None:
    interval = bootstrap(differences)
    assert interval is not None
    low, high = interval
    assert min(differences) - 1e-9 <= low <= high <= max(differences) + 1e-9
    assert bootstrap(differences) == interval
    assert bootstrap(differences[:1]) is None


def outcomes(*scores: Sequence[float], configuration: int = 0) -> list[Outcome]:
    return [
        Outcome(turn=Turn(row, configuration, run), checks={"sources": score}, certainty="sure")
        for row, runs in enumerate(scores)
        for run, score in enumerate(runs)
    ]


def test_questions_are_compared_by_the_mean_of_their_runs() -> None:
    before = outcomes([0, 1], [1, 1], [0, 0], [1, 0])
    after = outcomes([1, 1], [0, 1], [0, 0], [0, 1], configuration=1)
    comparison = compare(before, after)
    assert comparison.changes == {0: "better", 1: "worse", 2: "same", 3: "same"}
    score = comparison.measures[0]
    assert (score.before, score.after, score.certain) == (0.5, 0.5, False)
    assert not comparison.is_worse


def test_a_trial_that_is_worse_everywhere_is_worse() -> None:
    comparison = compare(outcomes(*[[1]] * 8), outcomes(*[[0]] * 8, configuration=1))
    assert comparison.is_worse
    assert comparison.measures[0].certain
    assert [each.measure.name for each in comparison.measures][:2] == ["score", "sources"]


def test_certainty_is_held_against_truth() -> None:
    assert certainty_table(outcomes([1, 0, 0])) == {"sure": (1, 2)}


def test_a_wrong_row_is_named_with_its_line(tmp_path: Path) -> None:
    path = written(
        tmp_path, {"question": "a", "sorces": ["x"]}, {"question": ""}, {"question": "a"}
    )
    path.write_text(
        path.read_text(encoding="utf-8") + '["x"]\n{"question": "b",}\n', encoding="utf-8"
    )
    with pytest.raises(ConfigError) as raised:
        read_suite(path, "s.jsonl")
    lines = str(raised.value).splitlines()
    assert lines[0] == "s.jsonl:1: unknown key 'sorces' (did you mean 'sources'?)"
    assert [line.split(":")[1] for line in lines] == ["1", "2", "4", "5"]


def test_the_same_question_twice_needs_ids(tmp_path: Path) -> None:
    path = written(tmp_path, {"question": "a"}, {"question": "a"})
    with pytest.raises(ConfigError, match="the same question as in line 1"):
        read_suite(path, "s.jsonl")
    assert (
        len(
            read_suite(written(tmp_path, {"question": "a"}, {"id": "2", "question": "a"}), "s").rows
        )
        == 2
    )


def test_the_assistant_is_that_of_the_folder(tmp_path: Path) -> None:
    assert assistant_of(tmp_path / "assistants/team/helper/tests/x.suite.jsonl") == "team.helper"
    assert assistant_of(tmp_path / "x.suite.jsonl") == ""


def test_added_rows_follow_the_others(tmp_path: Path) -> None:
    path = written(tmp_path, {"question": "a"})
    path.write_text(path.read_text(encoding="utf-8").rstrip(), encoding="utf-8")
    append_rows(path, [EvaluationRow(question="b", sources=("x",))])
    assert [row.question for row in read_suite(path, "s").rows] == ["a", "b"]
    assert path.read_text(encoding="utf-8").endswith('{"question":"b","sources":["x"]}\n')


def web(*pages: Any) -> CannedSource:
    return CannedSource({"*": pages[0]}) if pages else CannedSource({"*": []})


async def evaluated(
    app: Path, suite: Path, *, trial: Path | None = None, runs: int = 1, kb: Handler, web: Handler
) -> list[Outcome]:
    configurations = [Configuration(name="files")]
    if trial is not None:
        configurations.append(Configuration(name="trial", trial=trial))
    async with open_host(app, environment={}, sources={"kb": kb, "web": web}) as host:
        questions = read_suite(suite, "first.suite.jsonl")
        with anyio.fail_after(60):
            return await Evaluation(
                host=host,
                suite=questions,
                configurations=configurations,
                cassette=cassette_of(host, questions, play=False),
                assistant=assistant_of(suite),
                runs=runs,
                at_once=4,
            ).run(lambda _: None)


async def test_a_trial_is_asked_beside_the_files_on_the_same_web(make_app: MakeApp) -> None:
    app = make_app(APP)
    suite = written(app, {"question": "How many?", "figures": [42]}, {"question": "Why?"})
    trial = app / "trial.yml"
    trial.write_text("connector: says\n", encoding="utf-8")
    notes, pages = web(), web([canned_item("tea", type="web", title="Tea", content="Tea is 7.")])
    found = await evaluated(app, suite, trial=trial, runs=2, kb=notes, web=pages)
    assert [each.turn for each in found] == sorted(each.turn for each in found)
    assert len(found) == 8
    asked = [each for each in found if each.turn.row == 0]
    assert [each.passed for each in asked] == [False, False, True, True]
    # Four turns asked for each question, of which the first alone reached the web.
    assert len(pages.requests) == 2
    assert len(notes.requests) == 8


async def test_an_error_of_the_web_is_the_same_for_both(make_app: MakeApp) -> None:
    app = make_app(APP)
    suite = written(app, {"question": "How many?"})
    trial = app / "trial.yml"
    trial.write_text("connector: says\n", encoding="utf-8")
    pages = CannedSource({"*": SourceError("gone")})
    found = await evaluated(app, suite, trial=trial, kb=web(), web=pages)
    assert [each.error for each in found] == ["", ""]
    assert len(pages.requests) == 1


async def test_a_trial_with_a_mistake_ends_before_the_first_turn(make_app: MakeApp) -> None:
    app = make_app(APP)
    suite = written(app, {"question": "How many?"})
    trial, notes = app / "trial.yml", web()
    trial.write_text("search:\n  kb:\n    max_result: 3\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"max_result.*did you mean 'max_results'"):
        await evaluated(app, suite, trial=trial, kb=notes, web=web())
    assert notes.requests == []


async def test_a_suite_outside_of_an_assistant_must_name_one(make_app: MakeApp) -> None:
    app = make_app(APP)
    suite = app / "x.suite.jsonl"
    suite.write_text('{"question": "a"}\n', encoding="utf-8")
    with pytest.raises(UsageError, match="does not say which assistant"):
        await evaluated(app, suite, kb=web(), web=web())


def test_a_report_has_no_markup_of_an_answer_and_no_script() -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    rows = (EvaluationRow(question=evil, note=evil, sources=(evil,)),)
    both = [
        Outcome(
            turn=Turn(0, n, 0),
            checks={"sources": n},
            lacks=(evil,),
            content=evil,
            cited=(evil,),
            error=evil,
            total_ms=5 + n,
            certainty="sure",
        )
        for n in (0, 1)
    ]
    page = html_report(
        EvaluationReport(
            suite=EvaluationSuite(Path("x"), evil, rows),
            names=[evil, evil],
            runs=1,
            at=datetime(2026, 1, 1, tzinfo=UTC),
            outcomes=both,
        )
    )
    assert "<script" not in page
    assert "<img" not in page
    assert page.count("<svg") == 4
    assert "default-src 'none'" in page


def test_every_measure_of_the_report_has_a_row() -> None:
    assert len({measure.name for measure in MEASURES}) == len(MEASURES)


@pytest.mark.parametrize("assistant", ["docs", "shop"])
async def test_the_suites_of_the_samples_pass_offline(tmp_path: Path, assistant: str) -> None:
    for folder in ("agent", "assistants"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    path = tmp_path / "assistants" / assistant / "tests" / "questions.suite.jsonl"
    async with open_host(tmp_path, environment={}) as host:
        suite = read_suite(path, path.name)
        found = await Evaluation(
            host=host,
            suite=suite,
            configurations=[Configuration(name="files")],
            cassette=cassette_of(host, suite, play=True),
            assistant=assistant,
        ).run(lambda _: None)
    assert [(each.lacks, each.error) for each in found if not each.passed] == [], (
        "record them again: groundhook eval SUITE --record"
    )
