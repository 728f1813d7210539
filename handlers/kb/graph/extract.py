"""Extract the entities and relations of passages: by rules, by spaCy if it is installed, or by an
assistant or MCP tool.

Every result is reduced to the kinds that the collection declares. If an extractor fails, the rules
are used and `warnings` has the reason.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from groundhook.core.errors import ConfigError, DelegateError
from groundhook.core.ports import Delegates
from groundhook.core.types.collection_spec import EntitySpec
from groundhook.core.types.delegation import (
    EntityAnswer,
    EntityAsk,
)
from groundhook.core.types.uses import ENTITIES
from groundhook.handlers.kb.graph.names import KINDS, LONGEST, key_of, kind_called
from groundhook.handlers.kb.graph.rules import (
    EntityRelation,
    KnownNames,
    Mention,
    PassageEntities,
    extract,
)

AT_ONCE = 4  # concurrent requests to an assistant or a tool, one passage each
DELEGATED_MS = 60_000
BUILTIN, SPACY = "builtin", "spacy"
_SPACY_MODEL = "en_core_web_sm"
_NOT_FOR_NAMES = (
    "tagger",
    "morphologizer",
    "parser",
    "senter",
    "attribute_ruler",
    "lemmatizer",
    "trainable_lemmatizer",
)
_NO_NAMES = frozenset(
    {"DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL", "LANGUAGE"}
)


@dataclass(kw_only=True)
class Extraction:
    """Extracts the entities of one collection's passages. `warnings`: failures after which the
    rules were used, each once."""

    spec: EntitySpec
    language: str
    delegates: Delegates
    warnings: list[str] = field(default_factory=list)

    @cached_property
    def dictionary(self) -> dict[str, tuple[str, str]]:
        """The names that the collection declares: key → (name, kind)."""
        named = ((kind, name) for kind, names in self.spec.dictionary.items() for name in names)
        return {key_of(name): (name, kind) for kind, name in named if key_of(name)}

    @cached_property
    def made_by(self) -> str:
        """The settings that determine which entities are found, as text. A pipeline in a folder is
        identified by the folder's name and its `meta.json`, so that the app may be moved."""
        done, _, name = self.spec.extractor.partition(":")
        folder = Path(name)
        if done != SPACY or not folder.is_absolute():
            return self.spec.model_dump_json()
        try:
            meta = hashlib.blake2b((folder / "meta.json").read_bytes(), digest_size=12).hexdigest()
        except OSError:
            meta = ""
        return self.spec.model_copy(
            update={"extractor": f"{done}:{folder.name}:{meta}"}
        ).model_dump_json()

    async def extract(
        self, texts: Sequence[str], title: str, names: Mapping[str, tuple[str, str]]
    ) -> list[PassageEntities]:
        """Return an extraction for each passage of a document. `names` are the known names by key.
        Raises ConfigError if spaCy is configured and not installed."""
        known = KnownNames(names=names, primary=KnownNames(names=self.dictionary))
        done = self.spec.extractor.partition(":")[0]
        if done == BUILTIN:
            found = await anyio.to_thread.run_sync(
                lambda: [extract(text, title, known) for text in texts]
            )
        elif done == SPACY:
            found = await anyio.to_thread.run_sync(self._by_spacy, texts, title, known)
        else:
            found = await self._delegate(texts, title, known)
        return [keep_declared(each, self.spec.types, self.dictionary) for each in found]

    def _by_spacy(
        self, texts: Sequence[str], title: str, known: KnownNames
    ) -> list[PassageEntities]:
        ruled = [extract(text, title, known) for text in texts]
        try:
            named, written = _Spacy.names(self.spec.extractor, texts)
        except ValueError as exc:
            self._warn(str(exc))
            return ruled
        return [
            _add_names(each, names, written=written)
            for each, names in zip(ruled, named, strict=True)
        ]

    def _warn(self, problem: str) -> None:
        warning = f"{problem}; the rules of the built-in extractor were used"
        if warning not in self.warnings:
            self.warnings.append(warning)

    async def _delegate(
        self, texts: Sequence[str], title: str, known: KnownNames
    ) -> list[PassageEntities]:
        answers: dict[int, PassageEntities] = {}
        waiting = iter(enumerate(texts))

        async def ask_next() -> None:
            for index, text in waiting:
                question = EntityAsk(text=text, types=self.spec.types, language=self.language)
                try:
                    answer = await self.delegates.ask(
                        ENTITIES, self.spec.extractor, question, timeout_ms=DELEGATED_MS
                    )
                    answers[index] = extraction_of(answer, title)
                except DelegateError as exc:
                    self._warn(str(exc))
                    answers[index] = extract(text, title, known)

        async with anyio.create_task_group() as tasks:
            for _ in range(AT_ONCE):
                tasks.start_soon(ask_next)
        return [answers[index] for index in range(len(texts))]


