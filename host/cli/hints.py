"""Adds to errors and warnings what only the command line knows: the option that corrects them."""

from __future__ import annotations

import re

from groundhook.core.errors import NO_APP
from groundhook.core.types.events import Event, Failed, SearchComplete, Warned

# The part of the identity that a refused request lacks; the last alternative has none.
_LACKS = re.compile(
    r"not permitted: .*?(?:\bneeds a (user|team|tenant|chat)\b|separates its (tenant)s\b"
    r"|documents of each (user|team)\b|request (?:that )?names (?:none|nobody)\b"
    r"|request has no\b)",
    re.DOTALL,
)
# The hint for programs at the end of the error of a search.
_GENERAL = re.compile(r" \((?:send an identity with the request|the identity needs a tenant_id)\)$")
_PASSED_ON = re.compile(r"^\w+ threw (?=not permitted: )")


def add_option_to_search(event: SearchComplete) -> SearchComplete:
    """Return the event with the option that corrects its error."""
    if not event.error or not (option := _option(event.error)):
        return event
    return event.model_copy(update={"error": f"{_GENERAL.sub('', event.error)} ({option})"})


def add_option(event: Failed | Warned) -> Failed | Warned:
    """Return the event with the option that corrects it."""
    if event.message.startswith(NO_APP):
        more = "--app names its folder, and `groundhook new` makes one"
        return event.model_copy(update={"hint": f"{event.hint}; {more}"})
    if event.code == "no_tenant":
        return event.model_copy(update={"hint": "give --tenant"})
    if option := _option(event.message):
        message = _GENERAL.sub("", event.message)
        return event.model_copy(update={"message": message, "hint": option})
    return event


def _option(message: str) -> str:
    """Return the hint with the option that an error needs; "" if none corrects it."""
    lacks = _LACKS.search(message)
    part = lacks and (lacks[1] or lacks[2] or lacks[3])
    return f"give --{part}" if part else "give --user, --team or --tenant" if lacks else ""


def omit_hook(event: Event) -> Event:
    """Return the event as people read it: an option corrects a refusal that a hook passes on, and
    not the line where the hook throws it."""
    if not isinstance(event, Failed) or not _PASSED_ON.match(event.message):
        return event
    message = _PASSED_ON.sub("", event.message)
    return event.model_copy(update={"message": message, "file": "", "line": 0, "column": 0})
