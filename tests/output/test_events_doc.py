"""docs/events.md says what the models say."""

from __future__ import annotations

from pathlib import Path

from scripts.events_doc import DOCUMENT, document

ROOT = Path(__file__).parents[2]


def test_the_committed_document_is_what_the_models_give() -> None:
    assert (ROOT / DOCUMENT).read_text(encoding="utf-8") == document(), "run `make docs`"


def test_every_field_of_an_event_is_in_the_document() -> None:
    text = document()
    for name in (
        "stream_start",
        "search_result",
        "citation",
        "`call_id`",
        "`finish_reason`",
        "`duration_ms`",
    ):
        assert name in text
