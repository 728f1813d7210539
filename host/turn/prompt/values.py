"""The values of a turn for the variables in prompts, and the texts of its language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groundhook.core.types.turn import Message
from groundhook.host.config.locales import Texts, texts_of
from groundhook.host.config.variables import METADATA, Values
from groundhook.host.turn.run import AssistantRun


def locale_texts(run: AssistantRun) -> Texts:
    """Return the texts of the assistant in the language of the turn. Raises ConfigError."""
    inline = run.package.info.get("locales") or {}
    return texts_of(run.package.locales, inline, run.locale)


def fill_prompts(run: AssistantRun, prompts: Sequence[Message]) -> list[Message]:
    """Return the prompts with their variables replaced. Raises ConfigError."""
    if not any(_has_variable(message.text) for message in prompts):
        return list(prompts)
    values = _make_values(run)
    return [
        message.model_copy(update={"content": values.fill(message.text)}) for message in prompts
    ]


def _has_variable(text: str) -> bool:
    return "$SYS." in text or "$CTX." in text or "{{" in text


def _make_values(run: AssistantRun) -> Values:
    options, identity, package = run.request.options, run.request.identity, run.package
    texts = locale_texts(run)
    plain = Values(now=run.runtime.now(), context={}, texts=texts)
    context: dict[str, Any] = {
        "ASSISTANT_ID": package.id,
        "ASSISTANT_NAME": plain.fill(package.name),
        "ASSISTANT_DESCRIPTION": plain.fill(package.description),
        "CHAT_ID": options.chat_id,
        "USER_ID": identity.user_id,
        "TEAM_ID": identity.team_id,
        "TENANT_ID": identity.tenant_id,
        "LOCALE": run.locale,
        "THEME": run.changed.get("theme", options.theme),
        "ROUTE": run.changed.get("route", options.route),
        "REFERER": options.referer,
        "CLIENT_TYPE": options.client.type,
        "CLIENT_IP": options.client.ip,
    }
    for key, value in {**options.metadata, **run.metadata}.items():
        if isinstance(value, (str, int, float)):
            context[f"{METADATA}{key}"] = value
    return Values(now=plain.now, context=context, texts=texts)
