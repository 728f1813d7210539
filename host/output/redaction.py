"""Takes secrets out of texts that leave the app: addresses of e-mail, keys and tokens, the values
of variables of the environment, and fields whose names say that they are secret. Pure.

A long text costs little: a fast search finds the few places where something may begin, and an
expression looks at those alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from pydantic import BaseModel

from groundhook.core.concealed import without_concealed

REDACTED = "[redacted]"

# In names of fields whose values are secret. `max_tokens` and the like have numbers.
_WORDS = (
    *("password", "passwd", "passphrase", "secret", "token", "api_key", "api-key", "apikey"),
    *("private_key", "private-key", "privatekey", "authorization", "credential", "cookie"),
)
_SECRET = re.compile(
    r"password|passwd|passphrase|secret|token(?!s)|api[_-]?key|private[_-]?key|authorization"
    r"|credential|cookie",
    re.IGNORECASE,
)
# What follows such a name inside a text, and the value: a string of JSON, or up to a separator.
_NAMED = re.compile(
    r"""(?!tokens)\w[\w-]{0,80}+["']?\s{0,4}[:=]\s{0,4}"""
    r"""("(?>(?:[^"\\]++|\\.)*)"?|(?:(?:Basic|Bearer)\s{1,4})?[^\s,;&}\])"']++)""",
    re.IGNORECASE | re.DOTALL,
)
# Keys as services make them, by their first characters; the signed tokens of JSON; those of HTTP.
_KEYS = (
    *("sk-", "sk_", "pk-", "pk_", "rk_", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "hf_"),
    *("npm_", "xoxb-", "xoxp-", "xoxa-", "lsv2_", "akia", "asia", "aiza", "eyj", "bearer "),
)
_KEY = re.compile(r"(?<![\w-])((?:[Bb]earer\s{1,4})?(?=[A-Za-z.~+/=_-]{0,64}\d)[\w.~+/=-]{16,}+)")
_EMAIL = re.compile(r"@(?:[\w-]{1,63}\.){1,8}[\w-]{1,63}")
_SIGN_IN = re.compile(r"://([^\s/@]++)@")  # user and password in an address
_LONGEST_LOCAL = 64  # characters before the @

_Found = tuple[int, int, str]  # begin, end, what replaces it


class Redaction:
    """Redacts texts and values. `names` are further names of secret fields, in any case."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self._names = frozenset(name.lower() for name in names)

    def text(self, text: str) -> str:
        """Return the text with what is secret replaced by `[email]`, `[key]`, `[redacted]` or
        `$ENV.NAME`."""
        text = without_concealed(text)
        lower = text.lower()
        if len(lower) != len(text):  # a few letters, such as İ, become two
            lower = "".join(each.lower() if each.isascii() else each for each in text)
        found = [
            *(_found(text, lower, ["://"], _SIGN_IN, REDACTED) if "@" in text else ()),
            *_found(text, lower, _KEYS, _KEY, "[key]"),
            *_found(text, lower, _WORDS, _NAMED, REDACTED),
            *_found(text, lower, self._names, _NAMED, REDACTED, whole=True),
            *_emails(text),
        ]
        pieces: list[str] = []
        done = 0
        for begin, end, by in sorted(found, key=lambda each: (each[0], -each[1])):
            if begin >= done:
                pieces += [text[done:begin], by]
                done = end
        return "".join([*pieces, text[done:]])

    def id(self, id: str) -> str:
        """Return the id of a person or a conversation; for one that holds something secret, such as
        an address of e-mail, a name of its own that is always the same."""
        return id if self.text(id) == id else f"id-{sha256(id.encode()).hexdigest()[:16]}"

    def value(self, value: Any) -> Any:
        """Return the value as JSON has it, with its texts redacted, and without the values of
        secret fields."""
        if isinstance(value, str):
            return self.text(value)
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, BaseModel):
            return self.value(value.model_dump(mode="json", exclude_none=True))
        if isinstance(value, Mapping):
            return {
                self.text(str(name)): self.field(str(name), each) for name, each in value.items()
            }
        if isinstance(value, Sequence | set | frozenset) and not isinstance(value, bytes):
            return [self.value(each) for each in value]
        return self.text(str(value))

    def field(self, name: str, value: Any) -> Any:
        """Return the value of a field of this name, redacted."""
        if name.lower() in self._names:
            return REDACTED
        if _SECRET.search(name) and not isinstance(value, bool | int | float):
            return REDACTED
        return self.value(value)


def _found(
    text: str,
    lower: str,
    marks: Iterable[str],
    pattern: re.Pattern[str],
    by: str,
    *,
    whole: bool = False,
) -> Iterator[_Found]:
    """Yield the places of the group in each match that begins at one of `marks`, with what replaces
    them. `whole`: a mark is a whole name."""
    for mark in marks:
        for at in _places(lower, mark):
            if whole and _is_part(lower, at, len(mark)):
                continue
            if match := pattern.match(text, at):
                # JSON stays JSON: clients parse the arguments of tool calls.
                is_json = by == REDACTED and '"' in text[at : match.start(1) + 1]
                yield (*match.span(1), f'"{by}"' if is_json else by)


def _emails(text: str) -> Iterator[_Found]:
    for at in _places(text, "@"):
        begin = at
        while begin > max(0, at - _LONGEST_LOCAL) and (
            text[begin - 1].isalnum() or text[begin - 1] in "._+-"
        ):
            begin -= 1
        if begin < at and (match := _EMAIL.match(text, at)):
            yield begin, match.end(), "[email]"


def _places(text: str, mark: str) -> Iterator[int]:
    at = text.find(mark)
    while at >= 0:
        yield at
        at = text.find(mark, at + len(mark))


def _is_part(text: str, at: int, length: int) -> bool:
    """Return whether a name is only a part of a longer one."""
    around = text[max(0, at - 1) : at] + text[at + length : at + length + 1]
    return any(each.isalnum() or each in "_-" for each in around)
