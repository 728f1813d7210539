"""Values of environment variables that an app uses. No message shows them: in each error they are
replaced by `$ENV.NAME`, also where a service repeats the key that it was sent.
"""

from __future__ import annotations

import re

SHORTEST = (
    6  # a shorter value, such as a port, would be found in words that have nothing to do with it
)

_SIGN_IN = re.compile(r"//([^/@\s]+)@")  # user and password in an address

_variables: dict[str, str] = {}  # by value


def conceal(variable: str, value: str) -> None:
    """Keep a variable's value, and the user and password of an address in it, out of messages."""
    for part in (value.strip(), *_SIGN_IN.findall(value)):
        if len(part) >= SHORTEST:
            _variables[part] = variable


def without_concealed(message: str) -> str:
    """Return the message with `$ENV.NAME` in place of each concealed value, the longest first."""
    for value in sorted(filter(message.__contains__, _variables), key=len, reverse=True):
        message = message.replace(value, f"$ENV.{_variables[value]}")
    return message
