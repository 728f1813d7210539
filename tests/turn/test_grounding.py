"""What a turn shows of the model's end: whether the answer is grounded, cut, or failed."""

from __future__ import annotations

from typing import Any

import pytest

from groundhook.core.errors import SourceError
from groundhook.host.testing.canned import CannedSource, canned_item
from groundhook.host.turn.answer import MOST_MARKERS
from tests.conftest import MakeApp
from tests.parts.turns import ASSISTANT, app_with, end, of, run, scripted

DOWN = CannedSource({"*": SourceError("down: password 1234 at /srv/app")})
NOTHING = {"kb": CannedSource({"*": ()}), "web": CannedSource({"*": ()})}
BROKEN = {"kb": DOWN, "web": DOWN}
HALF = {"kb": NOTHING["kb"], "web": DOWN}


@pytest.mark.parametrize(
    ("script", "sources", "grounded"),
    [
        ("As {ref:0} has it.", None, True),
        ("I know it without.", None, False),
        ("Made up #ref:zz99.", None, False),
        ("I know it without.", NOTHING, None),
        ("", None, None),
        ({"text": "Half", "cut": True}, None, None),
    ],
)
async def test_an_answer_that_cites_none_of_its_sources_is_not_grounded(
    make_app: MakeApp, script: Any, sources: Any, grounded: bool | None
) -> None:
    events = await run(app_with(make_app), script=[script], sources=sources)
    assert end(events).grounded is grounded


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        (NOTHING, "found nothing;"),
        (HALF, "found nothing, and a part of the search failed"),
        (BROKEN, "sources on this message failed"),
    ],
)
async def test_the_model_learns_that_nothing_was_found(
    make_app: MakeApp, sources: Any, message: str
) -> None:
    model = scripted("ok")
    await run(app_with(make_app), connector=model, sources=sources)
    text = model.calls[0].messages[-1].text
    assert message in text
    assert text.endswith("\n\nquestion")
    await run(app_with(make_app), connector=(other := scripted("ok")), search=False)
    assert other.calls[0].messages[-1].text == "question"


@pytest.mark.parametrize(
    ("sources", "said"),
    [
        (NOTHING, "I found nothing that answers this."),
        (HALF, "The search failed. Please try again later."),
        (BROKEN, "The search failed. Please try again later."),
        (
            {"kb": CannedSource({"*": (canned_item("k1"),)}), "web": DOWN},
            "A part of the search failed, so something may be missing.",
        ),
    ],
)
async def test_an_answer_without_a_language_model_says_that_a_search_failed(
    make_app: MakeApp, sources: Any, said: str
) -> None:
    package = ASSISTANT.replace('"script"', '"extractive"')
    content = end(await run(app_with(make_app, package), sources=sources)).content
    assert said in content
    assert ("failed" in content) == ("failed" in said)
    assert "1234" not in content
    assert "found nothing" not in content or sources is NOTHING


async def test_an_answer_that_is_cut_is_a_warning_and_no_failure(make_app: MakeApp) -> None:
    events = await run(app_with(make_app), script=[{"text": "So", "finish_reason": "length"}])
    assert end(events).finish_reason == "length"
    (warned,) = [event for event in of(events, "warning") if event.code == "answer_cut"]
    assert "options.max_tokens" in warned.hint
    assert not of(events, "error")


@pytest.mark.parametrize(
    ("reply", "status"),
    [("Fine.", "completed"), ({"error": {"code": "refused", "message": "no credit"}}, "failed")],
)
async def test_the_root_of_the_trace_failed_when_the_model_did(
    make_app: MakeApp, reply: Any, status: str
) -> None:
    events = await run(app_with(make_app), script=[reply])
    root = [event.node for event in of(events, "trace") if event.node.type == "turn"][-1]
    assert root.status == status
    assert ("no credit" in root.data.get("error", "")) == (status == "failed")


@pytest.mark.parametrize(
    "script",
    [
        'BEGIN SOURCES x\n<source id="{ref:0}" title="k1">\ntext\n</source>',
        "Cite each source that you use by its id, such as {ref:0}",
        "The marker is `{ref:0}`.",
        "```\n{ref:0}\n```",
    ],
)
async def test_an_echo_of_the_prompt_and_a_marker_in_code_ground_nothing(
    make_app: MakeApp, script: str
) -> None:
    last = end(await run(app_with(make_app), script=[script]))
    assert (last.grounded, last.citations) == (False, ())


async def test_a_result_that_was_dropped_before_the_prompt_grounds_nothing(
    make_app: MakeApp,
) -> None:
    items = tuple(canned_item(f"k{n}", content=f"Text {n}") for n in range(2))
    package = ASSISTANT.replace('"search": {', '"search": {"rerank": {"top_k": 1}, ', 1)
    sources: Any = {"kb": CannedSource({"*": items}), "web": CannedSource({"*": ()})}
    first = await run(app_with(make_app, package), script=["a"], sources=sources)
    markers = [event.item.citation_id for event in of(first, "search_result")]
    assert len(markers) == 2
    verdicts = []
    for marker in markers:
        last = end(await run(app_with(make_app, package), script=[marker], sources=sources))
        verdicts += [each.verdict for each in last.citations]
    assert sorted(verdicts) == ["ok", "unknown"]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("(ref:ID)", "(#ref:ID)"),
        ("[ID]", "#ref:ID"),
        ("#REF:ID", "#ref:ID"),
        ("#ref: ID.", "#ref:ID."),
        ("(#ref:ID, #ref:ID)", "(#ref:ID, #ref:ID)"),
        ("[ID, ID]", "#ref:ID#ref:ID"),
        ("[a page](ref:zz99) [zz99] [note]", ""),
        ("[ID](https://example.org)", ""),
    ],
)
async def test_a_near_miss_that_can_only_mean_one_source_is_read_as_its_marker(
    make_app: MakeApp, written: str, read: str
) -> None:
    first = await run(app_with(make_app), script=["a"])
    id = of(first, "search_result")[0].item.citation_id.removeprefix("#ref:")
    last = end(await run(app_with(make_app), script=[written.replace("ID", id.upper())]))
    assert last.content.lower() == (read or written).replace("ID", id).lower()
    assert [each.verdict for each in last.citations] == (["ok"] if read else [])


async def test_numbers_in_one_bracket_are_several_citations(make_app: MakeApp) -> None:
    package = ASSISTANT.replace(
        '"search": {', '"search": {"citation": {"format": "[{index}]"}, ', 1
    )
    last = end(await run(app_with(make_app, package), script=["As [1, 2] say, and [1, 77]."]))
    assert last.content == "As [1][2] say, and [1, 77]."
    assert [each.marker for each in last.citations] == ["[1]", "[2]"]


async def test_an_answer_has_so_many_different_markers_and_the_others_are_text(
    make_app: MakeApp,
) -> None:
    text = " ".join(f"#ref:zz{at}" for at in range(MOST_MARKERS + 20)) + " and #ref:zz1."
    events = await run(app_with(make_app), script=[text])
    seen = [event.marker for event in of(events, "citation")]
    assert seen == [*(f"#ref:zz{at}" for at in range(MOST_MARKERS)), "#ref:zz1"]
    assert end(events).content == text
