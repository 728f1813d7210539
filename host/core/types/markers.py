"""How a citation's marker may look, so that it is found in an answer and is never mistaken for
text. Pure."""

from __future__ import annotations

import re

LONGEST_FORMAT = (
    80  # characters: so much of an answer may be held back until it is known to be no marker
)
# What Python calls printable and is not seen all the same: joiners, fillers, variation selectors.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def usable_format(value: str) -> str:
    """A format with `{id}` in it, as it is. Raises ValueError, worded, for one that cannot be told
    apart from text."""
    if value.count("{id}") != 1:
        raise ValueError("must contain {id} exactly once, such as '#ref:{id}' or '[{id}]'")
    before, _, after = value.partition("{id}")
    if not before or before[-1:].isalnum() or before[0].isalnum() or after[:1].isalnum():
        raise ValueError(
            "must set {id} off from the text, with a sign before it and no letter or digit right"
            " around it"
        )
    if len(value) > LONGEST_FORMAT:
        raise ValueError(f"must have at most {LONGEST_FORMAT} characters")
    if not value.isprintable() or _UNSEEN.search(value):
        raise ValueError("must not hold line breaks, nor other characters that a reader cannot see")
    if before != before.strip() or after != after.strip():
        raise ValueError(
            "must not begin or end with a blank, and have none right before or after {id}"
        )
    return value
