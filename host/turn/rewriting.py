"""The question that a turn searches for: a follow-up becomes self-contained, and a question whose
search is not sure is searched in other words too.

`uses.rewrite` names the part that does it. If a language model, an assistant or an MCP tool fails
with a follow-up, the built-in rules (`host.turn.follow_up`) replace it, with a warning; other
questions are then searched in their own words alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from groundhook.core.errors import HostError
from groundhook.core.ports import Outlined, SourceResult
from groundhook.core.settings import DISABLED
from groundhook.core.trace import span
from groundhook.core.types.delegation import Outline, RewriteAnswer, RewriteAsk
from groundhook.core.types.search import SearchRequest
from groundhook.core.types.turn import Message
from groundhook.core.types.uses import REWRITE, SEARCH_WORDS, Use
from groundhook.host.search.other_words import OtherWords
from groundhook.host.search.searcher import FindOtherWords
from groundhook.host.turn.content import question_of
from groundhook.host.turn.follow_up import MOST_EARLIER, StandAlone, stand_alone
from groundhook.host.turn.run import AssistantRun

LONGEST = 500  # characters of an earlier question, and of an answer, for a model


async def rewrite_question(run: AssistantRun) -> None:
    """Set `run.question` to the self-contained question. A turn without an earlier question and
    a delegated step keep theirs."""
    earlier = _find_earlier_questions(run.asked_messages)
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
    answer = _find_last_answer(run.asked_messages).lower()
    sources = run.request.conversation.sources
    return [item.title for marker, item in sources.items() if item.title and marker in answer]


async def _rewrite_with(by: str, run: AssistantRun, earlier: Sequence[str]) -> StandAlone:
    """Return the question as a language model, an assistant or an MCP tool writes it. Raises
    HostError."""
    ask = RewriteAsk(
        query=run.question,
        earlier=tuple(text[:LONGEST] for text in earlier),
        answer=_find_last_answer(run.asked_messages)[:LONGEST],
    )
    question = await _ask(by, run, REWRITE, ask)
    changed = question != " ".join(run.question.split())
    return StandAlone(question, (), f"rewritten by {by}") if changed else StandAlone(run.question)


async def _ask(
    by: str, run: AssistantRun, use: Use[RewriteAsk, RewriteAnswer], ask: RewriteAsk
) -> str:
    """Return the answer in one line. Raises DelegateError."""
    answer = await run.searcher.scope.delegates.ask(
        use,
        by,
        ask,
        timeout_ms=run.settings.search.rewrite.timeout_ms,
        hint="search.rewrite.timeout_ms",
        tries=1,
    )
    return " ".join(answer.query.split())


# ------------------------------------------------------------------------------------- other words


def in_other_words(run: AssistantRun) -> FindOtherWords | None:
    """Return what writes search words for the turn's question; None where nothing does."""
    by, first = run.settings.uses.rewrite, run.settings.search.rewrite.first
    if by in ("", "builtin", DISABLED) or first == "never" or run.request.reply is not None:
        return None
    # A question that the conversation changed has had its call, and one that Create wrote is the
    # author's.
    if len(run.question) > LONGEST or run.question != question_of(run.asked_messages):
        return None
    return partial(_find_search_words, run, by, always=first == "always")


async def _find_search_words(
    run: AssistantRun, by: str, request: SearchRequest, found: SourceResult, *, always: bool
) -> OtherWords | None:
    """Return search words for the question of a search that found this; None where its own words
    are enough, where the identity may read nothing there, and if what writes them fails."""
    certainty = found.account.certainty
    if request.type != "kb" or request.document or request.offset:
        return None
    if not always and certainty in ("sure", None):
        return None
    # Of one identity: what another may read is not in its outline.
    reader = run.searcher.scope.identity.model_dump_json()
    key = (by, request.model_dump_json(), reader, tuple(item.key for item in found.items))
    written = run.runtime.search_words
    with span("rewrite", by, question=request.query, certainty=certainty) as node:
        words = written.get(key)
        node.data["cached"] = words is not None
        if words is None:
            collections = await _outlines(run, request, found)
            if not collections:
                node.data["reason"] = "nothing to search"
                return None
            ask = RewriteAsk(query=request.query, collections=collections)
            try:
                words = (await _ask(by, run, SEARCH_WORDS, ask))[:LONGEST]
            except HostError as exc:
                node.fail(str(exc))
                await run.searcher.scope.warn(
                    exc.code, f"{exc}; the question was searched in its own words alone"
                )
                return None
            written.put(key, words)
        node.data["searched"] = words
    if words.casefold() == " ".join(request.query.split()).casefold():
        return None
    return OtherWords(words, by)


async def _outlines(
    run: AssistantRun, request: SearchRequest, found: SourceResult
) -> tuple[Outline, ...]:
    """Return what the collections are about, as far as the identity may read them. Titles that were
    found stand for a source that cannot tell, and for a collection too large to list."""
    source = run.searcher.plugins.handlers.get("kb")
    known: Sequence[Outline] = ()
    if isinstance(source, Outlined):
        known = await source.outlines(request, run.searcher.scope)
    titles: dict[str, dict[str, None]] = {}
    for item in found.items:
        if item.title:
            titles.setdefault(item.collection, {})[item.title] = None
    if not known:
        return tuple(Outline(name=name, headings=tuple(each)) for name, each in titles.items())
    near = tuple(title for each in titles.values() for title in each)
    return tuple(
        each if each.headings else each.model_copy(update={"headings": near}) for each in known
    )
