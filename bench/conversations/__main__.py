"""Measure whether a follow-up finds the passage that answers it, and whether a self-contained
question is not changed, by the built-in rules (`host.turn.follow_up`).

    python -m bench.conversations [--show]

`follow_ups.tsv` and `kept_aside.tsv` have a follow-up on each line: what answers it (a key of
`sections.tsv`, or `shop`), the question before, the follow-up, and the perfect question. The rules
were tuned with the first file; do not tune them to the second. `sections.tsv` has the sections that
a reader accepts as the answer, one on each line: some answers are in two places. `independent.txt`
has questions that only look like follow-ups: each is sent after ten others and must stay as it is.

A follow-up about this repository's documents is right if a passage of such a section is among the
first three; one about the shop if the search finds the records that the perfect question finds, of
which there must be some. The floor is the follow-up as it is written, the ceiling the perfect
question. Standard error has each language. `--show` adds what went wrong, but not of the questions
kept aside.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import anyio

from bench.answers import APP, COLLECTION, DOCUMENTS, ROOT
from bench.figures import figure
from groundhook import Host, open_host
from groundhook.core.types.search import SearchResult
from groundhook.host.turn.follow_up import stand_alone

HERE = Path(__file__).parent
SHOP = "shop"
NOW = datetime(2026, 3, 1, tzinfo=UTC)
FIRST = 3
SETS = {"tuned": "follow_ups.tsv", "kept aside": "kept_aside.tsv"}


@dataclass(frozen=True)
class FollowUp:
    place: str
    before: str
    question: str
    perfect: str

    @property
    def language(self) -> str:
        text = self.before + self.question
        for name, first, last in (("he", "א", "ת"), ("ar", "ء", "ي"), ("zh", "一", "龥")):
            if any(first <= character <= last for character in text):
                return name
        return "shop" if self.place == SHOP else "european"


def rows(name: str) -> list[list[str]]:
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines]


def sections() -> dict[str, set[tuple[str, str]]]:
    """Return the document and the heading of each section that answers a key."""
    found: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for key, document, section in rows("sections.tsv"):
        found[key].add((document, section))
    return dict(found)


async def search(host: Host, place: str, question: str) -> SearchResult:
    if place == SHOP:
        return await host.search({"type": "db", "query": question}, assistant="shop")
    request = {"type": "kb", "query": question, "collections": ["docs"]}
    return await host.search(request, assistant="docs")


async def is_right(host: Host, follow_up: FollowUp, question: str) -> bool:
    found = await search(host, follow_up.place, question)
    if follow_up.place == SHOP:
        wanted = await search(host, SHOP, follow_up.perfect)
        records = [item.key for item in wanted.items]
        if not records:
            raise SystemExit(f"the shop has no {follow_up.perfect!r}: correct the question")
        return records == [item.key for item in found.items]
    places = {(item.document_id, item.title.split(" › ")[-1]) for item in found.items[:FIRST]}
    return bool(places & sections()[follow_up.place])


async def measure(host: Host, name: str, follow_ups: Sequence[FollowUp], *, show: bool) -> None:
    right: dict[str, list[bool]] = defaultdict(list)
    languages: dict[str, list[bool]] = defaultdict(list)
    changed = 0
    for follow_up in follow_ups:
        rewritten = stand_alone(follow_up.question, [follow_up.before]).question
        changed += rewritten != follow_up.question
        tried = {
            "written": follow_up.question,
            "rewritten": rewritten,
            "perfect": follow_up.perfect,
        }
        for how, question in tried.items():
            right[how].append(await is_right(host, follow_up, question))
        languages[follow_up.language].append(right["rewritten"][-1])
        if show and not right["rewritten"][-1]:
            verdict = "perfect finds it" if right["perfect"][-1] else "perfect does not find it"
            print(f"{follow_up.place}: {rewritten} [{verdict}]", file=sys.stderr)
    share = {how: 100 * sum(values) / len(values) for how, values in right.items()}
    figure(f"{name}: follow-ups, rewritten", share["rewritten"], "%", share["written"], "unchanged")
    figure(f"{name}: perfect questions", share["perfect"], "%")
    possible = [a for a, b in zip(right["rewritten"], right["perfect"], strict=True) if b]
    figure(
        f"{name}: follow-ups, of those whose perfect question is right",
        100 * sum(possible) / len(possible),
        "%",
    )
    figure(f"{name}: follow-ups recognised", 100 * changed / len(follow_ups), "%")
    for language, values in languages.items():
        print(f"{name}, {language}: {sum(values)} of {len(values)}", file=sys.stderr)


def independent(before: Sequence[str], *, show: bool) -> None:
    questions = (HERE / "independent.txt").read_text(encoding="utf-8").splitlines()
    changed = [
        question for question in questions if stand_alone(question, before).question != question
    ]
    figure("questions that stand alone, changed", 100 * len(changed) / len(questions), "%")
    for question in changed if show else ():
        print(f"changed: {stand_alone(question, before)}", file=sys.stderr)


async def main(*, show: bool) -> None:
    sets = {name: [FollowUp(*row) for row in rows(file)] for name, file in SETS.items()}
    independent([follow_up.before for follow_up in sets["tuned"][:10]], show=show)
    with tempfile.TemporaryDirectory(prefix="groundhook-bench-") as folder:
        for name in (*APP, "assistants/shop"):
            target = Path(folder, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, target)
            else:
                shutil.copy(ROOT / name, target)
        async with open_host(folder, environment={}, now=NOW) as host:
            added = await host.kb.add(COLLECTION, [Path(folder, name) for name in DOCUMENTS])
            if added.failed:
                raise SystemExit(f"some documents could not be added: {added.failed}")
            await host.database.load()
            for name, follow_ups in sets.items():
                await measure(host, name, follow_ups, show=show and name == "tuned")


if __name__ == "__main__":
    anyio.run(lambda: main(show="--show" in sys.argv))
