"""Trials over HTTP: both columns, what moved, the diff, and tests that keep what worked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from groundhook.host.testing.evaluation.suite import read_suite
from tests.server.conftest import Serve, Served, lines

TRIAL = {"connector": "titles", "search": {"db": {"max_results": 1}}}


def ask(client: httpx.Client, **more: Any) -> list[dict[str, Any]]:
    body = {"assistant": "tea", "trial": TRIAL, "questions": [{"question": "all teas"}], **more}
    answer = client.post("/api/trials", json=body)
    assert answer.status_code == 200, answer.text
    return lines(answer)


def test_both_columns_answer_the_same_question(one_process: Served) -> None:
    with one_process.client() as client:
        head, *found = ask(client)
    assert head["changes"] == [
        {"key": "connector", "before": "cites", "after": "titles"},
        {"key": "search.db.max_results", "before": None, "after": 1},
    ]
    assert '+  "connector": "titles"' in head["diff"][0]["diff"]
    files, trial = sorted(
        (each for each in found if each["type"] == "answer"), key=lambda each: each["column"]
    )
    assert (files["content"][:9], trial["content"]) == ("Two teas ", "A title")
    assert [each["marker"] for each in files["citations"]]
    assert files["blocks"][0]["type"] == "p"
    assert len(files["ranking"]) == 1
    assert [each["role"] for each in files["prompt"]][-1] == "user"
    assert files["timings"]["total"] > 0
    (moved,) = (each for each in found if each["type"] == "moves")
    assert {each["move"] for each in moved["moves"]} <= {0, "new", "gone"}
    assert found[-1]["type"] == "summary"


def test_a_turn_has_a_trial_in_its_options(one_process: Served) -> None:
    body = {"assistant": "tea", "messages": [{"role": "user", "content": "all teas"}]}
    with one_process.client() as client:

        def answer(**options: Any) -> httpx.Response:
            return client.post(
                "/api/turns",
                json={**body, "options": options},
                headers={"accept": "application/json"},
            )

        assert answer(trial=TRIAL).json()["content"] == "A title"
        assert answer().json()["content"].startswith("Two teas")
        wrong = answer(trial={"HTTP": ["*"]})
        assert (wrong.status_code, wrong.json()["code"]) == (400, "usage")


def test_answers_that_are_streamed_come_in_pieces_and_then_whole(one_process: Served) -> None:
    with one_process.client() as client:
        found = ask(client, stream=True)
    answers = {each["column"]: each for each in found if each["type"] == "answer"}
    for column in (0, 1):
        pieces = [each for each in found if each["type"] == "text" and each["column"] == column]
        assert "".join(each["delta"] for each in pieces) == answers[column]["content"]
        assert found.index(pieces[0]) < found.index(answers[column])


def test_a_list_of_questions_is_compared_by_its_checks(one_process: Served) -> None:
    questions = [
        {"question": "all teas", "phrases": ["Two teas"]},
        {"question": "a title?", "phrases": ["A title"]},
        {"question": "anything"},
    ]
    with one_process.client() as client:
        found = ask(client, questions=questions)
    summary = found[-1]
    assert summary["changes"] == {"0": "worse", "1": "better"}
    assert summary["p"] == 1.0
    assert {each["name"]: each["values"] for each in summary["measures"]}["score"] == [0.5, 0.5]
    answers = [each for each in found if each["type"] == "answer"]
    assert len(answers) == 6
    assert all("prompt" not in each for each in answers)


def test_a_failure_is_shown_in_its_column(one_process: Served) -> None:
    with one_process.client() as client:
        found = ask(client, trial={"connector": "fails"})
    (files, trial) = (
        next(each for each in found if each.get("column") == column and each["type"] == "answer")
        for column in (0, 1)
    )
    assert files["errors"] == []
    assert trial["errors"][0]["code"] == "model_refused"
    with one_process.client() as client:
        unknown = ask(client, trial={"connector": "nothing"})
    (error,) = (
        each["errors"][0] for each in unknown if each.get("column") == 1 and "errors" in each
    )
    assert "no connector 'nothing'" in error["message"]


def test_without_questions_there_is_the_diff_alone(one_process: Served) -> None:
    with one_process.client() as client:
        (head,) = ask(client, questions=[], trial={"prompts": "Be short."})
    assert head["prompts"] is True
    assert head["diff"][0]["file"] == "prompts.yml"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"trial": {"serch": {}}}, "unknown key 'serch'"),
        ({"trial": {"http": ["*"]}}, "'http' cannot be set by a trial"),
        ({"questions": [{"question": "x", "identity": {"user_id": "eve"}}]}, "identity"),
        ({"questions": [{"question": "x", "assistant": "late"}]}, "a trial is of 'tea' alone"),
        ({"questions": [{"question": "x"}] * 51}, "questions"),
        ({"questions": [{"question": ""}]}, "question"),
        ({"qestions": []}, "unknown key"),
    ],
)
def test_a_wrong_request_says_what_is_wrong(
    one_process: Served, body: dict[str, Any], said: str
) -> None:
    with one_process.client() as client:
        answer = client.post("/api/trials", json={"assistant": "tea", "trial": {}, **body})
    assert answer.status_code == 400
    assert said in answer.json()["detail"]


def test_turns_of_a_trial_count_as_turns(serve: Serve) -> None:
    with serve(limits={"turns_per_minute": 2}) as served, served.client() as client:
        assert ask(client)[-1]["type"] == "summary"
        body = {"assistant": "tea", "trial": TRIAL, "questions": [{"question": "all teas"}]}
        with client.stream("POST", "/api/trials", json=body) as answer:
            said = (json.loads(line) for line in answer.iter_lines())
            waits = next(each for each in said if each["type"] == "waiting")
    assert waits["reason"] == "2 turns a minute are allowed"


ROW = {"question": "all teas", "sources": ["tea"]}


def test_a_test_is_shown_before_it_is_written(serve: Serve) -> None:
    with serve(author_writes=True) as served, served.client() as client:
        path = Path(served.app, "assistants/tea/tests/workbench.suite.jsonl")
        shown = client.post("/api/assistants/tea/tests", json={"row": ROW}).json()
        assert shown["file"] == "assistants/tea/tests/workbench.suite.jsonl"
        assert json.loads(shown["line"]) == ROW
        assert (shown["written"], shown["may_write"], path.exists()) == (False, True, False)
        body = {"row": ROW, "write": True}
        assert client.post("/api/assistants/tea/tests", json=body).json()["written"]
        assert [row.question for row in read_suite(path, "s").rows] == ["all teas"]
        again = client.post("/api/assistants/tea/tests", json=body)
        assert (again.status_code, "has this question" in again.text) == (400, True)
        proxied = client.post(
            "/api/assistants/tea/tests", json=body, headers={"x-forwarded-for": "192.0.2.1"}
        )
        assert proxied.status_code == 403
