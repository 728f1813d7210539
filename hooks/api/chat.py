"""`ctx.chat`: the kept conversation that the turn belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groundhook.core.errors import UsageError
from groundhook.core.hook_services import HookServices
from groundhook.core.json_lines import line
from groundhook.hooks.api.row import HostCall, pad, quote

DEFAULT, MOST = 20, 200  # messages


async def _read_history(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    (limit,) = pad(arguments, 1)
    limit = DEFAULT if limit is None else limit
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 < limit <= MOST:
        raise UsageError(
            f"{call.js}: limit must be a whole number from 1 to {MOST}, not {quote(limit)}"
        )
    messages = await services.chat.history(limit)
    return f"[{','.join(line(message).rstrip() for message in messages)}]"


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
)
