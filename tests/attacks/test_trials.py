"""Attacks on trials: authors who reach for what their key, or the assistant, may not have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.server.conftest import OTHER, READER, Serve, serve  # noqa: F401 - a fixture

ROW = {"question": "all teas", "sources": ["tea"]}
REACHING: tuple[dict[str, Any], ...] = (
    {"kb": {"collections": ["agents.other.secret"]}},
    {"search": {"kb": {"collections": ["agents.other.secret"]}}},
    {"search": {"db": {"models": ["tea", "agents.other.secret"]}}},
    {"search": {"web": {"host": "http://169.254.169.254"}}},
    {"search": {"web": {"pages": {"hosts": ["127.0.0.1"]}}}},
    {"search": {"rerank": {"type": "model", "apiKeyEnv": "HOME", "host": "http://127.0.0.1"}}},
    {"mcp": {"servers": ["shell"]}},
    {"HTTP": ["*"]},
    {"hooks": {"limits": {"heap_mb": 100_000}}},
    {"prompts": "My key is $ENV.HOME"},
)


def test_readers_and_keys_of_other_assistants_try_nothing(serve: Serve) -> None:  # noqa: F811
    scopes = ["chat", "author"]
    keys = [
        {"name": "reader", "key": READER, "user": "reader", "scopes": ["chat"]},
        {"name": "narrow", "key": OTHER, "user": "b", "scopes": scopes, "assistants": ["tea"]},
    ]
    body: dict[str, Any] = {"assistant": "tea", "trial": {}, "questions": []}
    row = {"row": {"question": "x", "phrases": ["y"]}}
    with serve(auth={"keys": keys}) as served:
        with served.client(READER) as client:
            assert client.post("/api/trials", json=body).status_code == 403
            assert client.post("/api/assistants/tea/tests", json=row).status_code == 403
            asked = [{"role": "user", "content": "all teas"}]
            turn = {"assistant": "tea", "messages": asked, "options": {"trial": {"name": "x"}}}
            assert client.post("/api/turns", json=turn).status_code == 403
            script = {"file": "index.ts", "line": "1"}
            assert client.get("/api/assistants/talks/scripts", params=script).status_code == 403
        with served.client(OTHER) as client:
            assert client.post("/api/trials", json=body).status_code == 200
            for path, sent in (
                ("/api/trials", {**body, "assistant": "late"}),
                ("/api/trials", {**body, "trial": {"uses": {"rerank": "late"}}}),
                ("/api/trials", {**body, "trial": {"search": {"rerank": {"agent": "late"}}}}),
                ("/api/assistants/late/tests", row),
                ("/api/assistants/..%2F..%2Fagent/tests", row),
            ):
                assert client.post(path, json=sent).status_code == 404, sent
            assert client.get("/api/assistants/talks/scripts", params=script).status_code == 404


def test_no_file_but_a_script_of_the_assistant_is_shown(serve: Serve) -> None:  # noqa: F811
    outside = (
        "../fails/package.yao",
        "../../agent/agent.yml",
        "package.yao",
        "/etc/passwd",
        "src/../../talks/index.ts",
        "out.ts",
        "",
    )
    with serve() as served, served.client() as client:
        elsewhere = served.app.parent / "elsewhere.ts"
        elsewhere.write_text("secret", encoding="utf-8")
        (served.app / "assistants/talks/out.ts").symlink_to(elsewhere)
        for file in outside:
            params = {"file": file, "line": "1"}
            answer = client.get("/api/assistants/talks/scripts", params=params)
            assert (answer.status_code, "secret" in answer.text) == (404, False), file
        for line in ("", "-1", "1e9", "9" * 30):
            params = {"file": "index.ts", "line": line}
            assert client.get("/api/assistants/talks/scripts", params=params).status_code == 400
        shown = client.get("/api/assistants/talks/scripts?file=index.ts&line=99999").json()
        assert "function Create" in "".join(shown["lines"])


def test_a_trial_reaches_for_nothing_that_the_files_do_not_name(serve: Serve) -> None:  # noqa: F811
    with serve() as served, served.client() as client:
        for trial in REACHING:
            body = {"assistant": "tea", "trial": trial, "questions": [{"question": "all teas"}]}
            answer = client.post("/api/trials", json=body)
            assert answer.status_code == 400, (trial, answer.text)
            assert served.app.parent.as_posix() not in answer.text


def test_no_test_is_written_unless_the_server_allows_it(serve: Serve) -> None:  # noqa: F811
    with serve() as served, served.client() as client:
        shown = client.post("/api/assistants/tea/tests", json={"row": ROW}).json()
        assert shown["may_write"] is False
        refused = client.post("/api/assistants/tea/tests", json={"row": ROW, "write": True})
        assert (refused.status_code, "author_writes" in refused.json()["detail"]) == (403, True)
        empty = client.post("/api/assistants/tea/tests", json={"row": {"question": "x"}})
        assert empty.status_code == 400
        assert not Path(served.app, "assistants/tea/tests").exists()