def keep_declared(
    extracted: PassageEntities, types: Sequence[str], dictionary: Mapping[str, tuple[str, str]]
) -> PassageEntities:
    """Return an extraction with only the declared kinds, spelled as declared; the subject of the
    document stays. The dictionary overrides the kind of its names."""
    mentions = [
        replace(mention, kind=dictionary[mention.key][1]) if mention.key in dictionary else mention
        for mention in extracted.mentions
    ]
    wanted = {kind_called(kind): kind for kind in types}
    kept = {
        m.key
        for m in mentions
        if not wanted or kind_called(m.kind) in wanted or m.key == extracted.about
    }
    return replace(
        extracted,
        mentions=tuple(
            replace(mention, kind=wanted.get(kind_called(mention.kind), mention.kind))
            for mention in mentions
            if mention.key in kept
        ),
        relations=tuple(link for link in extracted.relations if {link.source, link.target} <= kept),
    )


def unknown_kinds(spec: EntitySpec) -> list[str]:
    """Return the declared kinds that neither the rules nor the dictionary produce."""
    known = {kind_called(kind) for kind in (*KINDS, *spec.dictionary)}
    return [kind for kind in spec.types if kind_called(kind) not in known]


def extraction_of(answer: EntityAnswer, title: str) -> PassageEntities:
    """Convert the answer of an assistant or a tool to an extraction."""
    about = key_of(title)
    mentions: dict[str, Mention] = {}
    for entity in answer.entities:
        key = key_of(entity.name)
        if key and key not in mentions:
            kind = entity.type.strip().casefold() or "term"
            name = " ".join(entity.name.split())[:LONGEST]
            mentions[key] = Mention(
                key=key, name=name, kind=kind, description=entity.description.strip()
            )
    if about and about not in mentions:
        mentions[about] = Mention(key=about, name=title.strip()[:LONGEST], kind="term")
    links = [
        EntityRelation(
            source=key_of(r.source), target=key_of(r.target), words=" ".join(r.relation.split())
        )
        for r in answer.relations
    ]
    return PassageEntities(
        mentions=tuple(mentions[key] for key in sorted(mentions)),
        relations=tuple(
            link
            for link in dict.fromkeys(links)
            if {link.source, link.target} <= mentions.keys() and link.source != link.target
        ),
        about=about,
    )


class _Spacy:
    """Pipelines by name, loaded once per process and used by one thread at a time."""

    _loaded: dict[str, Any] = {}
    _using = threading.Lock()

    @classmethod
    def names(
        cls, extractor: str, texts: Sequence[str]
    ) -> tuple[list[list[tuple[str, str]]], bool]:
        """Return the entities (name, label) of each text, and whether the pipeline has entity rules
        of its author. Raises ConfigError if it cannot be loaded, ValueError for what its code
        raises."""
        name = extractor.partition(":")[2] or _SPACY_MODEL
        with cls._using:
            if name not in cls._loaded:
                cls._loaded[name] = _pipeline(name)
            pipeline = cls._loaded[name]
            try:
                named = [
                    [(entity.text, entity.label_) for entity in read.ents]
                    for read in pipeline.pipe(texts)
                ]
            # A pipeline may hold third-party components, which raise errors of any class.
            except (
                ValueError,
                TypeError,
                LookupError,
                AttributeError,
                RuntimeError,
                OSError,
                ImportError,
            ) as exc:
                raise ValueError(f"the spaCy pipeline {name!r} failed: {_first_line(exc)}") from exc
        return named, _has_rules(pipeline)


