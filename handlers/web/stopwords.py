"""Function words and openings of questions by language, and a guess of the language of a text.

The words are in `function_words.txt` in this folder, for the languages that knowledge bases
analyse.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from importlib.resources import files

CHINESE, JAPANESE, THAI = "zh", "ja", "th"
# Languages written without spaces, see `handlers.web.unspaced`.
UNSPACED = {CHINESE: "chinese", JAPANESE: "japanese", THAI: "thai"}


@cache
def _read_words() -> str:
    return (files("groundhook.handlers.web") / "function_words.txt").read_text(encoding="utf-8")


@cache
def _sections() -> dict[str, tuple[str, frozenset[str]]]:
    """Return the script and the function words of each language, by its code."""
    sections: dict[str, tuple[str, frozenset[str]]] = {}
    for section in re.split(r"^\[", _read_words(), flags=re.M)[1:]:
        head, _, words = section.partition("]")
        code, script, *_ = head.split()
        sections[code] = script, frozenset(word.casefold() for word in words.split())
    return sections


@cache
def function_words(language: str) -> frozenset[str]:
    """Return the function words of a language by its code; empty for an unknown code."""
    return _sections().get(language, ("", frozenset()))[1]


@cache
def _prefixes(language: str) -> tuple[str, ...]:
    return tuple(word[:-1] for word in function_words(language) if word.endswith("*"))


def is_function_word(word: str, language: str) -> bool:
    """Return whether a casefolded word is a function word, which carries no topic."""
    return word in function_words(language) or word.startswith(_prefixes(language))


def strip_particles(word: str, language: str) -> str:
    """Return a word without the particles that Korean writes onto it; unchanged in other
    languages."""
    return _ENDINGS[language].sub("", word) if language in _ENDINGS else word


# Endings that are part of a noun (회의) or a verb (하는) are kept.
_ENDINGS = {
    "ko": re.compile(
        "(?<=[가-힣]{2})(?:에서는|에서|으로|에게|까지|부터|은|(?<![하되있없많])는|을|를|(?<![주회강논문합동정거편])의)$"
    )
}


@cache
def _languages_by_word() -> dict[str, tuple[str, ...]]:
    """Return the languages that have a function word, by the word."""
    codes_of: dict[str, list[str]] = {}
    for code, (_, words) in _sections().items():
        for word in words:
            codes_of.setdefault(word, []).append(code)
    return {word: tuple(codes) for word, codes in codes_of.items()}


@cache
def languages() -> dict[str, str]:
    """Return the supported languages of questions: English name in lower case → code."""
    text = _read_words()
    heads = re.findall(r"^\[(\S+) \S+ (.+)\]$", text, flags=re.M)
    return {name.lower(): code for code, name in heads} | {
        name: code for code, name in UNSPACED.items()
    }


def code_of(language: str) -> str:
    """Return the code of a language given by its code (`pt`, `pt-BR`) or its English name; "" for
    an unsupported language."""
    name = language.lower()
    code = languages().get(name, name.partition("-")[0])
    return code if code in UNSPACED or function_words(code) else ""


# Pronouns that are always capitalised and are not names.
CAPITAL_PRONOUNS = frozenset(["i", "i'm", "i'd", "i've", "i'll"])

# Pairs of words that ask for a number or a way; each word alone would be dropped.
QUANTITIES = frozenset(
    f"{how} {what}"
    for how, whats in {
        "how": ("many", "much", "long", "old", "far", "often", "to", "tall", "big"),
        "wie": ("viele", "viel", "lange", "oft", "alt"),
    }.items()
    for what in whats
)

# Openings of questions, removed repeatedly from the beginning.
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
def lead_in_pattern(language: str) -> re.Pattern[str] | None:
    """Return the pattern of the openings of questions in a language; None for languages without
    one."""
    leads = _LEADS.get(language)
    return re.compile(rf"^[¿¡]?(?:{'|'.join(leads)})(?=[^\w]|$)[\s,:]*", re.I) if leads else None


_SCRIPTS = (  # script, its usual language when the words do not decide, its letters
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


def guess_language(text: str) -> str:
    """Guess the code of a text's language from its script and its function words: the usual
    language of the script (English for Latin), unless another language has more function words in
    the text. Good enough to choose stop words only."""
    if text.isascii():
        return _guess_by_words(text, "latin", "en")
    letters = len(_LETTER.findall(text))
    kana = _SCRIPTS[3][2].search(text) is not None
    for script, usual, pattern in _SCRIPTS:
        if len(pattern.findall(text)) * (3 if script == "kana" else 2) > letters:
            return JAPANESE if script == "han" and kana else _guess_by_words(text, script, usual)
    return _guess_by_words(text, "latin", "en")


def _guess_by_words(text: str, script: str, usual: str) -> str:
    by_word, sections = _languages_by_word(), _sections()
    counts = Counter(
        code
        for word in _WORD.findall(text.casefold())
        for code in by_word.get(word, ())
        if sections[code][0] == script
    )
    best = max(counts, key=lambda code: counts[code], default=usual)
    return best if counts[best] > counts[usual] else usual
