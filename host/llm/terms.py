"""Normalises the words of a question and of a sentence, so that they can be compared across case,
inflection and script.

Crude on purpose: a few suffixes and prefixes, so that "stored", "stores" and "storing" match, and
pairs of characters for scripts without spaces. That is enough to find the sentence about the same
subject.
"""

from __future__ import annotations

import re
import unicodedata

_WORD = re.compile(r"[^\W_]+(?:['’\"״׳][^\W_]+)*")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af\u0e00-\u0e7f]+")
_HEBREW = re.compile(r"^[\u05d0-\u05ea\"״׳']+$")
_ARABIC = re.compile(r"^[\u0621-\u064a]+$")

# Words without a topic. Questions have many of them, and their rarity among a few sentences is
# meaningless.
_STOP = """
a an the and or but if then than so as of at by for from in into on onto to with without about over
under between
is are was were be been being am do does did doing done has have had having can could may might must
shall should will would
i me my we us our you your he him his she her it its they them their this that these those there
here
what which who whom whose when where why how not no yes any some each every all also just only very
much many more most
please tell show explain give find get know want need say says happen happens there's what's it's s
t re ve ll
der die das den dem des ein eine einen einem einer eines und oder aber wenn dann als von bei für aus
in im an am auf zu zum zur
mit ohne über unter zwischen ist sind war waren sein bin hat haben hatte kann können muss soll wird
werden ich mir mich wir uns
du dir dich er sie es ihr ihnen dies diese dieser dieses was welche welcher welches wer wem wen wann
wo warum wieso wie nicht
kein keine ja nein auch nur sehr viel viele mehr bitte
le la les un une des du de et ou mais si dans sur sous avec sans pour par est sont était être a ont
avoir je me nous vous il elle
ils elles ce cet cette ces que qui quoi quand où pourquoi comment quel quelle quels quelles ne pas
el los las una unos unas y o pero en con sin para por es son era ser estar está he ha han yo mi nos
tú su se lo que quién cuándo
dónde qué cómo cuál cuáles no del al
מה מי איפה היכן מתי למה מדוע איך כיצד האם של על את אל עם זה זו זאת אלה הוא היא הם הן אני אנחנו אתה
יש אין כל גם רק או אם כי
ما ماذا من متى أين لماذا كيف هل في على إلى عن مع هذا هذه هو هي هم أن إن كان لا أو و
что кто где когда почему как какой какая какие и в на с по из для от о не это этот эта эти я мы вы
он она они
"""


def _fold(text: str) -> str:
    """Return the text in one case, without accents, vowel points and width variants."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize(
        "NFC", "".join(c for c in decomposed if not unicodedata.combining(c))
    )


_STOP_WORDS = frozenset(_fold(_STOP).split())

# Endings of English and German words, the longest first; a stem keeps at least four characters.
_ENDINGS = (
    "ations",
    "ation",
    "ingly",
    "ings",
    "ing",
    "ies",
    "edly",
    "ers",
    "ed",
    "es",
    "en",
    "er",
    "ly",
    "s",
    "e",
    "y",
)


def terms(text: str) -> list[str]:
    """Return the normalised words of a text, in order, without stop words."""
    found: list[str] = []
    for word in _WORD.findall(_fold(text)):
        if _UNSPACED.search(word):
            found += _pairs(word)
        elif word not in _STOP_WORDS:
            found.append(_stem(word))
    return found


def _pairs(word: str) -> list[str]:
    """Return pairs of neighbouring characters for runs in a script without spaces, and the other
    runs of the word as stems."""
    found: list[str] = []
    position = 0
    for run in _UNSPACED.finditer(word):
        if run.start() > position:
            found.append(_stem(word[position : run.start()]))
        text = run[0]
        found += [text[at : at + 2] for at in range(len(text) - 1)] or [text]
        position = run.end()
    if position < len(word):
        found.append(_stem(word[position:]))
    return found


def _stem(word: str) -> str:
    if _HEBREW.match(word):
        return _hebrew(word)
    if _ARABIC.match(word):
        return word[2:] if word.startswith("ال") and len(word) > 4 else word
    if any(character.isdigit() for character in word):
        return word
    word = word.removesuffix("'s").removesuffix("’s")
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > 4 and word[-1] == word[-2] else word


def _hebrew(word: str) -> str:
    """Return a Hebrew word without up to two prefix letters ("and", "the", "in", "as", "to",
    "from", "that") and without a plural ending."""
    for _ in range(2):
        if len(word) > 4 and word[0] in "והבכלמש":
            word = word[1:]
    if len(word) > 4 and word.endswith(("ים", "ות")):
        word = word[:-2]
    return word
