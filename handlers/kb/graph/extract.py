"""Who says what a passage speaks of: the rules, spaCy where it is installed, or an assistant or MCP tool.

What all of them answer is brought to the kinds that the collection declares. Whoever is asked and fails is said in `warnings`,
and the rules do it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import anyio
import anyio.to_thread

from handlers.kb.graph.names import LONGEST, key_of
from handlers.kb.graph.rules import Extracted, Known, Link, Mention, extract
from host.errors import ConfigError, DelegateError
from host.ports import Delegates
from host.types.delegation import ENTITIES, EntityAnswer, EntityAsk
from host.types.specs import EntitySpec

AT_ONCE = 4  # passages that an assistant is asked about at the same time
DELEGATED_MS = 60_000
BUILTIN, SPACY = "builtin", "spacy"
_SPACY_MODEL = "en_core_web_sm"
_KINDS = {"PERSON": "person", "PER": "person", "ORG": "organization", "GPE": "place", "LOC": "place", "FAC": "place"}
_NO_NAMES = frozenset({"DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL", "LANGUAGE"})


@dataclass(kw_only=True)
class Extraction:
    """What a collection's passages speak of. `warnings`: what went wrong and was done by the rules instead, each once."""

    spec: EntitySpec
    language: str
    delegates: Delegates
    warnings: list[str] = field(default_factory=list)

    @cached_property
    def dictionary(self) -> dict[str, tuple[str, str]]:
        """The collection's own names: key → (name, kind)."""
        named = ((kind, name) for kind, names in self.spec.dictionary.items() for name in names)
        return {key_of(name): (name, kind) for kind, name in named if key_of(name)}

    async def extract(self, texts: Sequence[str], title: str, names: Mapping[str, tuple[str, str]]) -> list[Extracted]:
        """For each passage of a document; `names` are those known so far, by key. Raises ConfigError where spaCy is wanted and is
        not there."""
        known = Known(names=names, beside=Known(names=self.dictionary))
        done = self.spec.extractor.partition(":")[0]
        if done == BUILTIN:
            found = await anyio.to_thread.run_sync(lambda: [extract(text, title, known) for text in texts])
        elif done == SPACY:
            found = await anyio.to_thread.run_sync(lambda: [_by_spacy(self.spec.extractor, text, title, known) for text in texts])
        else:
            found = await self._delegated(texts, title, known)
        return [only(each, self.spec.types, self.dictionary) for each in found]

    async def _delegated(self, texts: Sequence[str], title: str, known: Known) -> list[Extracted]:
        answers: dict[int, Extracted] = {}
        waiting = iter(enumerate(texts))

        async def work() -> None:
            for index, text in waiting:
                asked = EntityAsk(text=text, types=self.spec.types, language=self.language)
                try:
                    answer = await self.delegates.ask(ENTITIES, self.spec.extractor, asked, timeout_ms=DELEGATED_MS)
                    answers[index] = told(answer, title)
                except DelegateError as exc:
                    if str(exc) not in self.warnings:
                        self.warnings.append(f"{exc}; the rules of the built-in extractor were used")
                    answers[index] = extract(text, title, known)

        async with anyio.create_task_group() as tasks:
            for _ in range(AT_ONCE):
                tasks.start_soon(work)
        return [answers[index] for index in range(len(texts))]


def only(extracted: Extracted, types: Sequence[str], dictionary: Mapping[str, tuple[str, str]]) -> Extracted:
    """What is left of an extraction when only entities of the declared kinds are kept; what the document is about stays. The
    dictionary's word on a kind is the last."""
    mentions = [
        replace(mention, kind=dictionary[mention.key][1]) if mention.key in dictionary else mention
        for mention in extracted.mentions
    ]
    wanted = {kind.casefold() for kind in types}
    kept = {m.key for m in mentions if not wanted or m.kind.casefold() in wanted or m.key == extracted.about}
    return replace(
        extracted,
        mentions=tuple(mention for mention in mentions if mention.key in kept),
        links=tuple(link for link in extracted.links if {link.source, link.target} <= kept),
    )


def told(answer: EntityAnswer, title: str) -> Extracted:
    """What an assistant or a tool answered, as an extraction."""
    about = key_of(title)
    mentions: dict[str, Mention] = {}
    for entity in answer.entities:
        key = key_of(entity.name)
        if key and key not in mentions:
            kind = entity.type.strip().casefold() or "term"
            name = " ".join(entity.name.split())[:LONGEST]
            mentions[key] = Mention(key=key, name=name, kind=kind, description=entity.description.strip())
    if about and about not in mentions:
        mentions[about] = Mention(key=about, name=title.strip()[:LONGEST], kind="term")
    links = [Link(source=key_of(r.source), target=key_of(r.target), words=" ".join(r.relation.split())) for r in answer.relations]
    return Extracted(
        mentions=tuple(mentions[key] for key in sorted(mentions)),
        links=tuple(
            link for link in dict.fromkeys(links) if {link.source, link.target} <= mentions.keys() and link.source != link.target
        ),
        about=about,
    )


class _Spacy:
    """Pipelines by name, loaded once for a process."""

    _loaded: dict[str, Any] = {}
    _loading = threading.Lock()

    @classmethod
    def pipeline(cls, extractor: str) -> Any:
        """Raises ConfigError."""
        name = extractor.partition(":")[2] or _SPACY_MODEL
        with cls._loading:
            if name not in cls._loaded:
                try:
                    import spacy

                    cls._loaded[name] = spacy.load(name)
                except (ImportError, OSError) as exc:
                    raise ConfigError(
                        f"entities.extractor {extractor!r} needs spaCy and its pipeline {name!r}: one of them is not installed",
                        hint='install both, or set entities.extractor to "builtin"',
                    ) from exc
        return cls._loaded[name]


def _by_spacy(extractor: str, text: str, title: str, known: Known) -> Extracted:
    """The rules' extraction, with the names that the pipeline sees and their kinds."""
    ruled = extract(text, title, known)
    mentions = {mention.key: mention for mention in ruled.mentions}
    for entity in _Spacy.pipeline(extractor)(text).ents:
        key = key_of(entity.text)
        if entity.label_ in _NO_NAMES or len(key) < 2 or len(entity.text) > LONGEST:
            continue
        kind = _KINDS.get(entity.label_, entity.label_.casefold().replace("_", " "))
        there = mentions.get(key)
        if there is None or there.kind == "term":
            mentions[key] = replace(there, kind=kind) if there else Mention(key=key, name=entity.text, kind=kind)
    return replace(ruled, mentions=tuple(mentions[key] for key in sorted(mentions)))
