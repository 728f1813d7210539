"""Learning resources: whether the right section is found, compared with the engine alone.

The sample's 60 sections in three languages, 33 intents in five; every second one is in another
language than its section. Half of them are kept aside: what can be chosen is chosen by the others.
The same again with the intent put into the language of its section: translations of our own stand
for those of a language model. Ten intents that say nothing ("help") have outcomes instead, with the
section of each. Words that mean nothing find sections too: counted are those of which the answer
says nothing. The search of five queries stands beside that of one, with their vectors cached, and
with new queries.
"""

from __future__ import annotations

import json
import shutil
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.figures import figure
from bench.toolkits.catalogue import nonsense
from groundhook import Host, ToolOutcome, open_host
from groundhook.plugins import Delta, Finished, ModelCall, TextDelta
from groundhook.toolkits.learning.search import NOT_CLOSE

REPOSITORY = Path(__file__).parents[2]
INTENTS = Path(__file__).with_name("learning_intents.jsonl")
VAGUE = Path(__file__).with_name("learning_vague.jsonl")
IDENTITY = {"tenant_id": "north-college"}
NONSENSE = 60
COLLECTIONS = ["agents.learning.library", "agents.learning.institution"]


async def measure(_: Path | None) -> None:
    """Print the figures of learning resources."""
    cases = [json.loads(line) for line in INTENTS.read_text(encoding="utf-8").splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        shutil.copytree(REPOSITORY / "agent", root / "agent")
        shutil.copytree(REPOSITORY / "assistants/learning", root / "assistants/learning")
        async with open_host(root, environment={}) as host:
            await host.syncs.run("learning")
            began = time.perf_counter()
            by_tool = [await _by_tool(host, case["intent"]) for case in cases]
            took = time.perf_counter() - began
            await _show_vague(host)
            await _show_cautions(host, [case for case in cases if not case["aside"]])
            alone = [await _by_search(host, case["intent"]) for case in cases]
        _have_written(root)
        writer = _Writer({case["intent"]: case.get("translation", "") for case in cases})
        async with open_host(root, environment={}, connectors={"writer": writer}) as host:
            translated = [await _by_tool(host, case["intent"]) for case in cases]
        speeds = await _speeds(root, [case["intent"] for case in cases])
    _show(cases, by_tool, "", alone, "host.search of the intent")
    _show(cases, translated, ", translated", by_tool, "not translated")
    figure("searchResources, mean", took / len(cases) * 1000, "ms")
    for about, five, one in speeds:
        figure(f"searchResources of five queries{about}, p50", five, "ms", one, "of one query")


def _show(
    cases: Sequence[Mapping[str, Any]],
    by_tool: Sequence[Sequence[str]],
    how: str,
    floor: Sequence[Sequence[str]],
    floor_is: str,
) -> None:
    for aside, about in ((False, ""), (True, " kept aside")):
        some = [place for place, case in enumerate(cases) if case["aside"] is aside]
        for most, name in ((1, "first"), (3, "in the first three")):
            found, least = (
                sum(cases[place]["section"] in every[place][:most] for place in some)
                for every in (by_tool, floor)
            )
            what = f"right section {name}, of {len(some)} intents{about}{how}"
            figure(what, found, "", least, floor_is)


async def _show_vague(host: Host) -> None:
    cases = [json.loads(line) for line in VAGUE.read_text(encoding="utf-8").splitlines()]
    for aside, about in ((False, ""), (True, " kept aside")):
        some = [case for case in cases if case["aside"] is aside]
        found = [
            await _by_tool(host, case["intent"], title=case["course"], outcomes=case["outcomes"])
            for case in some
        ]
        pairs = [(case["sections"], ids[:5]) for case, ids in zip(some, found, strict=True)]
        count = sum(len(own) for own, _ in pairs)
        figure(
            f"sections of outcomes in the first five, of {count}{about}",
            sum(section in ids for own, ids in pairs for section in own),
            "",
        )


async def _show_cautions(host: Host, cases: Sequence[Mapping[str, Any]]) -> None:
    """Answers that say that nothing is very similar to the intent: of right ones too many would be
    wrong, of nonsense too few."""

    async def is_cautious(intent: str) -> bool:
        return NOT_CLOSE in (await _answer(host, intent)).text

    of_right = [await is_cautious(case["intent"]) for case in cases]
    figure(f"answers with a caution, of {len(cases)} intents", sum(of_right), "")
    of_nonsense = [await is_cautious(intent) for intent in nonsense(NONSENSE)]
    without = NONSENSE - sum(of_nonsense)
    figure(f"answers without a caution, of {NONSENSE} intents of nonsense", without, "")


async def _speeds(root: Path, intents: Sequence[str]) -> list[tuple[str, float, float]]:
    """Return for embedded and new queries the milliseconds of a call with five and with one."""
    file = root / "assistants/learning/toolkits/learning.toolkit.yao"
    text = file.read_text(encoding="utf-8")
    (file.parent / "one.toolkit.yao").write_text(
        text.replace('"queries": {', '"queries": { "most": 1,'), encoding="utf-8"
    )
    speeds = []
    connectors = {"writer": _Five()}
    async with open_host(root, environment={}, connectors=connectors) as host:
        for about in (", never embedded before", ""):
            took: dict[str, list[float]] = {"learning": [], "one": []}
            for intent in intents:
                for toolkit, each in took.items():
                    began = time.perf_counter()
                    # New words for each toolkit, of which the other has embedded nothing.
                    await _answer(host, f"{intent} {toolkit}", toolkit=toolkit)
                    each.append((time.perf_counter() - began) * 1000)
            five, one = (statistics.median(each) for each in took.values())
            speeds.append((about, five, one))
    return speeds


class _Five:
    """A model that writes four queries beside an intent."""

    @asynccontextmanager
    async def stream(self, call: ModelCall, /) -> AsyncIterator[AsyncIterator[Delta]]:
        yield self._deltas(json.loads(call.messages[-1].text)["intent"])

    async def _deltas(self, intent: str) -> AsyncIterator[Delta]:
        queries = [f"{intent} {how}" for how in ("explained", "examples", "exercises", "history")]
        yield TextDelta(json.dumps({"queries": queries, "translations": []}))
        yield Finished("stop")


@dataclass(frozen=True)
class _Writer:
    """A model that translates the intents that it knows, and writes no other query."""

    translations: Mapping[str, str]

    @asynccontextmanager
    async def stream(self, call: ModelCall, /) -> AsyncIterator[AsyncIterator[Delta]]:
        yield self._deltas(json.loads(call.messages[-1].text)["intent"])

    async def _deltas(self, intent: str) -> AsyncIterator[Delta]:
        # Without a translation the intent itself: the answer must have a query.
        written = {"queries": [], "translations": [self.translations[intent] or intent]}
        yield TextDelta(json.dumps(written))
        yield Finished("stop")


def _have_written(root: Path) -> None:
    """Change the toolkit: its queries are those of the writer."""
    file = root / "assistants/learning/toolkits/learning.toolkit.yao"
    settings = '"queries": { "by": "connector:writer",'
    text = file.read_text(encoding="utf-8").replace('"queries": { "by": "builtin",', settings)
    assert settings in text
    file.write_text(text, encoding="utf-8")


async def _by_tool(
    host: Host, intent: str, *, title: str = "Introduction", outcomes: Sequence[str] = ()
) -> list[str]:
    outcome = await _answer(host, intent, title=title, outcomes=outcomes)
    return [each["id"] for each in outcome.result["resources"]]


async def _answer(
    host: Host,
    intent: str,
    *,
    toolkit: str = "learning",
    title: str = "Introduction",
    outcomes: Sequence[str] = (),
) -> ToolOutcome:
    course = {"courseId": "c", "title": title, "outcomes": list(outcomes)}
    outcome = await host.tool(
        f"{toolkit}.searchResources",
        {"userIntent": intent, "courseContext": course},
        identity=IDENTITY,
    )
    assert outcome.error is None, outcome.error
    assert not outcome.warnings, outcome.warnings
    return outcome


async def _by_search(host: Host, intent: str) -> list[str]:
    request = {
        "type": "kb",
        "query": intent,
        "collections": COLLECTIONS,
        "threshold": 0,
        "groups": 1,
    }
    found = await host.search(request, identity=IDENTITY)
    return [item.document_id.rpartition("#")[2] for item in found.items]
