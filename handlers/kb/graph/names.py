"""Names as a graph knows them: which spellings are one entity, and what kind of thing a name seems
to be.

Pure. Rules over the name and the words around it; they refuse to guess: a name that no rule can
tell is a `term`.
"""

from __future__ import annotations

import re
import unicodedata

KINDS = ("person", "organization", "place", "work", "code", "term")
LONGEST = 80  # characters of a name
_ALSO = {  # how else a kind is called: in British English, and by the labels of spaCy's pipelines
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
_ASIDE = re.compile(r"\s*[(（][^()（）]*[)）]\s*$")
_POSSESSIVE = re.compile(r"['’]s?$")
CODE = re.compile(r"(?=[^\s]*\d)(?=[^\s]*[A-Z])[A-Z0-9][A-Z0-9]*(?:[-./][A-Z0-9]+)*")

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
    """The kind that is meant: `organization` for `Organisation` and `ORG`."""
    plain = " ".join(name.replace("_", " ").split()).casefold()
    return _ALSO.get(plain, plain)


def key_of(name: str) -> str:
    """What spellings of one name have in common: width, case, accents and points, `the` before it,
    `'s` and an aside in brackets behind it."""
    text = _ASIDE.sub("", unicodedata.normalize("NFKC", name))
    text = _MARKS.sub("", unicodedata.normalize("NFD", text))
    text = " ".join(text.casefold().split())
    text = _POSSESSIVE.sub("", text.strip(" \t.,;:!?\"'“”‘’«»„()[]《》「」『』-–—*_`#"))
    return text.removeprefix("the ").strip()


def kind_of(name: str, before: str = "", after: str = "") -> str:
    """The kind of a name in a cased script, by its own words, the word before it and the text
    behind it."""
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
