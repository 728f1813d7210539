"""The collections with which `bench.retrieval` and `bench.ablation` judge the ranking.

Seven are published ones in BEIR's layout (one of them with questions in other languages); the
others are made here:

- `mixed`: the English, Arabic and Chinese paragraphs of XQuAD in one collection. The right results
  of a question are all versions of its paragraph (`mixed`), the version in its own language
  (`mixed-same`), or, where a third of the paragraphs lack that language, the versions in the others
  (`mixed-cross`). `without-en`, `without-ar` and `without-zh` have the paragraphs of two languages
  and the questions of the third; `forty` has forty paragraphs, each in one of the languages, and
  their questions in the two others.
- `catalogue-en`: needs in English over the Hebrew catalogue of data.gov.il.
- `paraphrase`: questions about this repository's documents that share no content word with the
  section which answers them.

Questions are in one of two halves by a fixed rule: settings are chosen on one (`tune`) and judged
on the other (`judge`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal
from zlib import crc32

from groundhook.handlers.kb.embed import embedding_tokens
from groundhook.handlers.kb.ingest.build import text_with_headings
from groundhook.handlers.kb.ingest.chunk import chunks
from groundhook.handlers.kb.reading.files import read

HERE = Path(__file__).parent
OTHER_QUESTIONS = HERE / "other_questions"
OTHER_NAMES = {"xquad-en": "other-en", "govil-title": "catalogue-en"}
LANGUAGES = ("en", "ar", "zh")
Half = Literal["tune", "judge", "all"]


@dataclass(frozen=True)
class Collection:
    """Texts by id, each beginning with its title where it has one, as passages do that are added to
    a knowledge base; titles by id; questions by id, and for each question the grades of its
    documents."""

    name: str
    documents: Mapping[str, str]
    titles: Mapping[str, str]
    questions: Mapping[str, str]
    related: Mapping[str, Mapping[str, int]]

    def content(self, id: str) -> str:
        """The text without its title, under which a knowledge base keeps it."""
        return self.documents[id].removeprefix(self.titles[id]).strip()

    def half(self, half: Half) -> Collection:
        """The same documents with one half of the questions."""
        if half == "all":
            return self
        wanted = half == "judge"
        kept = {
            id: text
            for id, text in self.questions.items()
            if bool(crc32(id.encode()) & 1) == wanted
        }
        return replace(self, questions=kept)


def collections(data: Path, only: Sequence[str] = ()) -> Iterator[Collection]:
    """Those of the folder, and those made here; only those named, when some are."""
    for name, made in _all(data):
        if not only or name in only:
            yield made()


def load(folder: Path, other: Path | None = None) -> Collection:
    """A folder in BEIR's layout; with the questions of another folder where one is given."""
    questions = other or folder
    related: dict[str, dict[str, int]] = {}
    for line in (questions / "qrels/test.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        question, document, grade = line.split("\t")
        if int(grade) > 0:
            related.setdefault(question, {})[document] = int(grade)
    documents = list(_rows(folder / "corpus.jsonl"))
    return Collection(
        name=folder.name if other is None else OTHER_NAMES.get(folder.name, f"{folder.name}-other"),
        documents={
            row["_id"]: f"{row.get('title', '')}\n\n{row['text']}".strip() for row in documents
        },
        titles={row["_id"]: row.get("title", "").strip() for row in documents},
        questions={
            row["_id"]: row["text"]
            for row in _rows(questions / "queries.jsonl")
            if row["_id"] in related
        },
        related=related,
    )


def documentation() -> dict[str, tuple[str, str, str]]:
    """The passages of this repository's documents by id → (document, headings, content), cut as a
    knowledge base cuts them."""
    found: dict[str, tuple[str, str, str]] = {}
    root = HERE.parent
    for path in (
        root / "README.md",
        root / "ARCHITECTURE.md",
        *sorted((root / "docs").glob("*.md")),
    ):
        document = read(path.read_bytes(), str(path))
        for chunk in chunks(document, size=400, overlap=40, by="heading", count=embedding_tokens):
            found[f"{path.name}#{len(found)}"] = (
                path.name,
                text_with_headings(document.title, chunk),
                chunk.content,
            )
    return found


def _all(data: Path) -> Iterator[tuple[str, Callable[[], Collection]]]:
    for folder in sorted(path.parent for path in data.glob("*/corpus.jsonl")):
        yield folder.name, partial(load, folder)
        if (other := OTHER_QUESTIONS / folder.name).is_dir():
            name = OTHER_NAMES.get(folder.name, f"{folder.name}-other")
            yield name, partial(load, folder, other)
    if all((data / f"xquad-{language}" / "corpus.jsonl").is_file() for language in LANGUAGES):
        yield "mixed", partial(_mixed, data)
        yield "mixed-same", partial(_same, data)
        yield "mixed-cross", partial(_cross, data)
        for language in LANGUAGES:
            yield f"without-{language}", partial(_without, data, language)
        yield "forty", partial(_forty, data)
    yield "paraphrase", _paraphrase


def _mixed(data: Path) -> Collection:
    """Questions of every language, each with all versions of its paragraph."""
    sets = {language: load(data / f"xquad-{language}") for language in LANGUAGES}
    return Collection(
        name="mixed",
        documents={
            f"{at}:{id}": text for at, one in sets.items() for id, text in one.documents.items()
        },
        titles={f"{at}:{id}": "" for at, one in sets.items() for id in one.documents},
        questions={
            f"{at}:{id}": text for at, one in sets.items() for id, text in one.questions.items()
        },
        related={
            f"{at}:{id}": {f"{other}:{own}": 1 for own in grades for other in LANGUAGES}
            for at, one in sets.items()
            for id, grades in one.related.items()
        },
    )


def _same(data: Path) -> Collection:
    whole = _mixed(data)
    own = {
        id: {document: 1 for document in grades if document[:3] == id[:3]}
        for id, grades in whole.related.items()
    }
    return replace(whole, name="mixed-same", related=own)


def _cross(data: Path) -> Collection:
    """Each paragraph without its version in one of the languages, in which the questions are that
    look for the others."""
    whole = _mixed(data)
    paragraphs = sorted({id[3:] for id in whole.documents})
    missing = {id: LANGUAGES[at % len(LANGUAGES)] for at, id in enumerate(paragraphs)}
    kept = {id: text for id, text in whole.documents.items() if missing[id[3:]] != id[:2]}
    related = {
        id: {document: 1 for document in grades if document in kept}
        for id, grades in whole.related.items()
        if all(missing[document[3:]] == id[:2] for document in grades)
    }
    return Collection(
        name="mixed-cross",
        documents=kept,
        titles=dict.fromkeys(kept, ""),
        questions={id: whole.questions[id] for id in related},
        related=related,
    )


def _without(data: Path, language: str) -> Collection:
    """The paragraphs in the other languages alone; the right results of a question in `language`
    are all versions of its paragraph."""
    whole = _mixed(data)
    kept = {id: text for id, text in whole.documents.items() if id[:2] != language}
    questions = {id: text for id, text in whole.questions.items() if id[:2] == language}
    return Collection(
        name=f"without-{language}",
        documents=kept,
        titles=dict.fromkeys(kept, ""),
        questions=questions,
        related={
            id: {document: 1 for document in whole.related[id] if document in kept}
            for id in questions
        },
    )


def _forty(data: Path) -> Collection:
    """Forty paragraphs, each in one of the languages, and their questions in the two others."""
    whole = _mixed(data)
    paragraphs = sorted({id[3:] for id in whole.documents})[::6]
    kept = {f"{LANGUAGES[at % len(LANGUAGES)]}:{id}" for at, id in enumerate(paragraphs)}
    related = {
        id: {document: 1 for document in grades if document in kept}
        for id, grades in whole.related.items()
    }
    asked = {
        id: own for id, own in related.items() if own and not any(id[:2] == one[:2] for one in own)
    }
    return Collection(
        name="forty",
        documents={id: text for id, text in whole.documents.items() if id in kept},
        titles=dict.fromkeys(kept, ""),
        questions={id: whole.questions[id] for id in asked},
        related=asked,
    )


def _paraphrase() -> Collection:
    """Return the collection of paraphrases; questions about sections that were renamed are left
    out."""
    passages = documentation()
    rows = {str(number): row for number, row in enumerate(_rows(HERE / "paraphrases.jsonl"))}
    related = {
        number: {
            id: 1
            for id, (document, headings, _) in passages.items()
            if document == row["document"] and headings.rpartition(" › ")[2] == row["section"]
        }
        for number, row in rows.items()
    }
    return Collection(
        name="paraphrase",
        documents={
            id: f"{headings}\n\n{content}" for id, (_, headings, content) in passages.items()
        },
        titles={id: headings for id, (_, headings, _) in passages.items()},
        questions={number: row["question"] for number, row in rows.items() if related[number]},
        related=related,
    )


def _rows(path: Path) -> Iterable[dict[str, Any]]:
    return map(json.loads, path.read_text(encoding="utf-8").splitlines())
