"""The sentences of references that may be quoted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from groundhook.core.language.terms import terms
from groundhook.core.types.search import Item
from groundhook.host.llm.sentences import Sentence, sentences
from groundhook.host.llm.shape import only_points

_LAST_RUN = re.compile(r"(.*?)(?<![A-Za-z0-9])([A-Za-z0-9]++)([^A-Za-z0-9]*+)", re.S)


@dataclass(frozen=True)
class Candidate:
    """A sentence that may be quoted: the index of its item in the references, and its place in the
    item. `continues`: it begins in the middle of a sentence, which was cut or has an example
    in it."""

    item: int
    place: int
    sentence: Sentence
    continues: bool = False

    @property
    def text(self) -> str:
        return self.sentence.text

    @cached_property
    def terms(self) -> frozenset[str]:
        return frozenset(terms(self.text))


def candidates(references: Sequence[Item]) -> list[Candidate]:
    """Return every sentence of the references that may be quoted. Database rows have none. A
    sentence with text that looks like a citation marker, or below a heading with it, is omitted,
    since it would read as a citation of another source; so is the title of an item, which the
    answer shows above its sentences, if there are others."""
    marker = _marker_pattern(references)
    found: list[Candidate] = []
    for index, item in enumerate(references):
        if item.type == "db":
            continue
        mine = [
            Candidate(index, place, sentence, _continues(sentence, item.title))
            for place, sentence in enumerate(sentences(item.content))
            if marker is None or not marker.search(_shown(sentence))
        ]
        title = _normalize(item.title)
        found += [each for each in mine if _normalize(each.text) != title] or mine
    # What only points elsewhere answers nothing itself.
    return [each for each in found if not only_points(each.text)]


def _shown(sentence: Sentence) -> str:
    return f"{sentence.section}\n{sentence.heading}\n{sentence.columns} {sentence.text}"


def _continues(sentence: Sentence, title: str) -> bool:
    """Return whether a sentence begins with a small letter, and not with the name of what it is
    about."""
    first = terms(sentence.text.split(None, 1)[0]) if sentence.text.strip() else []
    return (
        sentence.kind == "prose"
        and sentence.text[:1].islower()
        and not set(first) & set(terms(f"{title} {sentence.heading}"))
    )


def _normalize(text: str) -> str:
    return " ".join(text.split()).rstrip(".:").casefold()


def _marker_pattern(references: Sequence[Item]) -> re.Pattern[str] | None:
    """Return the pattern of citation markers, from one of the references: the id is the last run of
    letters and digits."""
    for item in references:
        found = _LAST_RUN.fullmatch(item.citation_id)
        if found and (found[1] or found[3]):
            return re.compile(re.escape(found[1]) + r"[A-Za-z0-9]+" + re.escape(found[3]))
    return None
