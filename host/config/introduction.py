"""What a newcomer is shown of an app: the assistant to ask first, and a question for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from groundhook.core.errors import HostError
from groundhook.host.config.packages import App

ANY_QUESTION = "What can you help me with?"


def first_assistant(app: App, assistants: Iterable[str]) -> str | None:
    """Return the assistant that a newcomer asks first: one that suggests a question, and whose
    collections are not filled by a toolkit, which must have run before; None without any."""

    def rank(id: str) -> tuple[bool, bool]:
        with suppress(HostError):
            package = app.package(id)
            filled = bool(app.settings_for(package).settings.tools)
            return "placeholder" not in package.info, filled
        return True, True

    return min(assistants, key=rank, default=None)


def first_question(app: App, assistant: str) -> str:
    """Return the first question that an assistant's package suggests, or one that fits any."""
    given = package_info(app, assistant).get("placeholder")
    prompts = given.get("prompts") if isinstance(given, Mapping) else [given]
    text = prompts[0] if isinstance(prompts, list) and prompts else None
    return text if text and isinstance(text, str) and text.isprintable() else ANY_QUESTION


def package_info(app: App, assistant: str) -> Mapping[str, Any]:
    """Return what an assistant's package says of itself; nothing for a broken one."""
    try:
        return app.package(assistant).info
    except HostError:
        return {}
