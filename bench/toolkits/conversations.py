"""Memories of long conversations: how many of the turns that a question needs are among the first
ones found (evidence recall), each turn being a memory.

Two short conversations that were written for this bench, in the format of LoCoMo; the second one is
kept aside: what can be chosen is chosen by the first. A question with several facts is also split
into the questions that the file has for it, as a model would. `bench.locomo` measures a public set.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from bench.figures import figure
from groundhook import Host, open_host
from groundhook.core.ports import Delta, Finished, ModelCall, TextDelta
from groundhook.memory import Memory

OWN = Path(__file__).with_name("conversations.json")
SPLIT = {"split": {"by": "connector:parts"}}
TOOLKITS: Mapping[str, Mapping[str, Any]] = {
    "alone": {"neighbours": 0},
    "beside": {"neighbours": 1},
    "farther": {"neighbours": 2},
    "split": {"neighbours": 0, **SPLIT},
    "both": {"neighbours": 1, **SPLIT},
}
SHOWN = {
    "alone": "the turns alone",
    "beside": "with the turns beside",
    "farther": "with two turns on each side",
    "split": "split, the turns alone",
    "both": "split, with the turns beside",
}
FIRST = (5, 10)  # turns among which the evidence is looked for
UNANSWERABLE = 5  # the category of LoCoMo's questions without an answer
_TURN = re.compile(r"D:?(\d{1,3}):0*(\d{1,4})")
_SESSION = re.compile(r"session_(\d{1,3})")


@dataclass(frozen=True)
class ConversationQuestion:
    """A question to a conversation, with the ids of the memories that answer it, the questions of
    its single facts, and its category in LoCoMo."""

    text: str
    evidence: frozenset[int]
    parts: tuple[str, ...] = ()
    category: int = 0


@dataclass(frozen=True)
class Conversation:
    """A conversation as lines of a memory source, and the questions to it."""

    name: str
    lines: Sequence[Mapping[str, Any]]
    questions: Sequence[ConversationQuestion]


def read(path: Path) -> list[Conversation]:
    """Return the conversations of a file in LoCoMo's format. Their turns are numbered through all
    sessions, with a gap between two sessions, whose turns are no neighbours. Evidence that names no
    turn is ignored, and so is a question without any."""
    return [_conversation(each) for each in json.loads(path.read_text(encoding="utf-8"))]


def _conversation(sample: Mapping[str, Any]) -> Conversation:
    name, said = str(sample["sample_id"]), sample["conversation"]
    ids: dict[tuple[int, int], int] = {}
    lines: list[Mapping[str, Any]] = []
    place = 0
    for number in sorted(int(found[1]) for key in said if (found := _SESSION.fullmatch(key))):
        at = _moment(said.get(f"session_{number}_date_time", ""))
        place += 1
        for turn in said[f"session_{number}"]:
            place += 1
            ids |= dict.fromkeys(_turns(turn["dia_id"]), place)
            lines.append(_line(name, place, turn, at))
    return Conversation(name, lines, [*_questions(sample["qa"], ids)])


def _turns(text: str) -> list[tuple[int, int]]:
    """`D8:6; D9:17` as numbers of sessions and turns."""
    return [(int(session), int(turn)) for session, turn in _TURN.findall(text)]


def _line(
    conversation: str, place: int, turn: Mapping[str, Any], at: datetime | None
) -> dict[str, Any]:
    """Return a turn as a line of a memory source."""
    text = f"{turn['speaker']}: {turn['text']}"
    if picture := turn.get("blip_caption"):
        text += f" [shows {picture}]"
    line = {
        "id": place,
        "collection": "turns",
        "title": f"{turn['speaker']}, {at:%d %B %Y}" if at else turn["speaker"],
        "content": text,
        "conversation": conversation,
        "turn": place,
    }
    return {**line, "written": at.isoformat()} if at else line


def _questions(
    asked: Iterable[Mapping[str, Any]], ids: Mapping[tuple[int, int], int]
) -> Iterator[ConversationQuestion]:
    for one in asked:
        named = [turn for text in one.get("evidence", ()) for turn in _turns(text)]
        evidence = frozenset(ids[turn] for turn in named if turn in ids)
        if evidence and one.get("category") != UNANSWERABLE:
            parts = tuple(one.get("parts", ()))
            yield ConversationQuestion(one["question"], evidence, parts, one.get("category", 0))


def evidence_among(question: ConversationQuestion, found: Sequence[int], most: int) -> float:
    """Return the share of the evidence that is among the first `most` found."""
    return len(question.evidence & {*found[:most]}) / len(question.evidence)


def _moment(text: str) -> datetime | None:
    """`1:56 pm on 8 May, 2023` as a time."""
    try:
        return datetime.strptime(text, "%I:%M %p on %d %B, %Y")
    except ValueError:
        return None


class WrittenParts:
    """A connector that answers with the questions of the facts that the file has."""

    def __init__(self, conversations: Sequence[Conversation]) -> None:
        asked = [each for one in conversations for each in one.questions]
        self._parts = {each.text: each.parts for each in asked}

    @asynccontextmanager
    async def stream(self, call: ModelCall, /) -> AsyncIterator[AsyncIterator[Delta]]:
        question = json.loads(call.messages[-1].text)["question"]

        async def deltas() -> AsyncIterator[Delta]:
            yield TextDelta(json.dumps({"questions": self._parts[question]}))
            yield Finished("stop")

        yield deltas()


def write_app(
    root: Path,
    conversation: Conversation,
    toolkits: Mapping[str, Mapping[str, Any]],
    embedding: str = "",
) -> Path:
    """Write an app with the turns of a conversation, and with toolkits over them, by their names,
    with these keys; return its folder. The toolkit `source` adds the turns."""
    folder = root / conversation.name
    fields = dict.fromkeys(("tags", "supersedes", "links", "turn"), "keyword")
    collection: dict[str, Any] = {"fields": {"preview": "text", "written": "datetime", **fields}}
    if embedding:
        collection["embedding"] = {"provider": embedding}
    files = {
        "agent/agent.yml": "",
        "kb/turns.kb.yao": json.dumps(collection),
        "turns.jsonl": "\n".join(json.dumps(line) for line in conversation.lines),
    }
    for name, keys in {"source": {"source": {"file": "turns.jsonl"}}, **toolkits}.items():
        kit = {"type": "memory", "collections": {"turns": "turns"}, "owner": "app", **keys}
        files[f"toolkits/{name}.toolkit.yao"] = json.dumps(kit)
    for file, text in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text, encoding="utf-8")
    return folder


async def recall(
    host: Host, toolkit: str, questions: Sequence[ConversationQuestion]
) -> tuple[float, ...]:
    """Return the evidence recall among the `FIRST` turns, summed over the questions."""
    memory, shares = Memory(host, toolkit=toolkit), []
    for asked in questions:
        found = [each["id"] for each in await memory.search(asked.text, "turns", max(FIRST))]
        shares.append([evidence_among(asked, found, most) for most in FIRST])
    return tuple(map(sum, zip(*shares, strict=True)))


async def measure(_: Path | None) -> None:
    """Print the evidence recall of the conversations."""
    first, aside = read(OWN)
    await _measure("", [first])
    await _measure(" kept aside", [aside])


async def _measure(about: str, group: Sequence[Conversation]) -> None:
    sums: defaultdict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0] * len(FIRST))
    kinds: dict[str, Sequence[str]] = {
        "questions": ("alone", "beside", "farther"),
        "questions with several facts": ("alone", "split", "beside", "both"),
    }
    asked = dict.fromkeys(kinds, 0)
    connectors = {"parts": WrittenParts(group)}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for conversation in group:
            app = write_app(Path(folder), conversation, TOOLKITS)
            async with open_host(app, environment={}, connectors=connectors) as host:
                await host.syncs.run("source")
                for kind, names in kinds.items():
                    every = conversation.questions
                    chosen = [each for each in every if each.parts or kind == "questions"]
                    asked[kind] += len(chosen)
                    for name in names:
                        found = await recall(host, name, chosen)
                        old = sums[kind, name]
                        sums[kind, name] = [a + b for a, b in zip(old, found, strict=True)]
    for (kind, name), shares in sums.items():
        for most, sum_ in zip(FIRST, shares, strict=True):
            what = f"evidence among the first {most}, {asked[kind]} {kind}{about}: {SHOWN[name]}"
            figure(what, 100 * sum_ / asked[kind], "%")
