"""Measures an embedding model's cosines on a collection's own documents, and fits the curve that
turns them into similarities.

Related pairs are questions with the documents that answer them, from a file or made here: a
sentence of a passage, after its headings, is the question, and the rest of the passage, embedded
without both, is the answer (the inverse cloze task of Lee, Chang and Toutanova, 2019). Unrelated
pairs are questions that nothing in the collection answers, each with its nearest passage.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from groundhook.core.errors import UnknownName, UsageError
from groundhook.core.json_text import read_json
from groundhook.core.ports import Embedder
from groundhook.handlers.kb.admin.off_topic import OFF_TOPIC
from groundhook.handlers.kb.embed import embed_questions, guesses
from groundhook.handlers.kb.embedders.curve import Curve
from groundhook.handlers.kb.ranking.units import units
from groundhook.handlers.kb.store.points import headings_before
from groundhook.handlers.kb.store.port import FullDocument, Passage, VectorStore

Cosines = npt.NDArray[np.float32]
_Progress = Callable[[int, int, str], None]  # questions done, of how many, the document

# Similarities that a curve gives to the balanced threshold and to the median of the related pairs.
AT_BALANCE, AT_RELATED = 0.27, 0.87
PERCENTILES = (1, 5, 50, 95, 99)
_LEAST = 10  # pairs needed
_PASSAGES = 200  # passages that off-topic questions are compared with
_EXAMPLE = '{"question": "…", "document": "guide.md"}, or "documents" with a list of them'
_SENTENCE = range(20, 301)  # characters of a sentence that may be a question
_REST = 80  # least characters of the rest of its passage


@dataclass(frozen=True)
class CalibrationQuestion:
    """A question, and the ids of the documents that answer it; an off-topic question has none."""

    question: str
    documents: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The result of `calibrate`."""

    collection: str
    provider: str  # of the embedding model
    model: str
    questions: int  # how many have an answer in the collection
    made: bool  # whether they were taken from the documents, since the caller gave none
    off_topic: int  # how many have none
    off_topic_built_in: bool  # whether the caller gave none of these
    # Cosines at PERCENTILES: of questions with their passages, and of off-topic questions with the
    # nearest passage.
    related: tuple[float, ...]
    unrelated: tuple[float, ...]
    # A threshold at the cosine `balanced` loses the share `lost` of the related pairs and lets the
    # share `passed` of the unrelated pairs pass, 0-1; the two are about equal.
    balanced: float
    lost: float
    passed: float
    # The embedder's similarities at `balanced` and at the median of the related pairs. With the
    # right curve they are AT_BALANCE and AT_RELATED.
    in_use: tuple[float, float]
    curve: Curve | None  # the right curve; None: the two kinds overlap too much for one
    guessed: bool = False  # whether the curve in use is a guess, so that no search is sure


@dataclass(frozen=True)
class _Pair:
    """A question with its answer: the text `rest`, which is embedded later, or `vectors`."""

    question: str
    document: str
    vectors: Cosines
    rest: str | None = None


def balance(related: Cosines, unrelated: Cosines) -> float:
    """Return the cosine, to 0.001, at which the share of related pairs below it equals the share
    of unrelated pairs that reach it."""
    steps = np.arange(-0.2, 1.0, 0.001)
    uneven = np.array(
        [abs(float((related < step).mean() - (unrelated >= step).mean())) for step in steps]
    )
    return float(np.median(steps[uneven == uneven.min()]))  # the middle of a gap


def curve_through(balanced: float, related: float) -> Curve | None:
    """Return the curve with similarity AT_BALANCE at `balanced` and AT_RELATED at `related`; None
    if `related` is not the greater."""
    if related <= balanced:
        return None
    low, high = (math.log(share / (1 - share)) for share in (AT_BALANCE, AT_RELATED))
    scale = (related - balanced) / (high - low)
    return Curve(round(balanced - low * scale, 4), max(round(scale, 4), 0.0001))


