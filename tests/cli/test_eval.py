"""`groundhook eval` as a child process: what it prints, what it writes, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cli.conftest import Groundhook

SUITE = "assistants/shop/tests/first.suite.jsonl"
PEN = {"question": "Is there a red pen?", "sources": ["product"], "phrases": ["cheap"]}
BLUE = {"question": "Is the blue pen cheap?", "phrases": ["too dear"]}


def write(shop: Path, *rows: dict[str, Any]) -> None:
    (shop / SUITE).parent.mkdir(parents=True, exist_ok=True)
    (shop / SUITE).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def test_recorded_once_a_suite_passes_without_the_database(
    shop: Path, groundhook: Groundhook
) -> None:
    write(shop, PEN)
    recorded = groundhook("eval", SUITE, "--record")
    assert (recorded.code, recorded.problems) == (0, [])
    (shop / ".groundhook/data.sqlite").unlink()
    played = groundhook("eval", SUITE, "--offline")
    assert (played.code, played.problems) == (0, [])
    assert played.out.splitlines()[0] == "ok Is there a red pen?"
    assert "Expected sources cited\t100 %" in played.out.splitlines()
    assert played.out.splitlines()[-1] == "1 of 1 turn passed"


def test_what_an_answer_lacks_is_shown_and_fails(shop: Path, groundhook: Groundhook) -> None:
    write(shop, PEN, BLUE)
    ran = groundhook("eval", SUITE)
    assert ran.code == 1
    failed = ran.out.splitlines().index("FAILED Is the blue pen cheap?")
    assert ran.out.splitlines()[failed + 1] == "    does not say 'too dear'"
    assert groundhook("eval", SUITE, "--at-least", "50").code == 0


def test_a_trial_is_compared_and_reported(shop: Path, groundhook: Groundhook) -> None:
    write(shop, PEN, {"question": "Hello there", "phrases": ["Hello there."]})
    (shop / "plain.yml").write_text("connector: plain\n", encoding="utf-8")
    arguments = ("eval", SUITE, "--trial", "plain.yml", "--runs", "2")
    ran = groundhook(*arguments, "--report", "report.html")
    assert ran.code == 1
    assert "1 better, 1 worse, 0 the same (p = 1.000)" in ran.out
    page = (shop / "report.html").read_text(encoding="utf-8")
    assert "plain.yml" in page
    assert "<script" not in page
    *outcomes, summary = groundhook(*arguments, "--json").lines
    assert {(each["configuration"], each["run"]) for each in outcomes} == {
        (name, run) for name in ("as in the files", "plain.yml") for run in (0, 1)
    }
    assert summary["changes"] == {"better": 1, "worse": 1, "p": 1.0}
    assert summary["failed"] is True


def test_a_run_that_cannot_start_is_clear(shop: Path, groundhook: Groundhook) -> None:
    missing = groundhook("eval", SUITE)
    assert missing.code == 1
    assert "there is no such suite" in missing.err
    write(shop, PEN)
    no_trial = groundhook("eval", SUITE, "--trial", "none.yml")
    assert (no_trial.code, "there is no file 'none.yml'" in no_trial.err) == (1, True)
    assert groundhook("eval", SUITE, "--offline", "--record").code == 2
    unwritten = groundhook("eval", SUITE, "--report", "none/report.html")
    assert "the report cannot be written" in unwritten.err


def test_an_unrecorded_question_says_what_to_do(shop: Path, groundhook: Groundhook) -> None:
    write(shop, PEN)
    ran = groundhook("eval", SUITE, "--offline")
    assert ran.code == 1
    assert "--record" in ran.out
