"""From a question to what one types into a search engine: rules and stop words, no model. Pure.

Kept whole: quoted phrases, names of several words, numbers with their units and comparisons ("under
$100"). Dropped: what only makes a sentence of it. A short query, and one in a language without
words here, passes unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from groundhook.handlers.web.stopwords import (
    CAPITAL_PRONOUNS,
    QUANTITIES,
    UNSPACED,
    code_of,
    is_function_word,
    language_of,
    lead_in,
    without_ending,
)
from groundhook.handlers.web.unspaced import topics

SHORT = 4  # words; a query of no more that asks nothing is taken as typed
LONGEST_QUERY = 380  # characters; search engines refuse more than about 400

_QUOTED = r"[\"“”„«»״](?P<quoted>[^\"“”„«»״]{2,80})[\"“”„«»״]"
_TOKEN = re.compile(
    rf"{_QUOTED}|(?P<word>[^\s,;!?()\[\]{{}}<>\"“”„«»״。，！？、؟،؛।۔։]+)|(?P<stop>[,;!?()\[\]。，"
    r"！？、؟،؛।۔։]|(?<=[.!?])\s)"
)
_QUESTION_MARKS = ("?", "？", "؟", ";", "\u037e")  # the last two in Greek
_WITHIN = {
    0x055E: None,
    0x055B: None,
    0x055C: None,
}  # marks of questions, stress and wonder within Armenian words
_SENTENCE = re.compile(r"(?<=[.!?。！？؟।۔։])\s+|(?<=[。！？])|\n+")
_TRAILING = re.compile(r"[.:…'’\-–—*_`]+$")
_LEADING = re.compile(r"^['’‘*_`–—¿¡]+")
_NUMBER = re.compile(r"^[+-]?[$€£¥₪₹]?\d[\d.,:/-]*(?:[%°€$£¥₪₹]|[a-zA-Z]{1,3})?$")
_OPERATOR = re.compile(r"^(?:-?(?:site|filetype|intitle|inurl|before|after):\S+|-\w\S*|OR|AND)$")
_UNIT_WORDS = """
percent km mi mile miles m cm mm ft feet inch inches kg g mg lb lbs oz l ml gb mb tb kb ghz mhz hz
kw kwh w v
second seconds minute minutes hour hours day days week weeks month months year years
dollars dollar euros euro usd eur gbp ils nis million billion thousand degrees celsius fahrenheit
tage wochen monate jahre stunden minuten uhr prozent millionen milliarden שקל שקלים ימים שנים
"""
_COMPARING_WORDS = """
under over below above less more than least most between since before after until within around
about
unter über bis seit vor nach mindestens höchstens zwischen עד מעל מתחת
"""
_JOINING_WORDS = "of the de la le du von van der den and und y et for & al"
_UNITS = frozenset(_UNIT_WORDS.split())
_COMPARISONS = frozenset(_COMPARING_WORDS.split())
_JOINING = frozenset(_JOINING_WORDS.split())
_CAPITALS_SAY_NOTHING = ("de",)  # every noun has one, so no name is told by them


@dataclass(frozen=True)
class Keywords:
    """What to search for: the query as it is sent, the phrases it is made of, and how much each
    counts, 0-1."""

    query: str
    phrases: tuple[str, ...]
    weights: tuple[float, ...] = ()


@dataclass(frozen=True)
class _Phrase:
    text: str
    place: int
    weight: float


def extract(text: str, *, most: int = 10, language: str = "auto") -> Keywords:
    """At most `most` phrases in the order of the text; the query joins them with spaces and has at
    most LONGEST_QUERY characters. Never empty for a text that is not blank."""
    text = " ".join(text.replace("\0", " ").split())
    if text.isupper() and len(text.split()) > SHORT:
        text = text.lower()  # shouting makes no names
    spoken = language_of(text) if language == "auto" else code_of(language)
    if spoken in UNSPACED:
        return _of_topics(text, topics(text, spoken), most)
    if not spoken:
        return _unchanged(text)
    sentences = [sentence for sentence in _SENTENCE.split(text) if sentence.strip()]
    if len(text.split()) <= SHORT and len(sentences) == 1 and not _asks(text, spoken):
        return _unchanged(text)
    phrases: list[_Phrase] = []
    for sentence in sentences:
        bonus = 0.5 if sentence.rstrip().endswith(_QUESTION_MARKS) else 0.0
        for phrase in _phrases(_polite_off(sentence, spoken), spoken, len(phrases)):
            phrases.append(_Phrase(phrase.text, phrase.place, phrase.weight + bonus))
    return _joined(_best(_distinct(phrases), most)) if phrases else _unchanged(text)


def weighed(words: Sequence[tuple[str, float]], *, most: int) -> Keywords:
    """Words that somebody else chose and weighed, as a query: at most `most`, the weightiest, in
    the order they were given."""
    clean = [(" ".join(text.split()), weight) for text, weight in words]
    return _joined(
        _best(
            _distinct(
                [_Phrase(text, at, weight) for at, (text, weight) in enumerate(clean) if text]
            ),
            most,
        )
    )


# ------------------------------------------------------------------------------------------ phrases


@dataclass
class _Word:
    text: str
    quoted: bool = False
    starts: bool = False  # the first word of a sentence, which has a capital whatever it is
    breaks: bool = False  # a comma or the like: no phrase reaches over it

    @property
    def low(self) -> str:
        return self.text.casefold()

    @property
    def capital(self) -> bool:
        return self.text[:1].isupper() and not self.quoted

    @property
    def number(self) -> bool:
        return _NUMBER.match(self.text) is not None


def _words(sentence: str) -> list[_Word]:
    found: list[_Word] = []
    for match in _TOKEN.finditer(sentence):
        if match["quoted"]:
            found.append(_Word(" ".join(match["quoted"].split()), quoted=True))
        elif match["word"]:
            word = _LEADING.sub("", match["word"].translate(_WITHIN))
            trimmed = _TRAILING.sub("", word) if not _OPERATOR.match(word) else word
            if trimmed and any(character.isalnum() or character == "&" for character in trimmed):
                found.append(_Word(trimmed, starts=not found))
        elif found:
            found.append(_Word("", breaks=True))
    return found


def _phrases(sentence: str, language: str, offset: int) -> Iterator[_Phrase]:
    words = _words(sentence)
    at = 0
    while at < len(words):
        end, weight = _phrase_at(words, at, language)
        if weight:
            text = " ".join(without_ending(word.text, language) for word in words[at:end])
            yield _Phrase(f'"{text}"' if words[at].quoted else text, offset + at, weight)
        at = end


def _phrase_at(words: Sequence[_Word], at: int, language: str) -> tuple[int, float]:
    """Where the phrase that begins at `at` ends, and its weight; 0 for what is dropped."""
    word = words[at]
    if word.breaks:
        return at + 1, 0
    if word.quoted or _OPERATOR.match(word.text):
        return at + 1, 3
    if end := _number_end(words, at):
        return end, 2
    capitals = language not in _CAPITALS_SAY_NOTHING
    if capitals and (end := _name_end(words, at, language)) > at + 1:
        return end, 2.5
    quantity = " ".join(other.low for other in words[at : at + 2])
    if quantity in QUANTITIES:
        return at + 2, 1
    acronym = (
        len(word.text) > 1 and word.text.isupper()
    )  # IT, AI: a name also where a sentence begins
    name = (
        capitals
        and word.capital
        and (acronym or not word.starts)
        and word.low not in CAPITAL_PRONOUNS
    )
    if is_function_word(word.low, language) and not name:
        return at + 1, 0
    return at + 1, 2 if name else 1 + min(len(word.text), 12) / 24


def _number_end(words: Sequence[_Word], at: int) -> int:
    """Behind a number with its comparison and unit, or 0: `under $100`, `at least 5 km`, `between 5
    and 10 GB`."""
    start = at
    while (
        at < len(words)
        and at - start < 3
        and (words[at].low in _COMPARISONS or words[at].low == "at")
    ):
        at += 1
    if at == len(words) or not words[at].number:
        return 0
    at += 1
    if at + 1 < len(words) and words[start].low in ("between", "zwischen") and words[at + 1].number:
        at += 2
    return at + 1 if at < len(words) and words[at].low in _UNITS else at


def _name_end(words: Sequence[_Word], at: int, language: str) -> int:
    """Behind a name of several capitalised words, which may hold `of the` and numbers, or `at` when
    there is none."""
    first = words[at]
    if (
        not first.capital
        or first.low in CAPITAL_PRONOUNS
        or (first.starts and is_function_word(first.low, language))
    ):
        return at
    end = at + 1
    while end < len(words) and not words[end].breaks and not words[end].quoted:
        ahead = end
        while ahead < len(words) and words[ahead].low in _JOINING and not words[ahead].capital:
            ahead += 1
        if ahead == len(words) or words[ahead].breaks or words[ahead].low in CAPITAL_PRONOUNS:
            break
        if not (words[ahead].capital or (words[ahead].number and ahead == end)):
            break
        end = ahead + 1
    return end


# -------------------------------------------------------------------------------------------- query


def _polite_off(sentence: str, language: str) -> str:
    """Without what leads up to the question ("can you please tell me", "I want to find"), as often
    as it occurs."""
    pattern = lead_in(language)
    while pattern is not None:
        shorter = pattern.sub("", sentence, count=1).strip()
        if shorter == sentence or not any(character.isalnum() for character in shorter):
            break
        sentence = shorter
    return sentence


def _asks(text: str, language: str) -> bool:
    if text.endswith(_QUESTION_MARKS) or "\u055e" in text or _polite_off(text, language) != text:
        return True
    return language == "ko" and any(
        is_function_word(word.casefold(), language) for word in text.split()
    )


def _distinct(phrases: Sequence[_Phrase]) -> list[_Phrase]:
    seen: dict[str, _Phrase] = {}
    for phrase in phrases:
        seen.setdefault(phrase.text.casefold(), phrase)
    return list(seen.values())


def _best(phrases: Sequence[_Phrase], most: int) -> list[_Phrase]:
    """The `most` weightiest phrases that fit into a query, in the order of the text."""
    order = sorted(range(len(phrases)), key=lambda at: (-phrases[at].weight, at))[:most]
    kept: list[int] = []
    length = -1
    for at in order:
        if length + 1 + len(phrases[at].text) <= LONGEST_QUERY:
            length += 1 + len(phrases[at].text)
            kept.append(at)
    return [phrases[at] for at in sorted(kept)]


def _joined(phrases: Sequence[_Phrase]) -> Keywords:
    heaviest = max((phrase.weight for phrase in phrases), default=0) or 1
    texts = tuple(phrase.text for phrase in phrases)
    return Keywords(
        " ".join(texts), texts, tuple(round(phrase.weight / heaviest, 2) for phrase in phrases)
    )


def _unchanged(text: str) -> Keywords:
    """The text as a query, without the final question mark and cut at a word when it is too
    long."""
    text = text.strip().rstrip("".join(_QUESTION_MARKS)).rstrip() or text.strip()
    if len(text) > LONGEST_QUERY:
        cut = text.rfind(" ", 0, LONGEST_QUERY)
        text = text[: cut if cut > 0 else LONGEST_QUERY]
    return Keywords(text, (text,) if text else (), (1.0,) if text else ())


def _of_topics(text: str, found: Sequence[str], most: int) -> Keywords:
    """Topics of a text without spaces: the longer, the more they say."""
    phrases = [_Phrase(topic, at, 1 + min(len(topic), 12) / 12) for at, topic in enumerate(found)]
    return _joined(_best(_distinct(phrases), most)) if phrases else _unchanged(text)