def read_questions(lines: Iterable[str], name: str) -> list[CalibrationQuestion]:
    """Parse JSON lines {question, document} or {question, documents: […]}, or {question} alone for
    an off-topic one; other keys are ignored. Raises UsageError, also where there is no line."""
    questions = []
    hint = f"such as {_EXAMPLE}"
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            raw = read_json(line)
            documents = [raw["document"]] if "document" in raw else raw.get("documents", [])
            if not isinstance(documents, list) or not all(
                isinstance(each, str) for each in (raw["question"], *documents)
            ):
                raise TypeError
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            raise UsageError(
                f"{name}:{number} is not a question with the document that answers it", hint=hint
            ) from exc
        questions.append(CalibrationQuestion(raw["question"], tuple(documents)))
    if not questions:
        raise UsageError(f"{name} is empty: it has no questions", hint=f"a line for each, {hint}")
    return questions


async def calibrate(
    store: VectorStore,
    collection: str,
    tenant: str,
    embedder: Embedder,
    *,
    questions: Sequence[CalibrationQuestion] | None = None,
    max_questions: int = 100,
    progress: _Progress | None = None,
) -> Calibration:
    """Measure with `questions`, or with at most `max_questions` taken from the documents. If
    `questions` has no off-topic ones, the built-in ones are used. Raises UsageError if there are
    too few questions, UnknownName for a missing document, StorageError, and the embedder's
    errors."""
    random_source = random.Random(1)  # every run takes the same sample
    usage = await store.usage(collection, tenant)
    if not usage.documents:
        raise _empty_error(collection, tenant)
    stored = [record.document for record in usage.documents]
    ids = _choose_documents(stored, questions, max_questions, random_source)
    documents = await _read_documents(store, collection, tenant, ids)
    pairs = (
        _cloze_pairs(documents, max_questions, random_source)
        if questions is None
        else _given_pairs(documents, questions)
    )
    _refuse_too_few(pairs, collection)
    given = [each.question for each in questions or () if not each.documents]
    off_topic = given or OFF_TOPIC.get(usage.language, OFF_TOPIC["english"])
    passages = _sample_passages(documents, random_source)
    report = _report_pairs(progress, pairs, total=len(pairs) + len(off_topic))
    return _make_calibration(
        collection,
        embedder,
        np.array([await _related_cosine(embedder, pair) for pair in report]),
        np.array([await _nearest_cosine(embedder, text, passages) for text in off_topic]),
        made=questions is None,
        built_in=not given,
    )


def _choose_documents(
    stored: Sequence[str],
    questions: Sequence[CalibrationQuestion] | None,
    max_questions: int,
    random_source: random.Random,
) -> list[str]:
    """Return the documents to read: those that the questions name, and a sample of the others,
    since off-topic questions are compared with any passage. Raises UsageError if all questions are
    off-topic, UnknownName for a document that is not stored."""
    named = sorted({id for question in questions or () for id in question.documents})
    if questions is not None and not named:
        raise UsageError(
            f"all {len(questions)} questions are off-topic, and {_LEAST} that name a document which"
            " answers them are needed",
            hint=f"such as {_EXAMPLE}; without --questions they are made from the documents",
        )
    for id in named:
        if id not in stored:
            raise UnknownName("document", id, stored)
    others = sorted(set(stored) - set(named))
    return [*named, *random_source.sample(others, min(max_questions, len(others)))]


async def _read_documents(
    store: VectorStore, collection: str, tenant: str, ids: Sequence[str]
) -> dict[str, FullDocument]:
    # One at a time: a request has all its documents in memory, and some are long.
    return {
        id: document
        for id in ids
        for document in await store.full_documents(collection, [(tenant, id)])
    }


def _refuse_too_few(pairs: Sequence[_Pair], collection: str) -> None:
    """Raise UsageError if there are too few related pairs for a curve."""
    if len(pairs) < _LEAST:
        found = "is 1 question" if len(pairs) == 1 else f"are {len(pairs)} questions"
        raise UsageError(
            f"there {found} for collection {collection!r}, and {_LEAST} are needed",
            hint="add documents, or give more with --questions",
        )