def not_installed(extractor: str) -> ConfigError | None:
    """Return the error for a spaCy extractor that cannot be loaded; None if it can. Loads nothing.
    A folder must be an absolute path; `host.config.packages` resolves relative ones."""
    name = extractor.partition(":")[2] or _SPACY_MODEL
    where, otherwise = (
        f"entities.extractor {SPACY}:{name}",
        f'or set entities.extractor to "{BUILTIN}"',
    )
    if find_spec("spacy") is None:
        return ConfigError(
            f"{where} needs spaCy, which is not installed",
            hint=f"pip install 'groundhook[spacy]', {otherwise}",
        )
    try:
        installed = (Path(name).is_absolute() and Path(name).is_dir()) or bool(
            metadata.distribution(name)
        )
    except (metadata.PackageNotFoundError, ValueError):
        installed = False
    if installed:
        return None
    folder = "a folder with one (from the collection's file or the app's folder)"
    hint = (
        f"python -m spacy download {name}, or name a pipeline that is installed or {folder},"
        f" {otherwise}"
    )
    return ConfigError(f"{where}: there is no such spaCy pipeline", hint=hint)


def _pipeline(name: str) -> Any:
    """Load a pipeline, without the components that names do not need. Raises ConfigError."""
    if (missing := not_installed(f"{SPACY}:{name}")) is not None:
        raise missing
    try:
        import spacy

        pipeline = spacy.load(name)
    except (ImportError, OSError, ValueError, LookupError, TypeError, AttributeError) as exc:
        raise ConfigError(
            f"entities.extractor {SPACY}:{name}: the pipeline cannot be loaded: {_first_line(exc)}",
            hint=f'install it again, or set entities.extractor to "{BUILTIN}"',
        ) from exc
    if not _has_rules(pipeline):  # the patterns of rules may match lemmas or tags
        pipeline.disable_pipes(
            [component for component in _NOT_FOR_NAMES if component in pipeline.pipe_names]
        )
    return pipeline


def _has_rules(pipeline: Any) -> bool:
    return not {"entity_ruler", "span_ruler"}.isdisjoint(pipeline.pipe_names)


def _first_line(exc: Exception) -> str:
    return (str(exc).strip() or type(exc).__name__).splitlines()[0]


def _add_names(
    ruled: PassageEntities, named: Sequence[tuple[str, str]], *, written: bool
) -> PassageEntities:
    """Add the names of a pipeline, with their kinds, to the extraction of the rules. A name that
    shares words with one of the rules' is skipped: it is most likely another spelling, and two
    entities for one thing mislead the walk. Names by an author's entity rules (`written`) are
    always added."""
    mentions = {mention.key: mention for mention in ruled.mentions}
    words = {word for key in mentions for word in key.split()}
    for text, label in named:
        key = key_of(text)
        if label in _NO_NAMES or len(key) < 2 or len(text) > LONGEST:
            continue
        mention = mentions.get(key)
        if mention is None and not written and not words.isdisjoint(key.split()):
            continue
        if mention is None or mention.kind == "term":
            kind = kind_called(label)
            mentions[key] = (
                replace(mention, kind=kind)
                if mention
                else Mention(key=key, name=" ".join(text.split()), kind=kind)
            )
    return replace(ruled, mentions=tuple(mentions[key] for key in sorted(mentions)))
