"""The ids of people, teams and tenants that headers, tokens and bodies of requests name. Pure.

The same rules hold wherever an id comes from, since it decides whose chats and memories a request
reaches: all users whose id is blank, or is the placeholder of a template that nobody filled in,
would be one person.
"""

from __future__ import annotations

import re

from groundhook.host.server.problems import Refused

LONGEST = 256
# `{{USER}}`, `${USER}` and `%{USER}` of templates, `{http.auth.user.id}` of Caddy. Braces alone may
# be a part of an id: `{3f2504e0-4f89-11d3-9a0c-0305e82c3301}`. As a whole id also `$USER`,
# `$(user)`, `%USER%`, `<user>` and `%s`.
_PLACEHOLDER = re.compile(
    r"\{\{|[$%#]\{|\{[a-z_][a-z0-9_.]*\}"
    r"|^(?:\$[a-z_]\w*+|\$\([\w.]++\)|%\w++%|<[a-z_][\w.]*+>|%[sd])$",
    re.IGNORECASE | re.ASCII,
)
# What languages and proxies write for a value that is not there, in upper or lower case.
_NOTHING = frozenset({"undefined", "null", "(null)", "none", "(none)", "nil", "nan"})


def person(text: str, where: str) -> str:
    """Return the id of a person. `where` is what names it, a header or a claim, for the error.
    Raises Refused for what cannot be one."""
    if " " in text:
        raise _refused(where, "has a blank")
    return _checked(text, where)


def group(text: str, where: str) -> str:
    """Return the id of a team or a tenant, which may have blanks within; "" is none. Raises
    Refused."""
    if text and text != text.strip():
        raise _refused(where, "begins or ends with a blank")
    return _checked(text, where) if text else ""


def from_header(value: str) -> str:
    """Return the value of a header as text: UTF-8, where it is; HTTP itself knows Latin-1 alone."""
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value


def _checked(text: str, where: str) -> str:
    if not 1 <= len(text) <= LONGEST:
        raise _refused(where, f"must have 1 to {LONGEST} characters")
    if not text.isprintable():
        raise _refused(where, "has a character that no reader sees")
    if text.lower() in _NOTHING or _PLACEHOLDER.search(text):
        raise _refused(
            where,
            "is a placeholder without its value",
            "the program that sends it has no user here, or does not know the placeholder",
        )
    return text


def _refused(where: str, why: str, hint: str = "") -> Refused:
    return Refused("unauthenticated", f"{where} {why}, so it names nobody", hint=hint)
