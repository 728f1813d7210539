"""Sentences for readers, in the language of their conversation. Pure.

Each line of a section for sentences begins with its key, which a colon ends. A language without the
section has English.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Literal

from groundhook.core.language.catalogue import language, languages
from groundhook.core.language.detect import detect

FALLBACK = "en"
_LONGEST = 1000  # characters of a question by which its language is recognised
_LONGEST_PLEASANTRY = 60
_SPACED = re.compile(r"[\W_]+")

Pleasantry = Literal["hello", "thanks"]


def phrases(section: str, question: str) -> Mapping[str, str]:
    """Return the sentences of a section by their keys, in the language of a question."""
    return sentences(section, spoken_languages(question), {})


def spoken_languages(question: str, earlier: str = "", locale: str = "") -> Iterator[str]:
    """Yield the codes of the languages in which a conversation may be answered, the best first:
    that of the question, else of what was asked `earlier`, else the locale, else English."""
    if kind := pleasantry(question, locale):
        yield kind[1]
    for text in (question, earlier):
        if code := detect(text[:_LONGEST], question=True):
            yield code
    yield from filter(None, (locale, FALLBACK))


def sentences(
    section: str,
    codes: Iterator[str],
    own: Mapping[str, str | Mapping[str, str]],
) -> dict[str, str]:
    """Return the sentences of a section in the first of the languages that has it. Those of `own`
    that are not empty replace them: a text, or texts by language, of which the first stands for
    languages that it lacks."""
    given = list(codes)
    code = next(each for each in given if (known := language(each)) and known.lines(section))
    found = dict(_phrases(section, code))
    for key, text in own.items():
        if isinstance(text, str):
            chosen = text
        else:
            chosen = next((text[each] for each in given if each in text), "") or next(
                iter(text.values()), ""
            )
        if chosen:
            found[key] = chosen
    return found


@lru_cache(maxsize=256)
def pleasantry(question: str, locale: str = "") -> tuple[Pleasantry, str] | None:
    """Return whether a question is only a greeting or only thanks, and the code of its language;
    None for everything else. The locale decides between languages that share a greeting."""
    if len(question) > _LONGEST_PLEASANTRY:
        return None
    words = _SPACED.sub(" ", question.casefold()).strip()
    known = _pleasantries().get(words, {})
    preferred = language(locale) if locale else None
    code = preferred.code if preferred and preferred.code in known else next(iter(known), "")
    return (known[code], code) if code else None


@cache
def _pleasantries() -> Mapping[str, Mapping[str, Pleasantry]]:
    """Return by text the languages in which it is a pleasantry, English first."""
    found: dict[str, dict[str, Pleasantry]] = {}
    kinds: tuple[tuple[str, Pleasantry], ...] = (("greetings", "hello"), ("thanks", "thanks"))
    for each in sorted(languages().values(), key=lambda each: each.code != FALLBACK):
        for section, kind in kinds:
            for line in each.lines(section):
                text = _SPACED.sub(" ", line.casefold()).strip()
                found.setdefault(text, {})[each.code] = kind
    return found


@cache
def _phrases(section: str, code: str) -> Mapping[str, str]:
    own = language(code)
    lines = own.lines(section) if own else ()
    if not lines:
        return _phrases(section, FALLBACK)
    pairs = (line.partition(": ") for line in lines)
    return {key: sentence for key, _, sentence in pairs}
