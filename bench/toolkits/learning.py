"""Learning resources: whether the right section is found, beside the engine alone.

The sample's 60 sections in three languages, 33 intents in five; every second one is in another
language than its section. Half of them are kept aside: what can be chosen is chosen by the others.
The same again with the intent put into the language of its section: translations of our own stand
for those of a language model. Ten intents that say nothing ("help") have outcomes instead, with the
section of each.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.figures import figure
from groundhook import Host, open_host
from groundhook.plugins import Delta, Finished, ModelCall, TextDelta

REPOSITORY = Path(__file__).parents[2]
INTENTS = Path(__file__).with_name("learning_intents.jsonl")
VAGUE = Path(__file__).with_name("learning_vague.jsonl")
IDENTITY = {"tenant_id": "north-college"}
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
            alone = [await _by_search(host, case["intent"]) for case in cases]
        _have_written(root)
        writer = _Writer({case["intent"]: case.get("translation", "") for case in cases})
        async with open_host(root, environment={}, connectors={"writer": writer}) as host:
            translated = [await _by_tool(host, case["intent"]) for case in cases]
    _show(cases, by_tool, "", alone, "host.search of the intent")
    _show(cases, translated, ", translated", by_tool, "not translated")
    figure("searchResources, mean", took / len(cases) * 1000, "ms")


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
    course = {"courseId": "c", "title": title, "outcomes": list(outcomes)}
    outcome = await host.tool(
        "learning.searchResources",
        {"userIntent": intent, "courseContext": course},
        identity=IDENTITY,
    )
    return [each["id"] for each in outcome.result["resources"]]


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
