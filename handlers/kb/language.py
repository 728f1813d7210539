"""Recognises scripts and languages of text. Pure.

A language is recognised by its script, and languages in Latin script by their most frequent words.
The language of a collection that sets `analyser.language` is not recognised but used as it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from groundhook.core.errors import ConfigError, suggestion

ANALYSER = 3  # the version of `analyse`: raised when questions no longer match stored tokens
PLAIN = "plain"  # no stemming, no stop words
# fmt: off
_STEMMED_OF_SCRIPT = {  # languages with a stemmer, by their script
    "latin": (
        "basque", "catalan", "czech", "danish", "dutch", "english", "esperanto", "estonian",
        "finnish", "french", "german", "hungarian", "indonesian", "irish", "italian", "lithuanian",
        "norwegian", "polish", "portuguese", "romanian", "sesotho", "spanish", "swedish", "turkish",
    ),
    "greek": ("greek",),
    "cyrillic": ("russian", "serbian"),
    "arabic": ("arabic", "persian"),
    "devanagari": ("hindi", "nepali"),
    "armenian": ("armenian",),
    "tamil": ("tamil",),
    "hebrew": ("yiddish",),
}
_UNSTEMMED_OF_SCRIPT = {
    "latin": ("azerbaijani", "hinglish", "slovene", "vietnamese"),
    "cyrillic": ("kazakh", "tajik", "ukrainian"),
    "hebrew": ("hebrew",),
    "arabic": ("urdu",),
    "bengali": ("bengali",),
    "cjk": ("chinese", "japanese"),
    "hangul": ("korean",),
    "thai": ("thai",),
}
# fmt: on
_SCRIPT_OF = {
    name: script
    for table in (_STEMMED_OF_SCRIPT, _UNSTEMMED_OF_SCRIPT)
    for script, names in table.items()
    for name in names
}
STEMMED = frozenset(name for names in _STEMMED_OF_SCRIPT.values() for name in names)
LANGUAGES = frozenset({*_SCRIPT_OF, PLAIN})

SCRIPTS = {
    "latin": "A-Za-z\u00c0-\u024f\u1e00-\u1eff",
    "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "cyrillic": "\u0400-\u052f",
    "armenian": "\u0531-\u0587",
    "hebrew": "\u05d0-\u05ea",
    "arabic": "\u0620-\u064a\u066e-\u06d3\u0750-\u077f",
    "devanagari": "\u0900-\u0963\u0966-\u097f",
    "bengali": "\u0980-\u09ff",
    "tamil": "\u0b80-\u0bff",
    "thai": "\u0e01-\u0e4e",
    "lao": "\u0e81-\u0ecd",
    "myanmar": "\u1000-\u103f",
    "khmer": "\u1780-\u17d3",
    "hangul": "\u1100-\u11ff\uac00-\ud7af",
    "cjk": "\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff",
}
_LETTERS = {script: re.compile(f"[{letters}]+") for script, letters in SCRIPTS.items()}
_NON_ASCII = re.compile("[^\\x00-\\x7f]+")
_NO_LETTERS = bytes(sign for sign in range(128) if not chr(sign).isalpha())
_KANA = re.compile("[\u3040-\u30ff]")
_VOWEL_POINTS = re.compile("[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7]")

_LANGUAGE_OF_SCRIPT = {
    "greek": "greek",
    "cyrillic": "russian",
    "hebrew": "hebrew",
    "arabic": "arabic",
    "bengali": "bengali",
    "devanagari": "hindi",
    "thai": "thai",
    "hangul": "korean",
}
_DEFAULT_STEMMERS = {  # for words of a script other than the collection's
    "latin": "english",
    "greek": "greek",
    "cyrillic": "russian",
    "arabic": "arabic",
    "devanagari": "hindi",
    "armenian": "armenian",
    "tamil": "tamil",
}
_FREQUENT_WORDS = {
    "english": "the of and to in is that for it with as was on are be this by from or not you",
    "german": (
        "der die das und ist nicht ein eine zu den mit von für auf sich dem im auch wird sind"
    ),
    "french": "le la les des et est une un que dans pour pas sur qui du au avec sont par vous",
    "spanish": "el la los las de que y en un una es por con para no se del como más su",
    "italian": "il la di che e un una per non è sono con del della le gli i nel alla si",
    "portuguese": "o a os as de que e um uma do da em não para com por se mais dos no",
    "dutch": "de het een en van is dat niet op te met voor zijn aan er die wordt als door ook",
    "swedish": "och att det som en är på för av med inte den till ett har om vi så kan från",
    "danish": "og at det som en er på for af med ikke den til et har om vi så kan fra",
    "norwegian": "og at det som en er på for av med ikke den til et har om vi så kan fra",
    "finnish": "ja on ei se että oli hän mutta ovat kun niin tai myös jos kuin ole sen joka",
    "hungarian": "a az és hogy nem egy is van ez azt meg de volt csak mint el ha már vagy",
    "romanian": "și de la în nu o un este cu pe care să din mai pentru au ce sunt se că",
    "turkish": "ve bir bu için ile da de çok ne olarak daha ama gibi olan var mi ki kadar",
}
_QUESTION_WORDS = {  # words that are frequent in questions and rare in answers
    "english": (
        "what which who whom whose when where why how do does did can could should would will have"
        " has had a an i my me we our you your there any may might must if then than its their them"
        " these those"
    ),
    "german": (
        "was wer wen wem welche welcher welches wann wo warum wie kann können soll muss gibt ich"
        " mein meine man wir es er sie hat viel viele"
    ),
    "french": (
        "quel quelle quels quelles quand où pourquoi comment quoi peut je mon ma mes on nous il"
        " elle ce cette"
    ),
    "spanish": "qué quién cuál cuáles cuándo dónde cómo puede puedo hay yo mi mis este esta",
    "italian": "che chi quale quali quando dove perché come posso può c'è io mio mia questo questa",
    "portuguese": "qual quais quem quando onde como porque posso pode há eu meu minha este esta",
    "dutch": "wat wie welke wanneer waar waarom hoe kan kunnen moet ik mijn men wij",
    "russian": (
        "что кто какой какая какие когда где почему как ли могу можно и в на с по для не это я мы"
    ),
    "hebrew": (
        "מה מי איזה איזו אילו מתי איפה היכן למה מדוע איך כיצד האם של את על אל עם זה זו הוא היא אני"
        " אנחנו יש לא"
    ),
    "arabic": "ما ماذا من أي متى أين لماذا كيف هل في على إلى عن هذا هذه هو هي التي الذي كم",
}


def _languages_by_word(words: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the languages that have each of their `words`."""
    found: dict[str, list[str]] = {}
    for language, own in words.items():
        for word in set(own.split()):
            found.setdefault(word, []).append(language)
    return found


