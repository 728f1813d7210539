"""`ctx.chat`: the kept conversation that the turn belongs to; `ctx.Ask`: a question to its user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groundhook.core.errors import UsageError
from groundhook.core.hook_services import HookServices
from groundhook.core.json_lines import line
from groundhook.hooks.api.row import HostCall, pad, quote

DEFAULT, MOST = 20, 200  # messages
LONGEST_QUESTION, MOST_CHOICES, LONGEST_CHOICE = 4000, 20, 200  # characters, choices, characters


async def _read_history(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    (limit,) = pad(arguments, 1)
    limit = DEFAULT if limit is None else limit
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 < limit <= MOST:
        raise UsageError(
            f"{call.js}: limit must be a whole number from 1 to {MOST}, not {quote(limit)}"
        )
    messages = await services.chat.history(limit)
    return f"[{','.join(line(message).rstrip() for message in messages)}]"


async def _ask(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    question, choices = pad(arguments, 2)
    if not isinstance(question, str) or not question.strip():
        raise UsageError(f"{call.js}: the question must be text, not {quote(question)}")
    if len(question) > LONGEST_QUESTION:
        raise UsageError(f"{call.js}: a question has at most {LONGEST_QUESTION} characters")
    choices = [] if choices is None else choices
    if (
        not isinstance(choices, list)
        or len(choices) > MOST_CHOICES
        or not all(isinstance(each, str) and each.strip() for each in choices)
        or len(set(choices)) < len(choices)
        or any(len(each) > LONGEST_CHOICE for each in choices)
    ):
        raise UsageError(
            f"{call.js}: choices must be a list of at most {MOST_CHOICES} different texts of at"
            f" most {LONGEST_CHOICE} characters, not {quote(choices)}"
        )
    services.chat.ask(question.strip(), choices)


_TYPES = """\
/** A message of the conversation before the question of this turn. */
export interface EarlierMessage {
  /** Empty where the conversation is not kept. */
  id: string;
  role: "user" | "assistant";
  content: string;
  /** What an answer cites. */
  citations: Cited[];
  /** Milliseconds since 1970; 0 where the conversation is not kept. */
  made_at: number;
}
"""

ROWS: tuple[HostCall, ...] = (
    HostCall(
        js="ctx.chat.History",
        doc=(
            "Return the newest messages before the question, oldest first, at most `limit`"
            f" ({DEFAULT}): of a kept conversation also those beyond what the model is given."
        ),
        run=_read_history,
        ts="(limit?: number): EarlierMessage[]",
        types=_TYPES,
    ),
    HostCall(
        js="ctx.Ask",
        doc=(
            "Return the user's answer to a question, one of `choices` if there are any, or null"
            " where the user declined. Only in Create and Next of a kept conversation: the turn"
            " ends here, and the hook goes on with the answer in the next one."
        ),
        run=_ask,
        ts="(question: string, choices?: string[]): string | null",
    ),
)
