"""Estimates the tokens of a text, by script, where no tokenizer is at hand. Pure.

The rates are those of multilingual tokenizers for prose, rounded up: a text rarely has more tokens
than the estimate, since a prompt that is too long is refused as a whole.
"""

from __future__ import annotations

import math
import re

# Characters of one token.
LATIN, ALPHABETIC, CJK = 3.5, 2.6, 1.2
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af]")
_NUMBER_OR_SIGN = re.compile(r"\d{1,3}|[^\w\s]")


def estimated_tokens(text: str) -> int:
    """Return about how many tokens a text is: one for 1.2 characters of Chinese, Japanese and
    Korean, each sign and three digits, for 2.6 letters of other scripts, and for 3.5 of Latin."""
    signs = sum(1 for _ in _NUMBER_OR_SIGN.finditer(text))
    cjk = 0 if text.isascii() else sum(1 for _ in _CJK.finditer(text))
    letters = sum(map(str.isalpha, text)) - cjk
    latin = letters if text.isascii() else sum(c < "\u0250" and c.isalpha() for c in text)
    return math.ceil(latin / LATIN + (letters - latin) / ALPHABETIC + cjk / CJK + signs)