_LANGUAGES_OF_WORD = _languages_by_word(_FREQUENT_WORDS)
_LANGUAGES_OF_QUESTION_WORD = _languages_by_word(
    {
        language: f"{words} {_QUESTION_WORDS.get(language, '')}"
        for language, words in _FREQUENT_WORDS.items()
    }
)
_SAMPLE = 20_000  # characters of a document that decide


def normalise(text: str) -> str:
    """Return text as the embedding model and the analyser need it: NFKC, without NUL and Hebrew
    vowel points."""
    if not text.isascii():
        text = _VOWEL_POINTS.sub("", unicodedata.normalize("NFKC", text))
    return text.replace("\0", " ")


def count_scripts(text: str) -> Counter[str]:
    """Count the letters of each script in the text; only those of `SCRIPTS`."""
    ascii = text.encode("ascii", "ignore")  # fast, and most of most texts
    latin = len(ascii.translate(None, _NO_LETTERS))
    others = "" if len(ascii) == len(text) else "".join(_NON_ASCII.findall(text))
    found = (
        {script: sum(map(len, letters.findall(others))) for script, letters in _LETTERS.items()}
        if others
        else {}
    )
    return Counter(
        {
            script: count
            for script, count in {**found, "latin": latin + found.get("latin", 0)}.items()
            if count
        }
    )


def language_of(text: str, *, question: bool = False) -> str:
    """Return the language of a text; `plain` if none is recognised. A `question` is recognised by
    the words of questions too."""
    text = text[:_SAMPLE]
    counted = count_scripts(text)
    if not counted:
        return PLAIN
    script = main_script(counted)
    if script == "cjk":
        return "japanese" if _KANA.search(text) else "chinese"
    if script != "latin":
        return _LANGUAGE_OF_SCRIPT.get(script, PLAIN)
    words = Counter(re.findall(r"[^\W\d_]+", text.lower()))
    known = _LANGUAGES_OF_QUESTION_WORD if question else _LANGUAGES_OF_WORD
    counts = dict.fromkeys(_FREQUENT_WORDS, 0)
    for word in words.keys() & known.keys():
        for language in known[word]:
            counts[language] += words[word]
    best = max(
        counts,
        key=lambda language: (counts[language], language == _DEFAULT_STEMMERS[script], language),
    )
    return best if counts[best] * 20 >= words.total() else PLAIN


@lru_cache(maxsize=256)
def language_of_question(text: str) -> str:
    """Return the language of a question by its words; "" if none is recognised."""
    language = language_of(text, question=True)
    return "" if language == PLAIN else language


def main_script(counted: Mapping[str, int]) -> str:
    """Return the script with the most letters; "" if there are none."""
    return max(sorted(counted), key=lambda script: counted[script], default="")


def script_of(language: str) -> str:
    """Return the script that a language is written in; "" for `plain`."""
    return _SCRIPT_OF.get(language, "")


def stemmers(language: str) -> dict[str, str]:
    """Return which stemmers a collection of this language uses: script of a word → language of the
    stemmer."""
    if language == PLAIN:
        return {}
    others = {
        script: name for script, name in _DEFAULT_STEMMERS.items() if script != script_of(language)
    }
    return others | ({script_of(language): language} if language in STEMMED else {})


def function_words(language: str) -> frozenset[str]:
    """Return words of this language that do not show the topic of a question."""
    return frozenset(
        f"{_FREQUENT_WORDS.get(language, '')} {_QUESTION_WORDS.get(language, '')}".split()
    )


def normalise_language(declared: str, collection: str) -> str:
    """Return `declared` in lower case, which may be "auto". Raises ConfigError for a language
    without an analyser."""
    language = declared.lower()
    if language != "auto" and language not in LANGUAGES:
        hint = suggestion(language, ["auto", *sorted(LANGUAGES)])
        raise ConfigError(
            f"collection {collection!r}: no analyser for language {declared!r}", hint=hint
        )
    return language