def _sample_passages(
    documents: Mapping[str, FullDocument], random_source: random.Random
) -> Cosines:
    """Return the vectors of passages that off-topic questions are compared with."""
    passages = [passage for document in documents.values() for passage in document.passages]
    return _vectors(random_source.sample(passages, min(_PASSAGES, len(passages))))


def _report_pairs(
    progress: _Progress | None, pairs: Sequence[_Pair], *, total: int
) -> Iterator[_Pair]:
    """Yield the pairs, and report each before it is measured."""
    for number, pair in enumerate(pairs):
        if progress is not None:
            progress(number, total, pair.document)
        yield pair


async def _related_cosine(embedder: Embedder, pair: _Pair) -> float:
    """Return the cosine of a question and its answer."""
    answer = (
        pair.vectors
        if pair.rest is None
        else np.array(await embedder.embed_documents([pair.rest]), dtype=np.float32)
    )
    return await _nearest_cosine(embedder, pair.question, answer)


async def _nearest_cosine(embedder: Embedder, question: str, passages: Cosines) -> float:
    """Return the cosine of a question and the nearest of the passages."""
    (vector,) = await embed_questions(embedder, [question])
    return float((passages @ np.array(vector, dtype=np.float32)).max())


def _empty_error(collection: str, tenant: str) -> UsageError:
    whose, option = (f" for tenant {tenant!r}", f" --tenant {tenant}") if tenant else ("", "")
    hint = f"fill it with `groundhook kb add {collection} PATH…{option}`"
    return UsageError(
        f"collection {collection!r} is empty{whose}: there is nothing to measure on", hint=hint
    )


def _make_calibration(
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
        guessed=guesses(embedder),
    )


def _given_pairs(
    documents: dict[str, FullDocument], questions: Sequence[CalibrationQuestion]
) -> list[_Pair]:
    pairs = []
    for one in questions:
        passages = [
            passage for id in one.documents if id in documents for passage in documents[id].passages
        ]
        if passages:
            pairs.append(_Pair(one.question, one.documents[0], _vectors(passages)))
    return pairs


def _cloze_pairs(
    documents: dict[str, FullDocument], max_questions: int, random_source: random.Random
) -> list[_Pair]:
    """Take at most `max_questions` from the documents, in turn, so that every document has about as
    many."""
    queues = [list(_cloze_questions(id, full, random_source)) for id, full in documents.items()]
    pairs: list[_Pair] = []
    while len(pairs) < max_questions and any(queues):
        pairs += [queue.pop() for queue in queues if queue][: max_questions - len(pairs)]
    return pairs


def _cloze_questions(
    id: str, document: FullDocument, random_source: random.Random
) -> Iterator[_Pair]:
    """Yield a question for each passage that has a suitable sentence, in random order. Its headings
    and the sentence are the question, the rest of the passage is the answer."""
    passages = list(document.passages)
    random_source.shuffle(passages)
    for passage in passages:
        content = passage.content
        sentences = [
            unit
            for unit in units(content)
            if unit.kind == "text" and unit.end - unit.body in _SENTENCE
        ]
        splits = [
            (content[one.body : one.end].strip(), content[: one.body] + content[one.end :].lstrip())
            for one in sentences
        ]
        # The sentence with most words in common with the rest is least likely to be about
        # something else.
        if splits:
            sentence, rest = max(splits, key=lambda pair: len(_words(pair[0]) & _words(pair[1])))
            if len(rest) >= _REST:
                yield _Pair(
                    f"{headings_before(passage).strip()}: {sentence}".removeprefix(": "),
                    id,
                    _vectors([passage]),
                    rest,
                )


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{4,}", text.lower()))


def _vectors(passages: Sequence[Passage]) -> Cosines:
    return np.stack([np.frombuffer(passage.vector, dtype="<f4") for passage in passages])
