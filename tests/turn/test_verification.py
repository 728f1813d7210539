"""A model says whether the sources of an answer support its sentences: through the public door."""

from __future__ import annotations

import io
from typing import Any

import anyio
import pytest

from groundhook import open_host
from groundhook.core.errors import ModelUnreachable
from groundhook.core.types.events import Trace, VerifiedSentence
from groundhook.host.output.dialects.kept import events_of, kept
from groundhook.host.output.dialects.openai_chat import judgement
from groundhook.host.output.terminal import Terminal, console
from groundhook.host.testing.canned import CannedSource, canned_item
from tests.conftest import MakeApp
from tests.parts.turns import app_with, end, of, scripted
from tests.parts.verifying import (
    ANSWER,
    POLICY,
    SUPPORTED,
    TEA,
    Verifier,
    judged,
    package,
    reads,
    sources,
    step,
    verdicts,
    verified,
)

# ----------------------------------------------------------------------------------------- verdicts


async def test_each_sentence_that_cites_is_judged_against_its_own_sources(
    make_app: MakeApp,
) -> None:
    verifier = Verifier()
    events = await verified(make_app, verifier)
    assert judged(events) == {
        "Passwords": [
            VerifiedSentence(
                sentence="Passwords change after a leak.", supported=True, quote=SUPPORTED
            ),
            VerifiedSentence(sentence="They have twelve signs.", supported=False),
        ],
        "Tea": [VerifiedSentence(sentence="Tea is calm.", supported=False)],
    }
    claims = end(events).claims
    assert (claims.cited, claims.verified, claims.unsupported) == (3, 1, 2)
    assert (claims.supported, claims.doubtful) == (1, 2)
    assert step(events) == {"sentences": 3, "requests": 2, "verified": 1, "unsupported": 2}
    first, second = sorted(verifier.requests, key=lambda each: len(each["sentences"]), reverse=True)
    assert [each["text"] for each in first["sources"]] == [POLICY]
    assert [each["text"] for each in second["sources"]] == [TEA]
    assert first["question"] == "How do I change it?"
    assert first["sentences"][1]["before"].startswith("Passwords change")
    assert "verify" in end(events).timings
    assert of(events, "warning") == []


async def test_an_answer_without_citations_asks_nobody(make_app: MakeApp) -> None:
    verifier = Verifier()
    events = await verified(make_app, verifier, "I do not know.")
    assert verifier.requests == []
    assert end(events).claims.verified == 0


async def test_an_assistant_verifies_with_a_hook(make_app: MakeApp) -> None:
    hook = """
    function Next(ctx, payload) {
      const asked = JSON.parse(payload.messages[payload.messages.length - 1].content);
      return { data: { verdicts: asked.sentences.map(
        (each) => ({ id: each.id, supported: false })) } };
    }
    """
    app = make_app(
        {
            "assistants/a/package.yao": package("careful"),
            "assistants/careful/package.yao": '{"name": "Careful"}',
            "assistants/careful/index.ts": hook,
            "kb/docs.kb.yao": '{"name": "Docs"}',
        }
    )
    kb = CannedSource({"*": sources()})
    models = {"script": scripted(ANSWER)}
    with anyio.fail_after(60):
        async with (
            open_host(app, environment={}, sources={"kb": kb}, connectors=models) as host,
            host.stream("a", "How?") as stream,
        ):
            events = [event async for event in stream]
    assert end(events).claims.unsupported == 3


# --------------------------------------------------------------------------------------- when, what


async def test_an_answer_streams_before_it_is_verified(make_app: MakeApp) -> None:
    verifier = Verifier()
    seen: list[str] = []

    def judge(request: dict[str, Any]) -> Any:
        seen.append("asked")
        return reads(request)

    verifier.judge = judge
    app = app_with(make_app, package("connector:judge"))
    kb = CannedSource({"*": sources()})
    models: Any = {"script": scripted(ANSWER), "judge": verifier}
    with anyio.fail_after(60):
        async with (
            open_host(app, environment={}, sources={"kb": kb}, connectors=models) as host,
            host.stream("a", "How?") as events,
        ):
            async for event in events:
                seen.append(event.type)
    assert seen.index("text") < seen.index("asked") < seen.index("stream_end")


