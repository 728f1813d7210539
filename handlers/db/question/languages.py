"""Which language a question is in: the one of whose words it has most. Pure."""

from __future__ import annotations

from functools import lru_cache

from groundhook.handlers.db.question.tokens import tokens_of
from groundhook.handlers.db.question.vocabulary import (
    Vocabulary,
    alphabet,
    languages,
    vocabulary,
)

AUTO = "auto"


@lru_cache(maxsize=1024)
def language_of(question: str) -> str:
    """The language whose words occur most often in the question; of equals the first, and English
    is the first of all. A question in an alphabet that only one language is written in is in that
    one."""
    signs = set(question)
    possible = [one for one in languages() if not (own := alphabet(one)) or own & signs]
    counts = {language: _known(question, vocabulary(language)) for language in possible}
    return max(counts, key=lambda language: counts[language])


def words_for(language: str, question: str) -> Vocabulary:
    """The words to read a question with; `language` may be `auto`. Raises SourceNotConfigured for
    one without a file."""
    return vocabulary(language_of(question) if language == AUTO else language)


def _known(question: str, words: Vocabulary) -> int:
    letters = [sign for sign in question if sign.isalpha()]
    own = sum(sign in words.letters for sign in letters)
    if words.letters:
        return 100 if own * 2 > len(letters) else 0
    return sum(token.norm in words.single for token in tokens_of(question))
