"""Topics of questions in languages that are written without spaces: Chinese, Japanese, Thai. Pure.

No dictionary is used. Function words are cut out unless they are part of a longer known word, and
the text between them are the topics. In Japanese, the change of script also shows particles.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from itertools import chain

# Japanese particles are recognized by the script before them: a name or a word in kanji.
_KANA = "ぁ-ん"
_PARTICLES = re.compile(
    rf"を|(?<=[^{_KANA}\s])(?:からの|までの|への|での|との|には|では|とは|から|まで|より|は|が|に|で|と|へ|も|の|や)(?=[^{_KANA}]|$)"
    rf"|(?<=[^{_KANA}\s])(?:は|が)(?=[{_KANA}])|(?<=[^{_KANA}\s])で(?=[{_KANA}])(?![すきもし])"
    rf"|(?<=[{_KANA}])の(?=[^{_KANA}\s])"
)
_SIGNS = re.compile(r"[\s\u3000、。，．！？「」『』（）()\[\]【】・…:：;；,!?\"“”]+")


@cache
def _cut_pattern(language: str) -> re.Pattern[str]:
    """Return the pattern of the function words of a language, longest first, and of the words that
    contain one and are kept (the group `whole`)."""
    text = (files("groundhook.handlers.web") / "unspaced_words.txt").read_text(encoding="utf-8")
    words = {
        head: part.split() for head, part in re.findall(r"^\[(.+)\]\n([^\[]*)", text, flags=re.M)
    }
    whole, cut = (_alternatives(words[f"{language} {kind}"]) for kind in ("whole", "cut"))
    return re.compile(rf"(?P<whole>{whole})|(?:{cut})")


def _alternatives(words: list[str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))


def topics(text: str, language: str) -> list[str]:
    """Return the parts of a question between its function words, in order; empty if it has only
    function words."""
    rest = _cut_pattern(language).sub(lambda found: found["whole"] or " ", text)
    if language == "ja":
        rest = _PARTICLES.sub(" ", rest)
    return list(chain.from_iterable(part.split() for part in _SIGNS.split(rest)))
