"""The scripts that text is written in. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping

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
_VOWEL_POINTS = re.compile("[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7]")


# Signs that nobody sees or types: soft hyphens, blanks without width, marks of direction. Joiners
# are spelling in some scripts.
_UNSEEN = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
_OTHER_DIGITS = re.compile("[^\\D0-9]")
# Letters that Unicode does not decompose into a plain one and a mark.
_PLAIN = str.maketrans(
    {
        "æ": "ae",
        "ð": "d",
        "đ": "d",
        "ħ": "h",
        "ı": "i",
        "ł": "l",
        "ø": "o",
        "œ": "oe",
        "ß": "ss",
        "þ": "th",
        "ŧ": "t",
    }
)


def normalise(text: str) -> str:
    """Return text as the embedding model and the analyser need it: `composed`, without signs that
    nobody sees, and with the digits 0-9 for those of other scripts."""
    text = composed(text)
    if text.isascii():
        return text
    return _OTHER_DIGITS.sub(_digit, _UNSEEN.sub("", text))


def composed(text: str) -> str:
    """Return text in NFKC, without NUL and Hebrew vowel points."""
    if not text.isascii():
        text = _VOWEL_POINTS.sub("", unicodedata.normalize("NFKC", text))
    return text.replace("\0", " ")


def strip_accents(word: str) -> str:
    """Return a word in lower case in plain letters, since not everyone types accents."""
    return word if word.isascii() else without_marks(word).translate(_PLAIN)


def without_marks(word: str) -> str:
    """Return a word without accents, but with the letters that only look like accented ones."""
    return "".join(
        sign for sign in unicodedata.normalize("NFKD", word) if not unicodedata.combining(sign)
    )


def _digit(found: re.Match[str]) -> str:
    return str(unicodedata.decimal(found[0]))


def count_scripts(text: str) -> Counter[str]:
    """Return the number of letters of each script in the text; only those of `SCRIPTS`."""
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


def main_script(counted: Mapping[str, int]) -> str:
    """Return the script with the most letters; "" if there are none."""
    return max(sorted(counted), key=lambda script: counted[script], default="")
