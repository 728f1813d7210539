"""Titles of conversations that a language model, an assistant or an MCP tool writes (`uses.title`).

Until the title is written, and if that fails, it is the beginning of the first question. It is
written while the first turn runs or after it, unless the host closes before.
"""

from __future__ import annotations

import logging

from groundhook.core.errors import HostError
from groundhook.core.types.chats import ChatMessage, ChatOwner
from groundhook.core.types.delegation import TitleAsk
from groundhook.core.types.uses import TITLE
from groundhook.host.app.turn_recorder import milliseconds
from groundhook.host.chats.ports import ChatChange, ChatStore
from groundhook.host.chats.tables import title_of
from groundhook.host.turn.context import Request, RunContext, Runtime, search_scope
from groundhook.host.turn.stream import call_assistant

log = logging.getLogger("groundhook")

TIMEOUT_MS = 5000
LONGEST = 2000  # characters of the question


async def write_title(
    runtime: Runtime, store: ChatStore, request: Request, question: ChatMessage
) -> None:
    """Give a chat the title that `uses.title` writes for its first question, unless a user has
    renamed it. Failures are logged."""
    owner, by = ChatOwner.of(request.identity), ""
    try:
        settings = runtime.app.settings_for(
            runtime.app.package(request.assistant_id), options=request.options
        ).settings
        by = settings.uses.title
        beginning = title_of(question.text)
        if by in ("", "builtin") or not await _has_title(store, owner, question, beginning):
            return
        ask = TitleAsk(question=question.text[:LONGEST])
        context = RunContext(runtime=runtime, turn_id="")
        scope = search_scope(context, request, settings, call_assistant, _ignore_warning)
        answer = await scope.delegates.ask(TITLE, by, ask, timeout_ms=TIMEOUT_MS, tries=1)
        title = title_of(answer.title)
        if title:
            at, chat = milliseconds(runtime.now), question.chat_id
            change = ChatChange(chat_id=chat, at=at, title=title, instead_of=beginning)
            await store.chats.change(owner, change)
    except HostError as exc:  # its message may quote the answer, which must not be logged
        log.warning("uses.title by %r failed: %s", by, exc.code)
    except Exception:  # the turn is over: a bug must not end the tasks of other turns
        log.exception("uses.title by %r failed", by)


async def _has_title(store: ChatStore, owner: ChatOwner, question: ChatMessage, title: str) -> bool:
    return (await store.chats.chat(owner, question.chat_id)).title == title


async def _ignore_warning(code: str, message: str) -> None:
    """Drop a warning of the part that writes the title."""
