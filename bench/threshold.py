"""Measure what reaches the default threshold of a knowledge base search, which no bench of rankings
shows: passages found by a word that only they have, and off-topic questions that find something.

    python -m bench.threshold [DATA] [--only NAME]... [--cache DIR]

DATA and the cache are those of `bench.retrieval`. The words are chosen by chance among those that
one passage of the collection has; in English they are also in two sentences, and exact codes are in
a long question about something else. The off-topic questions are those of `kb calibrate`, sent to
the collection and to parts of it of 3 to 60 passages. Prints a JSON line for each way to search, as
in `bench.ablation`: how many of the words find their passage, in each form, how many of the codes
do, and how many of the off-topic questions find anything.
"""

from __future__ import annotations

import json
import random
import re
import tempfile
from collections.abc import Collection as Collected
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import anyio

from bench.ablation import Parts, Way, stored
from bench.judged_collections import Collection, collections
from bench.retrieval import Arguments, arguments, embedded, say, versions
from groundhook.core.source_settings import KBSettings
from groundhook.handlers.kb.admin.off_topic import OFF_TOPIC
from groundhook.handlers.kb.analyse import WEIGHTS, Analyser, is_code
from groundhook.handlers.kb.embed import least_cosine
from groundhook.handlers.kb.embedders.builtin import BuiltinEmbedder
from groundhook.handlers.kb.embedders.cached import CachedEmbedder, VectorCache
from groundhook.handlers.kb.store.messages import pack_vector
from groundhook.handlers.kb.store.port import VectorQuestion

SETS = {
    "paraphrase": "english",
    "xquad-en": "english",
    "govil-title": "hebrew",
    "xquad-ar": "arabic",
    "xquad-zh": "chinese",
}
CODE_FORM = (
    "My colleague told me yesterday that the old machine shows {} every morning, what should we"
    " change?"
)
FORMS = ("{}", "What is {}?", "How do I use {} and what does it do?")
WORDS, PARTS, SIZES = 80, 20, (3, 6, 12, 25, 60)
WAYS = (
    Way("Groundhook"),
    Way("words not weighed by rarity", by_rarity=False),
    Way("no passage found alone", alone=False),
    Way("codes weigh like words", codes=False),
    Way("question words in full", weights=WEIGHTS._replace(filling=1.0)),
)


@dataclass(frozen=True)
class Asked:
    """A question, and the passage that has its word."""

    question: VectorQuestion
    passage: str


def single(collection: Collection, chance: random.Random) -> list[tuple[str, str]]:
    """Words of one passage each, with the passage."""
    return _of_one_passage(
        {
            id: {word.lower() for word in re.findall(r"[^\W\d_]{5,}", text)}
            for id, text in collection.documents.items()
        },
        chance,
    )


def single_codes(collection: Collection, chance: random.Random) -> list[tuple[str, str]]:
    """Codes of one passage each, with the passage."""
    analyser = Analyser("english")
    return _of_one_passage(
        {
            id: {
                token
                for token in analyser.tokens(text)
                if any(map(is_code, analyser.indices(token)))
            }
            for id, text in collection.documents.items()
        },
        chance,
    )


def _of_one_passage(
    words: Mapping[str, Collected[str]], chance: random.Random
) -> list[tuple[str, str]]:
    passages: dict[str, list[str]] = {}
    for id, own in words.items():
        for word in own:
            passages.setdefault(word, []).append(id)
    once = sorted((word, ids[0]) for word, ids in passages.items() if len(ids) == 1)
    return chance.sample(once, min(WORDS, len(once)))


def parts(collection: Collection, chance: random.Random) -> Iterator[Collection]:
    for _ in range(PARTS):
        ids = chance.sample(list(collection.documents), chance.choice(SIZES))
        yield replace(collection, documents={id: collection.documents[id] for id in ids})


def finding(there: Parts, way: Way, questions: Sequence[VectorQuestion]) -> int:
    return sum(bool(there.search_in(way, question).hits) for question in questions)


def right(there: Parts, way: Way, asked: Sequence[Asked]) -> int:
    return sum(
        one.passage in [hit.passage for hit in there.search_in(way, one.question).hits]
        for one in asked
    )


async def measured(
    collection: Collection, cache: VectorCache, folder: Path
) -> list[dict[str, object]]:
    """A line for each way."""
    model, chance = CachedEmbedder(BuiltinEmbedder(), cache), random.Random(5)
    language = SETS[collection.name]
    least = least_cosine(model.similarity, KBSettings().threshold)

    async def question(text: str) -> VectorQuestion:
        vector = pack_vector(await model.embed_query(text))
        return VectorQuestion(vector=vector, text=text, limit=10, least_cosine=least)

    strange = [await question(text) for text in OFF_TOPIC[language]]
    words = single(collection, chance)
    asked = [
        [Asked(await question(form.format(word)), passage) for word, passage in words]
        for form in (FORMS if language == "english" else FORMS[:1])
    ]
    codes = single_codes(collection, chance) if language == "english" else []
    coded = [Asked(await question(CODE_FORM.format(code)), passage) for code, passage in codes]
    vectors = await embedded(collection, cache)
    with stored(collection, vectors, folder / "whole") as there:
        by_code = {way: right(there, way, coded) for way in WAYS}
        found = {way: [right(there, way, form) for form in asked] for way in WAYS}
        whole = {way: finding(there, way, strange) for way in WAYS}
    some = dict.fromkeys(WAYS, 0)
    for number, part in enumerate(parts(collection, chance)):
        with stored(part, vectors, folder / str(number)) as there:
            for way in WAYS:
                some[way] += finding(there, way, strange)
    return [
        {
            "collection": collection.name,
            "way": way.name,
            "words": len(words),
            "found": found[way],
            "codes": len(codes),
            "codes_found": by_code[way],
            "off_topic": len(strange),
            "off_topic_found": whole[way],
            "off_topic_in_parts": PARTS * len(strange),
            "off_topic_found_in_parts": some[way],
        }
        for way in WAYS
    ]


async def main(given: Arguments) -> None:
    say(versions())
    cache = VectorCache(given.cache / "vectors.sqlite", most_bytes=4 << 30)
    for whole in collections(given.data, given.only or [*SETS]):
        collection = replace(whole, questions={})
        with tempfile.TemporaryDirectory(
            prefix="groundhook-bench-", ignore_cleanup_errors=True
        ) as folder:
            for line in await measured(collection, cache, Path(folder)):
                print(json.dumps(line), flush=True)
    cache.close()


if __name__ == "__main__":
    anyio.run(partial(main, arguments("bench.threshold")))
