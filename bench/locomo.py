"""Memories of a long conversation: how many of the turns that a question needs are among the first
ones found (evidence recall), on LoCoMo.

    python -m bench.locomo FILE [--half tune|judge|all] [--misses]

FILE has the layout of `data/locomo10.json` of https://github.com/snap-research/locomo (CC BY-NC
4.0; it is not part of this repository). Each turn is a memory of a source file, as a user would
import it, with its speaker, its time and the caption of its picture, and each question is asked by
the tool `search`. Questions without an answer (category 5) or without evidence are omitted. The
halves are of each category, in the order of the file: what can be chosen is chosen by `tune`. The
floor is `host.search` over a collection with the same texts, one file a turn.

`--misses` prints what was not among the first ten, with what was.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import anyio

from bench.figures import figure
from bench.toolkits.conversations import (
    Conversation,
    ConversationQuestion,
    evidence_among,
    read,
    write_app,
)
from groundhook import Host, open_host
from groundhook.memory import Memory

FIRST = (5, 10, 20)
CATEGORIES = {1: "several turns", 2: "times", 3: "conclusions", 4: "one turn"}
TOOLKITS: Mapping[str, Mapping[str, Any]] = {"alone": {"neighbours": 0}, "beside": {}}
FLOOR = "host.search over the turns as files"

Half = Literal["tune", "judge", "all"]
Asked = tuple[ConversationQuestion, Mapping[str, Sequence[int]]]


def half_of(questions: Sequence[ConversationQuestion], half: Half) -> list[ConversationQuestion]:
    """Return the first half of the questions of each category, the second one, or all."""
    chosen = []
    for category in CATEGORIES:
        those = [each for each in questions if each.category == category]
        middle = (len(those) + 1) // 2
        chosen += {"tune": those[:middle], "judge": those[middle:], "all": those}[half]
    return chosen


async def asked(conversation: Conversation, half: Half) -> list[Asked]:
    """Return each question with the ids that the floor and each toolkit find, best first."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        app = write_app(Path(folder), conversation, TOOLKITS)
        (app / "kb/plain.kb.yao").write_text("{}", encoding="utf-8")
        files = Path(folder) / "files"
        files.mkdir()
        for line in conversation.lines:
            (files / f"{line['id']}.txt").write_text(line["content"], encoding="utf-8")
        async with open_host(app, environment={}) as host:
            await host.syncs.run("source")
            await host.add_documents("plain", files)
            return [
                (
                    question,
                    {"floor": await _plain(host, question.text)}
                    | {name: await _found(host, name, question.text) for name in TOOLKITS},
                )
                for question in half_of(conversation.questions, half)
            ]


async def _plain(host: Host, question: str) -> list[int]:
    search = {
        "type": "kb",
        "query": question,
        "collections": ["plain"],
        "threshold": 0,
        "limit": max(FIRST),
    }
    found = await host.search(search)
    return [int(Path(item.document_id or "").stem) for item in found.items]


async def _found(host: Host, toolkit: str, question: str) -> list[int]:
    found = await Memory(host, toolkit=toolkit).search(question, "turns", max(FIRST))
    return [each["id"] for each in found]


def show(results: Sequence[Asked]) -> None:
    """Print the figures of all questions and of each category."""
    groups: defaultdict[str, list[Asked]] = defaultdict(list)
    for one in results:
        groups["all"].append(one)
        groups[CATEGORIES[one[0].category]].append(one)
    for group, those in groups.items():
        for most in FIRST:
            share = {
                name: 100
                * sum(evidence_among(each[0], each[1][name], most) for each in those)
                / len(those)
                for name in ("floor", *TOOLKITS)
            }
            what = f"evidence among the first {most}, {len(those)} questions, {group}"
            figure(f"{what}: turns alone", share["alone"], "%", share["floor"], FLOOR)
            figure(f"{what}: with those beside", share["beside"], "%", share["floor"], FLOOR)


def show_misses(conversation: Conversation, results: Sequence[Asked]) -> None:
    """Print the questions whose evidence is not all among the first ten, with what is."""
    texts = {line["id"]: f"{line['title']} | {line['content']}" for line in conversation.lines}
    for question, found in results:
        first = found["beside"][:10]
        if missed := sorted(question.evidence - {*first}):
            print(f"\n{question.category} {question.text}")
            for id in missed:
                rank = found["beside"].index(id) + 1 if id in found["beside"] else "-"
                print(f"   MISSED {id} at {rank}: {texts[id][:300]}")
            for id in first:
                print(f"   {'*' if id in question.evidence else ' '} {id} {texts[id][:110]}")


async def main(file: Path, half: Half, *, misses: bool) -> None:
    conversations = [(each, await asked(each, half)) for each in read(file)]
    if misses:
        for conversation, results in conversations:
            show_misses(conversation, results)
    else:
        show([one for _, results in conversations for one in results])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.locomo")
    parser.add_argument("file", type=Path)
    parser.add_argument("--half", choices=("tune", "judge", "all"), default="all")
    parser.add_argument("--misses", action="store_true")
    given = parser.parse_args()
    anyio.run(lambda: main(given.file, given.half, misses=given.misses))
