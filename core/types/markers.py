"""Checks the format of citation markers: a marker must be recognisable in an answer, and must not
be mistaken for text. Pure."""

from __future__ import annotations

import re

LONGEST_FORMAT = (
    80  # characters of a marker, and so of the text that is held back while it may become one
)
# Invisible characters that `str.isprintable` accepts: joiners, fillers, variation selectors.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


NAMED_FORMATS = {"xml": '<ref id="{id}"/>'}


def halves(format: str) -> tuple[str, str, bool]:
    """Return the text before and after the id of a format, and whether it has a number in the
    place of the id (`[{index}]`)."""
    slot = "{index}" if "{index}" in format else "{id}"
    before, _, after = format.partition(slot)
    return before, after, slot == "{index}"


def usable_format(value: str) -> str:
    """Return the format; for `xml`, the format that this name stands for. Raises ValueError, with a
    message for the author, for a format that cannot be distinguished from text."""
    value = NAMED_FORMATS.get(value, value)
    if value.count("{id}") + value.count("{index}") != 1:
        raise ValueError(
            "must contain {id} or {index} exactly once, such as '#ref:{id}' or '[{index}]', or be"
            " 'xml'"
        )
    before, after, _ = halves(value)
    if not before or before[-1:].isalnum() or before[0].isalnum() or after[:1].isalnum():
        raise ValueError(
            "must begin with a sign before {id}, and have no letter or digit next to {id}"
        )
    if "{index}" in value and not after and len(before.strip()) < 3:
        raise ValueError("must have a sign after {index}, such as '[{index}]'")
    if len(value) > LONGEST_FORMAT:
        raise ValueError(f"must have at most {LONGEST_FORMAT} characters")
    if not value.isprintable() or _UNSEEN.search(value):
        raise ValueError("must not contain line breaks or other invisible characters")
    if before != before.strip() or after != after.strip():
        raise ValueError("must have no blank at its beginning or end, or next to {id}")
    return value
