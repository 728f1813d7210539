"""Sentences for readers, in the language of their question. Pure.

Each line of a section for sentences begins with its key, which a colon ends. A language without the
section has English.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from groundhook.core.language.catalogue import language
from groundhook.core.language.detect import detect

FALLBACK = "en"
_LONGEST = 1000  # characters of a question by which its language is recognised


def phrases(section: str, question: str) -> Mapping[str, str]:
    """Return the sentences of a section by their keys."""
    return _phrases(section, detect(question[:_LONGEST], question=True) or FALLBACK)


@cache
def _phrases(section: str, code: str) -> Mapping[str, str]:
    own = language(code)
    lines = own.lines(section) if own else ()
    if not lines:
        return _phrases(section, FALLBACK)
    pairs = (line.partition(": ") for line in lines)
    return {key: sentence for key, _, sentence in pairs}
