"""Names of entities: which spellings are one entity, and of which kind a name is.

Pure. The rules use the name and the words around it. They never guess: a name that no rule
recognises is a `term`.
"""

from __future__ import annotations

import re
import unicodedata

KINDS = ("person", "organization", "place", "work", "code", "term")
LONGEST = 80  # characters of a name
_SYNONYMS = {  # other names of kinds: British English, and the labels of spaCy's pipelines
    "organisation": "organization",
    "org": "organization",
    "per": "person",
    "location": "place",
    "gpe": "place",
    "loc": "place",
    "fac": "place",
    "work of art": "work",
    "misc": "term",
}

_MARKS = re.compile("[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670]")
_ASIDE = re.compile(r"(?<!\s)\s*+[(（][^()（）]*+[)）]\s*+$")
_POSSESSIVE = re.compile(r"['’]s?$")
CODE = re.compile(r"(?=\S{0,60}?\d)(?=\S{0,60}?[A-Z])[A-Z0-9]+(?:[-./][A-Z0-9]+)*")

# fmt: off
_ORGANIZATIONS = frozenset({
    "inc", "ltd", "llc", "corp", "corporation", "company", "gmbh", "ag", "plc", "university",
    "college", "institute", "school", "academy", "records", "press", "association", "society",
    "club", "party", "army", "navy", "council", "committee", "ministry", "department", "bank",
    "group", "foundation", "museum", "church", "orchestra", "team", "league", "federation", "union",
    "agency", "airlines", "airways", "studios", "pictures", "entertainment", "laboratory",
    "commission", "universität", "universidad",
})
_PLACES = frozenset({
    "river", "lake", "mountain", "mountains", "county", "city", "island", "islands", "sea", "ocean",
    "valley", "street", "road", "avenue", "park", "bay", "district", "province", "republic",
    "kingdom", "peninsula", "desert", "coast", "bridge", "station", "airport", "stadium", "village",
    "castle", "harbor", "harbour", "canyon", "region", "territory",
})
TITLES = frozenset({
    "mr", "mrs", "ms", "dr", "prof", "professor", "sir", "lord", "lady", "king", "queen", "prince",
    "princess", "pope", "saint", "senator", "judge", "herr", "frau",
})
# fmt: on
_PLACES_BEFORE = (
    "mount ",
    "lake ",
    "river ",
    "port ",
    "fort ",
    "cape ",
    "gulf of ",
    "university of ",
    "bank of ",
)
_LIFE = re.compile(r"\s*\([^()]*?(?:\bborn\b|\bdied\b|\d{3,4}\s*[-–—]\s*\w|\bb\.|geb\.|né)")


def kind_called(name: str) -> str:
    """Return the standard name of a kind: `organization` for `Organisation` and `ORG`."""
    plain = " ".join(name.replace("_", " ").split()).casefold()
    return _SYNONYMS.get(plain, plain)


def key_of(name: str) -> str:
    """Return the key that all spellings of a name share. It ignores width, case, accents and vowel
    points, a leading `the`, a trailing `'s` and a trailing addition in brackets."""
    text = _ASIDE.sub("", unicodedata.normalize("NFKC", name))
    text = _MARKS.sub("", unicodedata.normalize("NFD", text))
    text = " ".join(text.casefold().split())
    text = _POSSESSIVE.sub("", text.strip(" \t.,;:!?\"'“”‘’«»„()[]《》「」『』-–—*_`#"))
    return text.removeprefix("the ").strip()


def kind_of(name: str, before: str = "", after: str = "") -> str:
    """Return the kind of a name in a script with capitals, by its words, the word before it and the
    text after it."""
    words = [word.strip(".,").casefold() for word in name.split()] or [""]
    if CODE.fullmatch(name):
        return "code"
    if before.strip(".").casefold() in TITLES or words[0] in TITLES or _LIFE.match(after):
        return "person"
    if name.casefold().startswith(_PLACES_BEFORE[-2:]) or words[-1] in _ORGANIZATIONS:
        return "organization"
    if name.casefold().startswith(_PLACES_BEFORE) or words[-1] in _PLACES:
        return "place"
    return "term"
