"""Tool calls that the user approves: what is sent about a call that waits, and what a decision
makes of it. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from groundhook.core.audience import CALL_REFUSED
from groundhook.core.ports import ToolDelta
from groundhook.core.types.events import ApprovalRequired, HookJournal
from groundhook.core.types.tools import ToolOutcome
from groundhook.host.tools.offers import ToolOffer
from groundhook.host.tools.toolbox import text_of
from groundhook.host.turn.draft import Draft, arguments_for_event

if TYPE_CHECKING:
    # A turn without a kept chat does not need it at run time.
    from groundhook.core.hook_engine import HookAsked
    from groundhook.core.types.chats import Decision


ASK = "ask"  # what clients that know only calls show as the name of a question
CANNOT_ASK = (
    "this call needs the user's approval, which can be given only in a chat that is kept; tell the"
    " user"
)


def pending(
    id: str,
    offer: ToolOffer | None,
    arguments: dict[str, Any],
    assistant_id: str,
    journal: HookJournal,
) -> ApprovalRequired:
    """Return the event of a call that waits for the user. `journal`: the calls of Create, if it
    has asked the user before."""
    assert offer is not None  # only a call of an offered tool waits
    return ApprovalRequired(
        call_id=id,
        name=offer.name,
        server=offer.server,
        toolkit=offer.toolkit_name,
        arguments=arguments,
        assistant_id=assistant_id,
        journal=journal,
    )


def question(id: str, asked: HookAsked, assistant_id: str) -> ApprovalRequired:
    """Return the event of a question of a hook to the user."""
    return ApprovalRequired(
        call_id=id,
        name=ASK,
        assistant_id=assistant_id,
        question=asked.question,
        choices=asked.choices,
        journal=asked.journal,
    )


def decided_draft(decided: Sequence[Decision]) -> Draft:
    """Return the round of the calls that the user has decided about, as a model would make them."""
    return Draft().with_calls(
        ToolDelta(index, each.call_id, each.name, json.dumps(each.arguments))
        for index, each in enumerate(decided)
    )


def refusals(decided: Sequence[Decision]) -> dict[str, str]:
    """Return why refused calls do not run, by their ids."""
    return {
        each.call_id: f"{CALL_REFUSED}: {each.reason}" if each.reason else CALL_REFUSED
        for each in decided
        if not each.approved
    }


def refused(call: ToolDelta, about: Mapping[str, str], reason: str) -> ToolOutcome:
    """Return the outcome of a call that was not run."""
    named = {key: about[key] for key in ("name", "server", "toolkit")}
    return ToolOutcome(
        toolcall_id=call.id,
        tool=call.name,
        **named,
        arguments=arguments_for_event(call.arguments),
        error=reason,
        text=text_of({"error": reason}),
        code="not_permitted",
    )
