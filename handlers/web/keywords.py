"""Extraction of search keywords from a question, by rules and stop words, without a model. Pure.

Quoted phrases, names of several words, and numbers with their units and comparisons ("under $100")
are kept whole. Function words are dropped. A short query, and one in an unsupported language, is
unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from groundhook.core.language.catalogue import Language, all_words, languages
from groundhook.core.language.catalogue import language as named
from groundhook.core.language.detect import detect
from groundhook.handlers.web.unspaced import topics

SHORT = 4  # words; a shorter query that is not a question, or one of this length, is unchanged
LONGEST_QUERY = 380  # characters; search engines refuse more than about 400
LONGEST_READ = 8000  # characters of a question: each takes four microseconds

_QUOTED = r"[\"“”„«»״](?P<quoted>[^\"“”„«»״]{2,80})[\"“”„«»״]"
_TOKEN = re.compile(
    rf"{_QUOTED}|(?P<word>[^\s,;!?()\[\]{{}}<>\"“”„«»״。，！？、؟،؛।۔։]+)|(?P<stop>[,;!?()\[\]。，"
    r"！？、؟،؛।۔։]|(?<=[.!?])\s)"
)
_QUESTION_MARKS = ("?", "？", "؟", ";", "\u037e")  # the last two in Greek
# Armenian marks of question, stress and exclamation, which are written within words.
_WITHIN = {0x055E: None, 0x055B: None, 0x055C: None}
_SENTENCE = re.compile(r"(?<=[.!?。！？؟।۔։])\s+|(?<=[。！？])|\n+")
_TRAILING = ".:…'’-–—*_`"
_LEADING = re.compile(r"^['’‘*_`–—¿¡]+")
_NUMBER = re.compile(r"^[+-]?[$€£¥₪₹]?\d[\d.,:/-]*(?:[%°€$£¥₪₹]|[a-zA-Z]{1,3})?$")
_OPERATOR = re.compile(r"^(?:-?(?:site|filetype|intitle|inurl|before|after):\S+|-\w\S*|OR|AND)$")


@dataclass(frozen=True)
class Keywords:
    """The query for a search engine, its phrases, and their weights of 0-1."""

    query: str
    phrases: tuple[str, ...]
    weights: tuple[float, ...] = ()


@dataclass(frozen=True)
class _Phrase:
    text: str
    place: int
    weight: float


def extract(text: str, *, most: int = 10, language: str = "auto") -> Keywords:
    """Return at most `most` phrases of a question, in its order. The query joins them with spaces
    and has at most LONGEST_QUERY characters; it is not empty unless the text is blank. Of
    a text longer than LONGEST_READ only the beginning and the end are read."""
    text = _read_part(" ".join(text.replace("\0", " ").split()))
    if text.isupper() and len(text.split()) > SHORT:
        text = text.lower()  # text in capitals throughout does not show names
    spoken = _language_of(text) if language == "auto" else named(language)
    if spoken is None:
        return _keep_question(text)
    if spoken.lines("cut"):
        return _make_topic_keywords(text, topics(text, spoken), most)
    sentences = [sentence for sentence in _SENTENCE.split(text) if sentence.strip()]
    if len(text.split()) <= SHORT and len(sentences) == 1 and not _is_question(text, spoken):
        return _keep_question(text)
    phrases: list[_Phrase] = []
    for sentence in sentences:
        bonus = 0.5 if sentence.rstrip().endswith(_QUESTION_MARKS) else 0.0
        for phrase in _find_phrases(_strip_lead_in(sentence, spoken), spoken, len(phrases)):
            phrases.append(_Phrase(phrase.text, phrase.place, phrase.weight + bonus))
    return (
        _make_keywords(_choose_heaviest(_drop_repetitions(phrases), most))
        if phrases
        else _keep_question(text)
    )


def _read_part(text: str) -> str:
    half = LONGEST_READ // 2
    return text if len(text) <= LONGEST_READ else f"{text[:half]}\n{text[-half:]}"


def _language_of(text: str) -> Language:
    """Return the language of a question; English where no word is known."""
    return languages()[detect(text, question=True) or "en"]


@cache
def _lines(section: str) -> frozenset[str]:
    return frozenset(line for each in languages().values() for line in each.lines(section))


@cache
def _stems(code: str) -> tuple[str, ...]:
    """Return the function words that stand for any ending, without their star."""
    words = languages()[code].words("function", "asking")
    return tuple(word[:-1] for word in words if word.endswith("*"))


def _is_function_word(word: str, language: Language) -> bool:
    """Return whether a casefolded word carries no topic."""
    return word in language.words("function", "asking") or word.startswith(_stems(language.code))


def _strip_particles(word: str, language: Language) -> str:
    """Return a word without the particles that are written onto it."""
    for endings in language.lines("endings"):
        word = re.sub(endings, "", word)
    return word


@cache
def _leads(code: str) -> re.Pattern[str] | None:
    """Return the pattern of the openings of questions; None for a language without one."""
    leads = languages()[code].lines("leads")
    return re.compile(rf"^[¿¡]?(?:{'|'.join(leads)})(?=[^\w]|$)[\s,:]*", re.I) if leads else None


def from_weighted(words: Sequence[tuple[str, float]], *, most: int) -> Keywords:
    """Return keywords for phrases with given weights: the `most` heaviest, in the given order."""
    clean = [(" ".join(text.split()), weight) for text, weight in words]
    return _make_keywords(
        _choose_heaviest(
            _drop_repetitions(
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
    starts: bool = False  # the first word of a sentence, which is always capitalised
    breaks: bool = False  # a comma or similar; phrases do not extend over it

    @property
    def low(self) -> str:
        return self.text.casefold()

    @property
    def capital(self) -> bool:
        return self.text[:1].isupper() and not self.quoted

    @property
    def number(self) -> bool:
        return _NUMBER.match(self.text) is not None


def _read_words(sentence: str) -> list[_Word]:
    found: list[_Word] = []
    for match in _TOKEN.finditer(sentence):
        if match["quoted"]:
            found.append(_Word(" ".join(match["quoted"].split()), quoted=True))
        elif match["word"]:
            word = _LEADING.sub("", match["word"].translate(_WITHIN))
            trimmed = word.rstrip(_TRAILING) if not _OPERATOR.match(word) else word
            if trimmed and any(character.isalnum() or character == "&" for character in trimmed):
                found.append(_Word(trimmed, starts=not found))
        elif found:
            found.append(_Word("", breaks=True))
    return found


def _find_phrases(sentence: str, language: Language, offset: int) -> Iterator[_Phrase]:
    words = _read_words(sentence)
    at = 0
    while at < len(words):
        end, weight = _read_phrase(words, at, language)
        if weight:
            text = " ".join(_strip_particles(word.text, language) for word in words[at:end])
            yield _Phrase(f'"{text}"' if words[at].quoted else text, offset + at, weight)
        at = end


def _read_phrase(words: Sequence[_Word], at: int, language: Language) -> tuple[int, float]:
    """Return the end of the phrase that starts at `at`, and its weight; 0 for a dropped word."""
    word = words[at]
    if word.breaks:
        return at + 1, 0
    if word.quoted or _OPERATOR.match(word.text):
        return at + 1, 3
    if end := _number_end(words, at):
        return end, 2
    capitals = not language.nouns_capitalised
    if capitals and (end := _name_end(words, at, language)) > at + 1:
        return end, 2.5
    quantity = " ".join(other.low for other in words[at : at + 2])
    if quantity in _lines("quantities"):
        return at + 2, 1
    name = capitals and _is_one_word_name(word)
    if _is_function_word(word.low, language) and not name:
        return at + 1, 0
    return at + 1, 2 if name else 1 + min(len(word.text), 12) / 24


def _is_one_word_name(word: _Word) -> bool:
    """Return whether a capitalised word alone is a name. The first word of a sentence is not,
    unless it is an acronym, such as IT or AI."""
    if not word.capital or word.low in all_words("capital pronouns"):
        return False
    acronym = len(word.text) > 1 and word.text.isupper()
    return acronym or not word.starts


def _number_end(words: Sequence[_Word], at: int) -> int:
    """Return the position after a number with its comparison and unit (`under $100`, `at least 5
    km`, `between 5 and 10 GB`), or 0 if no number is at `at`."""
    start = at
    while (
        at < len(words)
        and at - start < 3
        and (words[at].low in all_words("comparing") or words[at].low == "at")
    ):
        at += 1
    if at == len(words) or not words[at].number:
        return 0
    at += 1
    if at + 1 < len(words) and words[start].low in ("between", "zwischen") and words[at + 1].number:
        at += 2
    return at + 1 if at < len(words) and words[at].low in all_words("units") else at


def _name_end(words: Sequence[_Word], at: int, language: Language) -> int:
    """Return the position after a name of capitalised words, which may contain `of the` and
    numbers, or `at` if no name begins there."""
    first = words[at]
    if (
        not first.capital
        or first.low in all_words("capital pronouns")
        or (first.starts and _is_function_word(first.low, language))
    ):
        return at
    last = at
    while (following := _find_next_of_name(words, last)) is not None:
        last = following
    return last + 1


def _find_next_of_name(words: Sequence[_Word], last: int) -> int | None:
    """Return the position of the next word of a name whose `last` word is given: a number directly
    after it, or a capitalised word, also after small words that join them. None if the name
    ends."""
    at = last + 1
    if at == len(words) or words[at].quoted:
        return None
    if words[at].number:
        return at
    while at < len(words) and words[at].low in all_words("joining names") and not words[at].capital:
        at += 1
    if at == len(words) or words[at].low in all_words("capital pronouns"):
        return None
    return at if words[at].capital else None


# -------------------------------------------------------------------------------------------- query


def _strip_lead_in(sentence: str, language: Language) -> str:
    """Remove all openings such as "can you please tell me" and "I want to find"."""
    pattern = _leads(language.code)
    while pattern is not None:
        shorter = pattern.sub("", sentence, count=1).strip()
        if shorter == sentence or not any(character.isalnum() for character in shorter):
            break
        sentence = shorter
    return sentence


def _is_question(text: str, language: Language) -> bool:
    if text.endswith(_QUESTION_MARKS) or "\u055e" in text:
        return True
    if _strip_lead_in(text, language) != text:
        return True
    return language.script == "hangul" and any(
        _is_function_word(word.casefold(), language) for word in text.split()
    )


def _drop_repetitions(phrases: Sequence[_Phrase]) -> list[_Phrase]:
    seen: dict[str, _Phrase] = {}
    for phrase in phrases:
        seen.setdefault(phrase.text.casefold(), phrase)
    return list(seen.values())


def _choose_heaviest(phrases: Sequence[_Phrase], most: int) -> list[_Phrase]:
    """Return the `most` heaviest phrases that fit into a query, in their order."""
    order = sorted(range(len(phrases)), key=lambda at: (-phrases[at].weight, at))[:most]
    kept: list[int] = []
    length = -1
    for at in order:
        if length + 1 + len(phrases[at].text) <= LONGEST_QUERY:
            length += 1 + len(phrases[at].text)
            kept.append(at)
    return [phrases[at] for at in sorted(kept)]


def _make_keywords(phrases: Sequence[_Phrase]) -> Keywords:
    heaviest = max((phrase.weight for phrase in phrases), default=0) or 1
    texts = tuple(phrase.text for phrase in phrases)
    return Keywords(
        " ".join(texts), texts, tuple(round(phrase.weight / heaviest, 2) for phrase in phrases)
    )


def _keep_question(text: str) -> Keywords:
    """Return the text as a query, without the final question mark, and cut at a word if it is too
    long."""
    text = text.strip().rstrip("".join(_QUESTION_MARKS)).rstrip() or text.strip()
    if len(text) > LONGEST_QUERY:
        cut = text.rfind(" ", 0, LONGEST_QUERY)
        text = text[: cut if cut > 0 else LONGEST_QUERY]
    return Keywords(text, (text,) if text else (), (1.0,) if text else ())


def _make_topic_keywords(text: str, found: Sequence[str], most: int) -> Keywords:
    """Return keywords for the topics of a text without spaces; longer topics weigh more."""
    phrases = [_Phrase(topic, at, 1 + min(len(topic), 12) / 12) for at, topic in enumerate(found)]
    return (
        _make_keywords(_choose_heaviest(_drop_repetitions(phrases), most))
        if phrases
        else _keep_question(text)
    )
