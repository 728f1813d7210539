"""Words that make sentences and carry no topic, by language, and what questions begin with; and
which language a text is in.

The words are data: `function_words.txt` beside this module, for the languages that knowledge bases
analyse.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

CHINESE, JAPANESE, THAI = "zh", "ja", "th"
UNSPACED = {
    CHINESE: "chinese",
    JAPANESE: "japanese",
    THAI: "thai",
}  # written without spaces, see `handlers.web.unspaced`


@cache
def _text() -> str:
    return Path(__file__).with_name("function_words.txt").read_text(encoding="utf-8")


@cache
def _sections() -> dict[str, tuple[str, frozenset[str]]]:
    """Code → script and words."""
    found: dict[str, tuple[str, frozenset[str]]] = {}
    for section in re.split(r"^\[", _text(), flags=re.M)[1:]:
        head, _, words = section.partition("]")
        code, script, *_ = head.split()
        found[code] = script, frozenset(word.casefold() for word in words.split())
    return found


@cache
def function_words(language: str) -> frozenset[str]:
    """Those of a language by its code; none for one that is not known."""
    return _sections().get(language, ("", frozenset()))[1]


@cache
def _beginnings(language: str) -> tuple[str, ...]:
    return tuple(word[:-1] for word in function_words(language) if word.endswith("*"))


def is_function_word(word: str, language: str) -> bool:
    """Whether a word, casefolded, makes sentences and no topic."""
    return word in function_words(language) or word.startswith(_beginnings(language))


def without_ending(word: str, language: str) -> str:
    """A word without the particles that are written onto it, in Korean."""
    return _ENDINGS[language].sub("", word) if language in _ENDINGS else word


# Not what ends a noun (회의) or a verb (하는).
_ENDINGS = {
    "ko": re.compile(
        "(?<=[가-힣]{2})(?:에서는|에서|으로|에게|까지|부터|은|(?<![하되있없많])는|을|를|(?<![주회강논문합동정거편])의)$"
    )
}


@cache
def _marked() -> dict[str, tuple[str, ...]]:
    """Word of a language in Latin letters, or in a script of several languages → the languages that
    have it."""
    found: dict[str, list[str]] = {}
    for code, (_, words) in _sections().items():
        for word in words:
            found.setdefault(word, []).append(code)
    return {word: tuple(codes) for word, codes in found.items()}


@cache
def languages() -> dict[str, str]:
    """The languages that questions are understood in: name in lower case → code."""
    text = _text()
    heads = re.findall(r"^\[(\S+) \S+ (.+)\]$", text, flags=re.M)
    return {name.lower(): code for code, name in heads} | {
        name: code for code, name in UNSPACED.items()
    }


def code_of(language: str) -> str:
    """The code of a language that is said by its code (`pt`, `pt-BR`) or its English name; "" for
    one without words here."""
    said = language.lower()
    code = languages().get(said, said.partition("-")[0])
    return code if code in UNSPACED or function_words(code) else ""


# Pronouns that have a capital anywhere and are no names.
CAPITAL_PRONOUNS = frozenset(["i", "i'm", "i'd", "i've", "i'll"])

# Two words that together ask for a number or a way; each alone would be dropped.
QUANTITIES = frozenset(
    f"{how} {what}"
    for how, whats in {
        "how": ("many", "much", "long", "old", "far", "often", "to", "tall", "big"),
        "wie": ("viele", "viel", "lange", "oft", "alt"),
    }.items()
    for what in whats
)

# What leads up to a question. Each is tried at the beginning, again and again.
_LEADS = {
    "en": (
        r"hi|hello|hey|please|thanks|thank you|ok|okay|so|well|explain|google|look up|do you know",
        r"(?:can|could|would|will) you(?: please)?",
        (
            r"i(?:'d| would) (?:like|love) to(?: know| find(?: out)?| see| learn| read)?(?:"
            r" more)?(?: about)?"
        ),
        r"i(?: really)? (?:want|need|have|am trying|wish) to"
        r" (?:know|find(?: out)?|see|learn|buy|search(?: for)?|look(?: for| up)?)(?: about)?",
        r"i(?:'m| am) (?:looking|searching) for",
        r"i(?: was|'m| am) wondering(?: if| whether)?",
        r"help me(?: to)?(?: find| understand)?",
        r"(?:tell|show|give|find|get|explain(?: to)?) (?:me|us)(?: more)?(?: about)?",
        r"search(?: the (?:web|internet))? for",
        r"what (?:is|are|was|were) the (?:meaning|definition) of",
        r"(?:what|who)(?:'s| is| are| was| were)",
    ),
    "de": (
        r"hallo|bitte|danke|also|weißt du|wissen sie",
        r"(?:kannst|könntest|würdest) du(?: mir)?(?: bitte)?",
        r"(?:können|könnten|würden) sie(?: mir)?(?: bitte)?",
        r"ich (?:möchte|will|würde gern|suche|brauche)(?: wissen)?",
        (
            r"(?:sag|sagen|zeig|zeige|zeigen|erkläre|erklär|gib|finde|such|suche)(?: sie)?(?: mir|"
            r" uns)?(?: bitte)?"
        ),
        r"was (?:ist|sind|war)|wer (?:ist|war)",
    ),
    "fr": (
        r"bonjour|merci|svp|dis-moi|dites-moi|qui est|qu'est-ce que(?: c'est)?",
        r"(?:peux-tu|pouvez-vous|pourriez-vous)(?: m'expliquer| me dire)?",
        r"je (?:veux|voudrais|cherche)(?: savoir)?",
    ),
    "es": (
        r"hola|gracias|por favor|dime",
        r"(?:puedes|podrías|puede)(?: decirme| explicarme)?",
        r"(?:quiero|quisiera|necesito|busco)(?: saber)?",
        r"qué (?:es|son)|quién (?:es|fue)",
    ),
    "he": (
        r"שלום|היי|בבקשה|תודה|(?:אתה|את) (?:יכול|יכולה)",
        r"אני (?:רוצה|צריך|צריכה|מחפש|מחפשת)(?: לדעת| למצוא)?",
        r"(?:תגיד|תגידי|ספר|ספרי|תסביר|תסבירי|הסבר|מצא|חפש)(?: לי)?",
        r"מה (?:זה|זו|הוא|היא)|מי (?:זה|הוא|היא)",
    ),
}


@cache
def lead_in(language: str) -> re.Pattern[str] | None:
    """What leads up to a question in a language, at the beginning of a text."""
    leads = _LEADS.get(language)
    return re.compile(rf"^[¿¡]?(?:{'|'.join(leads)})(?=[^\w]|$)[\s,:]*", re.I) if leads else None


_SCRIPTS = (  # and the language that a script stands for where words do not tell
    ("hebrew", "he", re.compile(r"[\u05d0-\u05ea]")),
    ("arabic", "ar", re.compile(r"[\u0620-\u06d3]")),
    ("cyrillic", "ru", re.compile(r"[\u0400-\u052f]")),
    ("kana", JAPANESE, re.compile(r"[\u3040-\u30ff]")),
    ("han", CHINESE, re.compile(r"[\u3400-\u9fff]")),
    ("hangul", "ko", re.compile(r"[\uac00-\ud7af]")),
    ("greek", "el", re.compile(r"[\u0370-\u03ff\u1f00-\u1fff]")),
    ("devanagari", "hi", re.compile(r"[\u0900-\u097f]")),
    ("bengali", "bn", re.compile(r"[\u0980-\u09ff]")),
    ("tamil", "ta", re.compile(r"[\u0b80-\u0bff]")),
    ("armenian", "hy", re.compile(r"[\u0531-\u0587]")),
    ("thai", THAI, re.compile(r"[\u0e00-\u0e7f]")),
)
_LETTER = re.compile(r"[^\W\d_]")
_WORD = re.compile(r"[^\W\d_][\w\u0300-\u036f\u0900-\u0dff'’-]*")


def language_of(text: str) -> str:
    """The code of a text's language, by its script and, where several share it, by their function
    words: English, or the usual one of the script, unless another has more. A guess for choosing
    stop words, no more."""
    if text.isascii():
        return _by_words(text, "latin", "en")
    letters = len(_LETTER.findall(text))
    kana = _SCRIPTS[3][2].search(text) is not None
    for script, usual, pattern in _SCRIPTS:
        if len(pattern.findall(text)) * (3 if script == "kana" else 2) > letters:
            return JAPANESE if script == "han" and kana else _by_words(text, script, usual)
    return _by_words(text, "latin", "en")


def _by_words(text: str, script: str, usual: str) -> str:
    marked, sections = _marked(), _sections()
    counts = Counter(
        code
        for word in _WORD.findall(text.casefold())
        for code in marked.get(word, ())
        if sections[code][0] == script
    )
    best = max(counts, key=lambda code: counts[code], default=usual)
    return best if counts[best] > counts[usual] else usual