async def test_an_answer_is_shown_once_it_is_verified(make_app: MakeApp) -> None:
    plain = await verified(make_app, Verifier())
    events = await verified(make_app, Verifier(), when="before")
    assert end(events).content == end(plain).content
    assert "".join(each.delta for each in of(events, "text")) == end(events).content
    types = [event.type for event in events]
    nodes = [
        n for n, each in enumerate(events) if isinstance(each, Trace) and each.node.type == "verify"
    ]
    assert nodes[-1] < min(types.index("citation"), types.index("text"))
    [first, *_] = of(events, "citation")
    assert [each.supported for each in first.verified] == [True, False]


@pytest.mark.parametrize("when", ["after", "before"])
@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(ModelUnreachable("nobody there"), id="down"),
        pytest.param("I cannot say.", id="no-json"),
        pytest.param({"verdicts": [{"id": 7, "supported": "yes"}]}, id="wrong-types"),
        pytest.param(None, id="late"),
    ],
)
async def test_a_verifier_that_fails_costs_a_warning_and_no_turn(
    make_app: MakeApp, answer: Any, when: str
) -> None:
    timeout_ms = 50 if answer is None else 60_000
    verifier = Verifier(lambda _: answer)
    events = await verified(make_app, verifier, when=when, timeout_ms=timeout_ms)
    [warning] = of(events, "warning")
    assert "verify by 'connector:judge' failed" in warning.message
    assert "sentences not verified: 3" in warning.message
    assert of(events, "error") == []
    last = end(events)
    assert "".join(each.delta for each in of(events, "text")) == last.content != ""
    assert (last.claims.verified, last.claims.unsupported, last.claims.supported) == (0, 0, 3)


async def test_requests_are_bounded_however_long_the_answer_is(make_app: MakeApp) -> None:
    verifier = Verifier()
    answer = "\n".join("Tea is calm {ref:1}." for _ in range(60))
    events = await verified(make_app, verifier, answer, max_sentences=25)
    assert sorted(len(each["sentences"]) for each in verifier.requests) == [5, 10, 10]
    assert end(events).claims.unsupported == 25


# -------------------------------------------------------------------------------------- what counts


async def test_a_quote_is_found_without_its_markup_and_case(make_app: MakeApp) -> None:
    quote = "“passwords are **changed**  after a Leak”"
    events = await verified(
        make_app, Verifier(lambda request: verdicts(request, (True, quote), (False, "")))
    )
    assert end(events).claims.verified == 1


async def test_of_two_verdicts_on_a_sentence_the_negative_one_counts(make_app: MakeApp) -> None:
    def both(request: dict[str, Any]) -> Any:
        yes = verdicts(request, (True, SUPPORTED))["verdicts"]
        return {"verdicts": yes + verdicts(request, (False, ""))["verdicts"]}

    events = await verified(make_app, Verifier(both))
    assert end(events).claims.verified == 0
    assert end(events).claims.unsupported == 2  # one of each request


async def test_a_source_that_the_verifier_did_not_get_whole_is_never_found_wanting(
    make_app: MakeApp,
) -> None:
    long = canned_item("long", score=0.9, content="Tea. " * 5000, title="Long")
    verifier = Verifier(lambda request: verdicts(request, (False, "")))
    events = await verified(make_app, verifier, "Tea is calm {ref:0}.", items=(long,))
    assert end(events).claims.unsupported == 0
    assert len(verifier.requests[0]["sources"][0]["text"]) == 12_000


# ------------------------------------------------------------------------------------------- readers


async def test_readers_of_every_kind_are_told(make_app: MakeApp) -> None:
    events = await verified(make_app, Verifier())
    assert judgement(end(events), None)["unsupported"] == [
        "They have twelve signs.",
        "Tea is calm.",
    ]
    assert end(list(events_of(kept(events)))).citations == end(events).citations
    out, err = io.StringIO(), io.StringIO()
    terminal = Terminal(console(out), console(err))
    for event in events:
        terminal.show(event)
    assert "does not say: They have twelve signs." in out.getvalue()
