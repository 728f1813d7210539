"""Learning resources: whether the right section is found, beside the engine alone.

The sample's 60 sections in three languages, 33 intents in five; every second one is in another
language than its section. Half of them are kept aside: what can be chosen is chosen by the others.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from pathlib import Path

from bench.figures import figure
from groundhook import Host, open_host

REPOSITORY = Path(__file__).parents[2]
INTENTS = Path(__file__).with_name("learning_intents.jsonl")
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
            alone = [await _by_search(host, case["intent"]) for case in cases]
    for aside, about in ((False, ""), (True, " kept aside")):
        some = [place for place, case in enumerate(cases) if case["aside"] is aside]
        for most, name in ((1, "first"), (3, "in the first three")):
            found, floor = (
                sum(cases[place]["section"] in every[place][:most] for place in some)
                for every in (by_tool, alone)
            )
            what = f"right section {name}, of {len(some)} intents{about}"
            figure(what, found, "", floor, "host.search of the intent")
    figure("searchResources, mean", took / len(cases) * 1000, "ms")


async def _by_tool(host: Host, intent: str) -> list[str]:
    course = {"courseId": "c", "title": "Introduction", "outcomes": []}
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
