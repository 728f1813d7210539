"""The languages that a collection can be analysed in: those of `core.language.catalogue`, by their
English names, and `plain`. Pure.

The language of a collection that sets `analyser.language` is not recognised but used as it is.
"""

from __future__ import annotations

from functools import cache, lru_cache

from groundhook.core.errors import ConfigError, suggestion
from groundhook.core.language.catalogue import Language, language, languages
from groundhook.core.language.detect import detect

ANALYSER = 3  # the version of `analyse`: raised when questions no longer match stored tokens
PLAIN = "plain"  # no stemming, no stop words


@cache
def analysed() -> frozenset[str]:
    """Return the names of all languages with an analyser."""
    return frozenset({PLAIN, *(each.name for each in languages().values())})


@cache
def _recognised() -> frozenset[str]:
    """Return the codes of the languages that a passage or a question is taken to have: those with
    frequent words, and the usual one of each script. Stored passages have no others."""
    return frozenset(
        code
        for code, each in languages().items()
        if each.usual or each.script == "cjk" or each.lines("frequent")
    )


@lru_cache(maxsize=256)  # adding a document needs that of a passage twice
def language_of(text: str) -> str:
    """Return the name of the language of a text; `plain` if none is recognised."""
    code = detect(text, among=_recognised())
    return languages()[code].name if code else PLAIN


@lru_cache(maxsize=256)
def language_of_question(text: str) -> str:
    """Return the name of the language of a question; "" if none is recognised."""
    code = detect(text, question=True, among=_recognised())
    return languages()[code].name if code else ""


def script_of(name: str) -> str:
    """Return the script that a language is written in; "" for `plain`."""
    found = _named(name)
    return found.script if found else ""


def stemmers(name: str) -> dict[str, str]:
    """Return which stemmers a collection of this language uses: script of a word → name of the
    stemmer's language."""
    own = _named(name)
    if own is None:
        return {}
    usual = {each.script: each.name for each in languages().values() if each.usual and each.stemmer}
    others = {script: stemmer for script, stemmer in usual.items() if script != own.script}
    return others | ({own.script: own.name} if own.stemmer else {})


def function_words(name: str) -> frozenset[str]:
    """Return words of this language that do not show the topic of a question."""
    found = _named(name)
    return found.words("frequent", "function") if found else frozenset()


def _named(name: str) -> Language | None:
    return None if name == PLAIN else language(name)


def normalise_language(declared: str, collection: str) -> str:
    """Return `declared` in lower case, which may be "auto". Raises ConfigError for a language
    without an analyser."""
    name = declared.lower()
    if name != "auto" and name not in analysed():
        hint = suggestion(name, ["auto", *sorted(analysed())])
        raise ConfigError(
            f"collection {collection!r}: no analyser for language {declared!r}", hint=hint
        )
    return name
