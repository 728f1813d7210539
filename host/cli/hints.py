"""Adds to errors and warnings what only the command line knows: the option that corrects them."""

from __future__ import annotations

import re

from groundhook.host.core.errors import NO_APP
from groundhook.host.core.types.events import Event, Failed, Warned

# The part of the identity that a refused request lacks; the last alternative has none.
_LACKS = re.compile(
    r"not permitted: .*?(?:\bneeds a (user|team|tenant)\b|separates its (tenant)s\b"
    r"|documents of each (user|team)\b|request (?:that )?names (?:none|nobody)\b)",
    re.DOTALL,
)
_PASSED_ON = re.compile(r"^\w+ threw (?=not permitted: )")


def add_option(event: Failed | Warned) -> Failed | Warned:
    """Return the event with the option that corrects it."""
    if event.message.startswith(NO_APP):
        return event.model_copy(update={"hint": f"{event.hint}; --app names its folder"})
    if event.code == "no_tenant":
        return event.model_copy(update={"hint": "give --tenant"})
    if lacks := _LACKS.search(event.message):
        part = lacks[1] or lacks[2] or lacks[3]
        option = f"give --{part}" if part else "give --user, --team or --tenant"
        # The error of a search has its hint, for programs, in its message.
        message = event.message.removesuffix(" (the identity needs a tenant_id)")
        return event.model_copy(update={"message": message, "hint": option})
    return event


def omit_hook(event: Event) -> Event:
    """Return the event as people read it: an option corrects a refusal that a hook passes on, and
    not the line where the hook throws it."""
    if not isinstance(event, Failed) or not _PASSED_ON.match(event.message):
        return event
    message = _PASSED_ON.sub("", event.message)
    return event.model_copy(update={"message": message, "file": "", "line": 0, "column": 0})
