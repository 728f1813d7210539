"""`ctx.chat` for the hooks of one turn: `core.hook_services.HookChat` over the conversation
that the turn belongs to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from groundhook.core.errors import HookThrew, HookUnasked, HostError, UsageError
from groundhook.core.hook_engine import HookAsked
from groundhook.core.types.chats import ChatMessage, EarlierMessage
from groundhook.host.search.citations.index import cited
from groundhook.host.turn.context import Request

NOBODY = (
    "ctx.Ask: the user can be asked only in a kept conversation whose client can show questions,"
    " and not by an assistant that a hook calls"
)
WITHOUT_ANSWER = "decide without an answer, or say in the answer what is missing"


@dataclass(frozen=True)
class TurnChat:
    """The messages before the question of a turn."""

    request: Request
    calls_wait: Callable[[], bool] = lambda: False  # whether the user decides about calls already
    _unasked: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def why(self, failed: HostError) -> HostError:
        """Return the error of a hook; one with the question where it ended for lack of an
        answer."""
        if not (self._unasked and isinstance(failed, HookThrew) and NOBODY in failed.message):
            return failed
        question, choices = self._unasked[-1]
        shown = f" ({' / '.join(choices)})" if choices else ""
        return HookUnasked(
            f"the assistant asks back, which cannot be shown here: {question}{shown}",
            place=failed.place,
            hint=WITHOUT_ANSWER,
        )

    async def history(self, limit: int, /) -> Sequence[EarlierMessage]:
        """Return the newest messages, oldest first: of the kept conversation, else of those that
        came with the request."""
        conversation = self.request.conversation
        if conversation is not None:
            return [_make_earlier_message(message) for message in await conversation.newest(limit)]
        messages = self.request.messages
        last = max((n for n, one in enumerate(messages) if one.role == "user"), default=0)
        texts = [one for one in messages[:last] if one.role in ("user", "assistant") and one.text]
        return [
            EarlierMessage(role="user" if one.role == "user" else "assistant", content=one.text)
            for one in texts[-limit:]
        ]

    def ask(self, question: str, choices: Sequence[str], /) -> NoReturn:
        conversation = self.request.conversation
        if conversation is None or not conversation.can_ask:
            self._unasked.append((question, tuple(choices)))
            raise UsageError(NOBODY, hint=WITHOUT_ANSWER)
        if self.calls_wait():
            raise UsageError(
                "ctx.Ask: the answer ends with calls that wait for the user's approval",
                hint="Next runs again after the decision: ask where `completion.finish_reason` is"
                ' not "approval_required"',
            )
        raise HookAsked(question, choices)


def _make_earlier_message(message: ChatMessage) -> EarlierMessage:
    citations = message.answer.citations if message.answer else ()
    return EarlierMessage(
        id=message.id,
        role=message.role,
        content=message.text,
        citations=tuple(
            cited(each.marker, each.verdict, each.item, each.missing) for each in citations
        ),
        made_at=message.made_at,
    )
