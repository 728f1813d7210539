"""Superscripts as plain text. Pure."""

from __future__ import annotations

import re

_UNIT = re.compile(r"(?:[\d)\]]|(?<![^\W\d_])[^\W\d_]{1,3})$")  # what has a power: "10", "m"
_POWER = re.compile(r"[a-z]|(?=[^\d+\-]*[\d+\-])[\w+\-*/., ]{1,20}")  # not "st", "®"
_SIMPLE = re.compile(r"[+-]?[\d.,]+|[a-z]")


def superscript_text(text: str, before: str, *, linked: bool = False) -> str:
    """Return a superscript after the text `before`: a power as `^9`, the number of a note as
    `[3]`, any other as it is. `linked`: it is a link, which powers are not."""
    plain = text.strip().replace("−", "-")
    if plain.isdigit() and (linked or not _UNIT.search(before[-8:])):
        return f"[{plain}]"
    if not linked and _POWER.fullmatch(plain):
        return f"^{plain}" if _SIMPLE.fullmatch(plain) else f"^({plain})"
    return text
