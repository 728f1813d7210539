"""Topics of questions in languages that are written without spaces: Chinese, Japanese, Thai. Pure.

No dictionary is used. Function words are cut out unless they are part of a longer known word, and
the text between them are the topics. In Japanese, the change of script also shows particles.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from itertools import chain

from groundhook.core.language.catalogue import Language, languages

# Japanese particles are recognized by the script before them: a name or a word in kanji.
_KANA = "ぁ-ん"
_PARTICLES = re.compile(
    rf"を|(?<=[^{_KANA}\s])(?:からの|までの|への|での|との|には|では|とは|から|まで|より|は|が|に|で|と|へ|も|の|や)(?=[^{_KANA}]|$)"
    rf"|(?<=[^{_KANA}\s])(?:は|が)(?=[{_KANA}])|(?<=[^{_KANA}\s])で(?=[{_KANA}])(?![すきもし])"
    rf"|(?<=[{_KANA}])の(?=[^{_KANA}\s])"
)
_SIGNS = re.compile(r"[\s\u3000、。，．！？「」『』（）()\[\]【】・…:：;；,!?\"“”]+")


@cache
def _cut_pattern(code: str) -> re.Pattern[str]:
    """Return the pattern of the function words of a language, longest first, and of the words that
    contain one and are kept (the group `whole`)."""
    known = languages()[code]
    whole, cut = (_alternatives(known.words(section)) for section in ("whole", "cut"))
    return re.compile(rf"(?P<whole>{whole})|(?:{cut})")


def _alternatives(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=lambda word: (-len(word), word))))


def topics(text: str, language: Language) -> list[str]:
    """Return the parts of a question between its function words, in order; empty if it has only
    function words."""
    rest = _cut_pattern(language.code).sub(lambda found: found["whole"] or " ", text)
    if language.code == "ja":
        rest = _PARTICLES.sub(" ", rest)
    return list(chain.from_iterable(part.split() for part in _SIGNS.split(rest)))
