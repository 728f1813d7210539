"""Questions in languages that are written without spaces, cut into what they ask about: Chinese,
Japanese, Thai. Pure.

No dictionary: words that questions are made of are cut out, unless they stand inside a longer word
that is known to hold one, and what is left between them are the topics. In Japanese the change of
letters shows particles as well.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import chain
from pathlib import Path

# Cut out wherever they stand, longer ones first; and words that hold one of them and stay whole.
# Particles of Japanese, told by the letters beside them: behind a name or a word in Chinese signs.
_KANA = "ぁ-ん"
_PARTICLES = re.compile(
    rf"を|(?<=[^{_KANA}\s])(?:からの|までの|への|での|との|には|では|とは|から|まで|より|は|が|に|で|と|へ|も|の|や)(?=[^{_KANA}]|$)"
    rf"|(?<=[^{_KANA}\s])(?:は|が)(?=[{_KANA}])|(?<=[^{_KANA}\s])で(?=[{_KANA}])(?![すきもし])"
    rf"|(?<=[{_KANA}])の(?=[^{_KANA}\s])"
)
_SIGNS = re.compile(r"[\s\u3000、。，．！？「」『』（）()\[\]【】・…:：;；,!?\"“”]+")


@cache
def _rule(language: str) -> re.Pattern[str]:
    """Finds what is cut out of texts in a language, and, as `whole`, the words that are not cut
    though they hold such a word."""
    text = Path(__file__).with_name("unspaced_words.txt").read_text(encoding="utf-8")
    words = {
        head: part.split() for head, part in re.findall(r"^\[(.+)\]\n([^\[]*)", text, flags=re.M)
    }
    return re.compile(
        rf"(?P<whole>{_either(words[f'{language} whole'])})|(?:{_either(words[f'{language} cut'])})"
    )


def _either(words: list[str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))


def topics(text: str, language: str) -> list[str]:
    """What is left of a question when its function words are cut out, in its order; empty when
    nothing is."""
    rest = _rule(language).sub(lambda found: found["whole"] or " ", text)
    if language == "ja":
        rest = _PARTICLES.sub(" ", rest)
    return list(chain.from_iterable(part.split() for part in _SIGNS.split(rest)))
