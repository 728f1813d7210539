"""The question that a turn searches for: a follow-up becomes self-contained.

`uses.rewrite` names the part that does it. If a language model, an assistant or an MCP tool fails,
the built-in rules (`host.turn.follow_up`) replace it, with a warning.
"""

from __future__ import annotations

from collections.abc import Sequence

from groundhook.core.errors import HostError
from groundhook.core.settings import DISABLED
from groundhook.core.trace import span
from groundhook.core.types.delegation import RewriteAsk
from groundhook.core.types.turn import Message
from groundhook.core.types.uses import REWRITE
from groundhook.host.turn.follow_up import MOST_EARLIER, StandAlone, stand_alone
from groundhook.host.turn.run import AssistantRun

LONGEST = 500  # characters of an earlier question, and of an answer, for a model


async def rewrite_question(run: AssistantRun) -> None:
    """Set `run.question` to the self-contained question. A turn without an earlier question and
    a delegated step keep theirs."""
    earlier = _find_earlier_questions(run.request.messages)
    by = run.settings.uses.rewrite or "builtin"
    if not run.question or not earlier or by == DISABLED or run.request.reply is not None:
        return
    with span("rewrite", by, question=run.question) as node:
        found = None
        if by != "builtin":
            try:
                found = await _rewrite_with(by, run, earlier)
            except HostError as exc:
                node.fail(str(exc))
                await run.searcher.scope.warn(exc.code, f"{exc}; the built-in rewriting was used")
        if found is None:
            found = stand_alone(run.question, earlier, _find_cited_titles(run))
        node.data.update(searched=found.question, carried=list(found.carried))
        if found.reason:
            node.data.update(reason=found.reason)
    run.question = found.question


def _find_earlier_questions(messages: Sequence[Message]) -> list[str]:
    """Return the questions before the last one."""
    texts = [message.text.strip() for message in messages if message.role == "user"]
    return [text for text in texts[:-1] if text][-MOST_EARLIER:]


def _find_last_answer(messages: Sequence[Message]) -> str:
    texts = (each.text for each in reversed(messages) if each.role == "assistant")
    return next((text for text in texts if text.strip()), "")


def _find_cited_titles(run: AssistantRun) -> list[str]:
    """Return the titles of the sources that the last answer cites, in a kept conversation."""
    if run.request.conversation is None:
        return []
    answer = _find_last_answer(run.request.messages).lower()
    sources = run.request.conversation.sources
    return [item.title for marker, item in sources.items() if item.title and marker in answer]


async def _rewrite_with(by: str, run: AssistantRun, earlier: Sequence[str]) -> StandAlone:
    """Return the question as a language model, an assistant or an MCP tool writes it. Raises
    HostError."""
    ask = RewriteAsk(
        query=run.question,
        earlier=tuple(text[:LONGEST] for text in earlier),
        answer=_find_last_answer(run.request.messages)[:LONGEST],
    )
    answer = await run.searcher.scope.delegates.ask(
        REWRITE,
        by,
        ask,
        timeout_ms=run.settings.search.rewrite.timeout_ms,
        hint="search.rewrite.timeout_ms",
        tries=1,
    )
    question = " ".join(answer.query.split())
    changed = question != " ".join(run.question.split())
    return StandAlone(question, (), f"rewritten by {by}") if changed else StandAlone(run.question)
