"""Values of environment variables that an app uses. No message shows them: in each error they are
replaced by `$ENV.NAME`, also where a service repeats the key that it was sent.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

SHORTEST = 6  # a shorter value, such as a port, would be found in unrelated text
_READ = 20_000  # characters of a service's text; splitting megabytes into words takes long
LONG = 20  # a longer value is not an ordinary word, so it is replaced anywhere

_HOST = re.compile(r"\w+://[\w.:\[\]-]+/?")  # an address that holds no secret
_SIGN_IN = re.compile(r"//(([^/@:\s]*+):?+([^/@\s]*+))@")  # user and password in an address

_variables: dict[str, str] = {}  # by value


def conceal(variable: str, value: str) -> None:
    """Keep a variable's value, and the user and password of an address in it, out of messages. An
    address of a host alone holds no secret and may be shown."""
    if _HOST.fullmatch(value.strip()):
        return
    parts = [value.strip()]
    for both, _, password in _SIGN_IN.findall(value):
        # An address has the password percent-encoded; libraries also report it decoded.
        parts += [both, password, unquote(password)]
    for part in parts:
        if len(part) >= SHORTEST:
            _variables[part] = variable


def without_concealed(message: str, shortest: int = SHORTEST) -> str:
    """Return the message with `$ENV.NAME` in place of each concealed value of that length, the
    longest first. A short one, such as "production", is replaced only as a whole word."""
    found = [value for value in _variables if len(value) >= shortest and value in message]
    for value in sorted(found, key=len, reverse=True):
        text = re.escape(value)
        pattern = text if len(value) >= LONG else rf"(?<![\w.-]){text}(?![\w-])"
        message = re.sub(pattern, f"$ENV.{_variables[value]}", message)
    return message


def shortened(text: str, most: int) -> str:
    """Return a service's text for a message: on one line, without concealed values, cut."""
    if len(text) > _READ:
        longest = max(map(len, _variables), default=0)  # which the end of what is read may cut
        text = without_concealed(text[: _READ + longest])
        text = text[: len(text) - longest]
    return " ".join(without_concealed(text).split())[:most]
