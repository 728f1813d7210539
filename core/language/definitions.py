"""Recognises sentences that say what something is. Pure; the verbs are those of some European
languages."""

from __future__ import annotations

import re

_DEFINES = re.compile(
    r"^(?P<subject>[^,;:.!?]{1,80}?)\s*+(?:\([^()]*+\)\s*+)?\b(?:(?:is|are|was|were)\b"
    r"(?! (?!used|called|designed|intended|named)[a-z]{2,20}ed\b)|means|refers to|describes"
    r"|stands for|ist|sind|war|bezeichnet|bedeutet|est|sont|désigne|es|son|significa)\b",
    re.I,
)
_ARTICLE = re.compile(
    r"^(?:an?|the|der|die|das|eine?|le|la|les|une?|el|los|las|una)\s+|^l['’]", re.I
)
_MARKUP = '*_"“'


def defined(sentence: str) -> str:
    """Return what a sentence says something of at its beginning, without an article: "hook" for "A
    hook is a file". "" if it does not, as "Hooks are tried in order"."""
    found = _DEFINES.match(_ARTICLE.sub("", sentence.lstrip(_MARKUP)))
    return found["subject"] if found else ""
