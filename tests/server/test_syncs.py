"""Syncs over HTTP: a keeper of collections begins one, and reads its state."""

from __future__ import annotations

from tests.parts.kept_collections import kept  # noqa: F401 - a fixture
from tests.server.conftest import Served, lines

PRIVATE = "agents.late.private"


def test_a_toolkit_is_synced_with_progress_and_its_state_is_told(kept: Served) -> None:  # noqa: F811
    with kept.client() as client:
        before = {each["toolkit"]: each for each in client.get("/api/syncs").json()["syncs"]}
        assert (before[PRIVATE]["records"], before[PRIVATE]["succeeded_at"]) == (0, "")
        answer = client.post(f"/api/syncs/{PRIVATE}")
        assert answer.status_code == 200, answer.text
        *progress, done = lines(answer)
        assert [(each["done"], each["total"]) for each in progress] == [(1, 1)]
        assert (done["type"], done["added"], done["noun"]) == ("done", 1, "memories")
        after = {each["toolkit"]: each for each in client.get("/api/syncs").json()["syncs"]}
        state = after[PRIVATE]
        assert (state["records"], state["running"], state["error"]) == (1, False, "")
        assert state["succeeded_at"]


def test_a_sync_that_fails_says_so_and_keeps_the_reason(kept: Served) -> None:  # noqa: F811
    failing = "agents.late.lost"
    with kept.client() as client:
        (error,) = lines(client.post(f"/api/syncs/{failing}"))
        assert error["type"] == "error"
        states = {each["toolkit"]: each for each in client.get("/api/syncs").json()["syncs"]}
    assert states[failing]["failed_at"]
    assert states[failing]["error"]
    assert str(kept.app) not in str(states)
