"""What an embedding's cosines are worth on a collection's own documents, and the curve that makes
similarities of them.

Questions with the documents that answer them are given, or made: a sentence of a passage, behind
its headings, asks for the rest of it, which is embedded without both (the inverse cloze task of
Lee, Chang and Toutanova, 2019). Against them stand questions that nothing in the collection
answers, with the passage nearest to each.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from groundhook.handlers.kb.embedders.curve import Curve
from groundhook.handlers.kb.off_topic import OFF_TOPIC
from groundhook.handlers.kb.points import lead
from groundhook.handlers.kb.ranking.passage import units
from groundhook.handlers.kb.store import Incoming, Passage, VectorStore
from groundhook.host.core.errors import UnknownName, UsageError
from groundhook.host.core.ports import Embedder

Cosines = npt.NDArray[np.float32]
Done = Callable[[int, int, str], None]  # questions done, of how many, the document

AT_BALANCE, AT_RELATED = (
    0.27,
    0.87,
)  # similarities of the balanced threshold and of the middle of the related, as built in
PERCENTILES = (1, 5, 50, 95, 99)
_LEAST = 10  # questions
_PASSAGES = 200  # that off-topic questions are compared with
_A_QUESTION = '{"question": "…", "document": "guide.md"}, or "documents" with a list of them'
_SENTENCE, _REST = (
    range(20, 301),
    80,
)  # characters of a sentence that asks, and at least of what it asks for


@dataclass(frozen=True)
class Asked:
    """A question, and the ids of the documents that answer it; none: it is off-topic."""

    question: str
    documents: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """`related` and `unrelated` are cosines at PERCENTILES: of a question and its passage, and of
    an off-topic question and the nearest passage. At the cosine `balanced` as large a share of the
    related is lost as of the unrelated passes (`lost`, `passed`, 0-1). `in_use` is what the
    embedder makes of `balanced` and of the middle of the related, and should be AT_BALANCE and
    AT_RELATED. `curve` is the one through these; None where the two kinds do not lie apart. There
    were so many `questions` with what answers them, `made` or given, and so many `off_topic`,
    `off_topic_built_in` or given."""

    collection: str
    provider: str
    model: str
    questions: int
    made: bool
    off_topic: int
    off_topic_built_in: bool
    related: tuple[float, ...]
    unrelated: tuple[float, ...]
    balanced: float
    lost: float
    passed: float
    in_use: tuple[float, float]
    curve: Curve | None


def balance(related: Cosines, unrelated: Cosines) -> float:
    """The cosine that loses as large a share of the related as it lets pass of the unrelated, to
    0.001."""
    steps = np.arange(-0.2, 1.0, 0.001)
    uneven = np.array(
        [abs(float((related < step).mean() - (unrelated >= step).mean())) for step in steps]
    )
    return float(np.median(steps[uneven == uneven.min()]))  # the middle of a gap


def curve_through(balanced: float, related: float) -> Curve | None:
    """The curve with similarity 0.27 at `balanced` and 0.87 at `related`; None where the model does
    not tell them apart."""
    if related <= balanced:
        return None
    low, high = (math.log(share / (1 - share)) for share in (AT_BALANCE, AT_RELATED))
    scale = (related - balanced) / (high - low)
    return Curve(round(balanced - low * scale, 4), max(round(scale, 4), 0.0001))


def read_questions(lines: Iterable[str], name: str) -> list[Asked]:
    """JSON lines {question, document} or {question, documents: […]}, {question} alone where it is
    off-topic; other keys are left alone. Raises UsageError, also where there is none."""
    asked = []
    hint = f"such as {_A_QUESTION}"
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            said = json.loads(line)
            documents = [said["document"]] if "document" in said else said.get("documents", [])
            if not isinstance(documents, list) or not all(
                isinstance(each, str) for each in (said["question"], *documents)
            ):
                raise TypeError
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            raise UsageError(
                f"{name}:{number} is no question with the document that answers it", hint=hint
            ) from exc
        asked.append(Asked(said["question"], tuple(documents)))
    if not asked:
        raise UsageError(f"{name} is empty: it has no questions", hint=f"a line for each, {hint}")
    return asked


async def calibrate(
    store: VectorStore,
    collection: str,
    tenant: str,
    embedder: Embedder,
    *,
    asked: Sequence[Asked] | None = None,
    most: int = 100,
    done: Done | None = None,
) -> Calibration:
    """Measure with `asked`, or without it with at most so many questions that are made. Off-topic
    ones are those of `asked`, or where it has none, those built in. Raises UsageError where there
    are too few, UnknownName for a document that is not there, StorageError, and what the embedder
    raises."""
    chance = random.Random(1)
    usage = await store.usage(collection, tenant)
    if not usage.documents:
        raise _empty(collection, tenant)
    listed = [stored.document for stored in usage.documents]
    wanted = sorted({id for one in asked or () for id in one.documents})
    if asked is not None and not wanted:
        raise UsageError(
            f"all questions ({len(asked)}) are off-topic, and {_LEAST} that name the document which"
            " answers them are needed",
            hint=f"such as {_A_QUESTION}; without --questions they are made from the documents",
        )
    for id in wanted:
        if id not in listed:
            raise UnknownName("document", id, listed)
    rest = sorted(set(listed) - set(wanted))
    ids = [*wanted, *chance.sample(rest, min(most, len(rest)))]
    documents = {id: whole for id in ids for whole in await store.whole(collection, [(tenant, id)])}
    pairs = _made(documents, most, chance) if asked is None else _given(documents, asked)
    if len(pairs) < _LEAST:
        said = (
            f"{len(pairs)} question{'' if len(pairs) == 1 else 's'} can be asked of collection"
            f" {collection!r}"
        )
        raise UsageError(
            f"{said}, and {_LEAST} are needed", hint="add documents, or give more with --questions"
        )
    strange = [one.question for one in asked or () if not one.documents]
    off_topic = strange or OFF_TOPIC.get(usage.language, OFF_TOPIC["english"])
    passages = [passage for whole in documents.values() for passage in whole.passages]
    some = _vectors(chance.sample(passages, min(_PASSAGES, len(passages))))
    related, unrelated = [], []
    for number, pair in enumerate(pairs):
        if done is not None:
            done(number, len(pairs) + len(off_topic), pair.document)
        question = await _embedded(embedder, pair.question)
        own = (
            pair.vectors
            if pair.rest is None
            else np.array(await embedder.embed_documents([pair.rest]), dtype=np.float32)
        )
        related.append(float((own @ question).max()))
    for text in off_topic:
        unrelated.append(float((some @ await _embedded(embedder, text)).max()))
    cosines = np.array(related), np.array(unrelated)
    return _measured(collection, embedder, *cosines, made=asked is None, built_in=not strange)


def _empty(collection: str, tenant: str) -> UsageError:
    whose, option = (f" for tenant {tenant!r}", f" --tenant {tenant}") if tenant else ("", "")
    hint = f"fill it with `groundhook kb add {collection} PATH…{option}`"
    return UsageError(
        f"collection {collection!r} is empty{whose}: there is nothing to measure on", hint=hint
    )


async def _embedded(embedder: Embedder, question: str) -> Cosines:
    return np.array(await embedder.embed_query(question), dtype=np.float32)


@dataclass(frozen=True)
class _Pair:
    """A question with what answers it: the text, which is to be embedded, or vectors."""

    question: str
    document: str
    vectors: Cosines
    rest: str | None = None


def _measured(
    collection: str,
    embedder: Embedder,
    related: Cosines,
    unrelated: Cosines,
    *,
    made: bool,
    built_in: bool,
) -> Calibration:
    balanced, middle = balance(related, unrelated), float(np.median(related))
    return Calibration(
        collection=collection,
        provider=embedder.provider,
        model=embedder.model,
        questions=len(related),
        made=made,
        off_topic=len(unrelated),
        off_topic_built_in=built_in,
        related=tuple(round(float(value), 4) for value in np.percentile(related, PERCENTILES)),
        unrelated=tuple(round(float(value), 4) for value in np.percentile(unrelated, PERCENTILES)),
        balanced=round(balanced, 3),
        lost=round(float((related < balanced).mean()), 3),
        passed=round(float((unrelated >= balanced).mean()), 3),
        in_use=(round(embedder.similarity(balanced), 2), round(embedder.similarity(middle), 2)),
        curve=curve_through(balanced, middle),
    )


def _given(documents: dict[str, Incoming], asked: Sequence[Asked]) -> list[_Pair]:
    pairs = []
    for one in asked:
        passages = [
            passage for id in one.documents if id in documents for passage in documents[id].passages
        ]
        if passages:
            pairs.append(_Pair(one.question, one.documents[0], _vectors(passages)))
    return pairs


def _made(documents: dict[str, Incoming], most: int, chance: random.Random) -> list[_Pair]:
    """At most so many questions, from as many documents as there are."""
    queues = [list(_asking(id, whole, chance)) for id, whole in documents.items()]
    pairs: list[_Pair] = []
    while len(pairs) < most and any(queues):
        pairs += [queue.pop() for queue in queues if queue][: most - len(pairs)]
    return pairs


def _asking(id: str, document: Incoming, chance: random.Random) -> Iterator[_Pair]:
    passages = list(document.passages)
    chance.shuffle(passages)
    for passage in passages:
        content = passage.content
        sentences = [
            unit
            for unit in units(content)
            if unit.kind == "text" and unit.end - unit.body in _SENTENCE
        ]
        asking = [
            (content[one.body : one.end].strip(), content[: one.body] + content[one.end :].lstrip())
            for one in sentences
        ]
        # the sentence that has most words in common with the rest: it is the least about something
        # else
        if asking:
            sentence, rest = max(asking, key=lambda pair: len(_words(pair[0]) & _words(pair[1])))
            if len(rest) >= _REST:
                yield _Pair(
                    f"{lead(passage).strip()}: {sentence}".removeprefix(": "),
                    id,
                    _vectors([passage]),
                    rest,
                )


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{4,}", text.lower()))


def _vectors(passages: Sequence[Passage]) -> Cosines:
    return np.stack([np.frombuffer(passage.vector, dtype="<f4") for passage in passages])
