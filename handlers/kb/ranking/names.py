"""Takes the name of a product off a question about its documentation. Pure.

A name that nearly every document has pulls the question to the passages that have it in their
headings, and tells nothing about what is asked. It is recognised by numbers: its share of the
passages and of the documents, and how often it is written with a capital inside sentences, which
tells a name from a subject. Names in scripts without capitals are not recognised.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cache

from groundhook.core.language.catalogue import all_words
from groundhook.core.language.scripts import SCRIPTS
from groundhook.handlers.kb.analyse import words_of

SHARE, OF_DOCUMENTS = 0.2, 0.8  # of the passages and documents that have a name, at least
FEW, SHARE_OF_FEW = 5, 0.4  # with fewer documents only passages count
CAPITALS = 1 / 6  # of a name's places inside sentences
SAMPLE = 60  # passages that are read for its capitals
_LONGEST = 2_000  # characters of a question that is changed
_LETTERS = "".join(SCRIPTS[script] for script in ("latin", "greek", "cyrillic", "armenian"))
_PART = rf"[{_LETTERS}\d/@-]"
_WORD = re.compile(rf"(?<!{_PART})[{_LETTERS}][{_LETTERS}\d]+(?!{_PART})(?!\.\w)")
_AFTER = re.compile(r"^\s*(?:中|里|上|で|の)")  # written behind a name
_SIGNS = re.compile(r"(?<!\s)\s++([?!.,:;？！。，])")
_CODE = re.compile(r"`[^`]*`")
_BEGINS = ".!?:;\n#*>|-\"'“(["
_GENERAL = ("frequent", "function", "asking", "relating")


def possible_names(question: str) -> list[str]:
    """Return the words of a question that may be names, each once; none of a long text."""
    found = dict.fromkeys(_WORD.findall(question)) if len(question) <= _LONGEST else {}
    return [word for word in found if word.lower() not in _general()]


@cache
def _general() -> frozenset[str]:
    return frozenset().union(*map(all_words, _GENERAL))


def is_everywhere(having: int, passages: int, documents_having: int, documents: int) -> bool:
    """Return whether so many of the passages and documents have a word that it may be the name of
    what all are about."""
    if documents < FEW:
        return having > SHARE_OF_FEW * passages
    return having > SHARE * passages and documents_having >= OF_DOCUMENTS * documents


def is_capitalised(word: str, contents: Iterable[str]) -> bool:
    """Return whether a sixth of the word's places inside sentences has a capital, without those in
    code and paths."""
    pattern = re.compile(rf"(?<![\w./\\@-]){re.escape(word)}(?![\w/\\@-])", re.IGNORECASE)
    places = capitals = 0
    for content in contents:
        text = _CODE.sub(" ", content)
        for found in pattern.finditer(text):
            before = text[max(0, found.start() - 8) : found.start()].rstrip(" ")
            if before and before[-1] not in _BEGINS:
                places += 1
                capitals += found[0][:1].isupper()
    return places > 0 and capitals >= CAPITALS * places


def without_names(question: str, names: Collection[str]) -> str:
    """Return the question without these names and the prepositions before them; the whole question
    if no other word with a topic would be left."""
    if not names:
        return question
    text = question
    for name in names:
        word = re.compile(rf"(?<!{_PART}){re.escape(name)}(?!{_PART})(?:['’]s\b)?", re.IGNORECASE)
        kept, *rest = word.split(text)
        text = " ".join([_before(kept), *(_before(_AFTER.sub("", each)) for each in rest[:-1])])
        text = f"{text} {_AFTER.sub('', rest[-1])}" if rest else kept
    text = _SIGNS.sub(r"\1", " ".join(text.split())).strip(" ,:;")
    topics = [word for word in words_of(text) if word.lower() not in _general()]
    return text if topics else question


def _before(text: str) -> str:
    """Return the text before a name without the preposition that leads to it."""
    start, _, last = text.rstrip().rpartition(" ")
    if last.lower() in all_words("before names"):
        return start
    return text.rstrip().removesuffix("在")
