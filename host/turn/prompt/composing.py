"""Composes the prompt of a turn: the assistant's prompts, the conversation and the sources, within
the context of the model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial

import anyio

from groundhook.core.errors import HostError
from groundhook.core.ports import Connector, LearnsWindow
from groundhook.core.trace import span
from groundhook.core.types.events import SourcesGiven, Warned
from groundhook.core.types.search import Item
from groundhook.core.types.turn import CreateReturn, Message
from groundhook.host.search.merge import Pool
from groundhook.host.turn.prompt.budget import Fitted, fit, room
from groundhook.host.turn.prompt.message_parts import expanded
from groundhook.host.turn.prompt.source_block import (
    NOTHING_FOUND,
    PART_FAILED,
    SEARCH_FAILED,
    Prompt,
    build_prompt,
    declined_text,
    instructions,
    sources_text,
)
from groundhook.host.turn.prompt.summary import with_summary
from groundhook.host.turn.prompt.values import fill_prompts
from groundhook.host.turn.run import AssistantRun
from groundhook.host.turn.tooling import Tooling

FITS_ANYWHERE = 4000  # characters of a prompt

# Composes a prompt of at most that number of tokens (None: no limit).
Compose = Callable[[int | None], Fitted]


def tokens_for_messages(run: AssistantRun, tooling: Tooling) -> int | None:
    """Return the tokens for the messages in the smallest window of the turn's models; None when no
    window is known."""
    app, known = run.runtime.app, []
    for id in run.connectors:
        with suppress(HostError):  # a wrong file is reported when the connector is used
            options = app.connector(app.connector_id(run.package.id, id)).options
            if tokens := options.context_tokens or _get_learned_window(run.connector(id)):
                known.append((tokens, options.max_completion_tokens or options.max_tokens))
    if not known:
        return None
    smallest, most = min(known, key=lambda window: window[0])
    own = run.settings.options
    answer = own.max_completion_tokens or own.max_tokens or most
    return room(smallest, answer, [*tooling.toolbox.schemas(), *tooling.client])


def _get_learned_window(connector: Connector) -> int:
    return (connector.window or 0) if isinstance(connector, LearnsWindow) else 0


@asynccontextmanager
async def learning_windows(run: AssistantRun, prompt: Prompt) -> AsyncIterator[None]:
    """Request the unknown windows of the turn's models from their endpoints while the block runs.
    No turn waits for the answers, which later turns use. A short prompt fits into every window, so
    none is requested."""
    unknown: list[LearnsWindow] = []
    is_long = sum(len(message.text) for message in prompt.messages) > FITS_ANYWHERE
    for id in run.connectors if is_long else ():
        with suppress(HostError):
            connector = run.connector(id)
            if isinstance(connector, LearnsWindow) and connector.window is None:
                unknown.append(connector)
    if not unknown:
        yield
        return
    async with anyio.create_task_group() as tasks:
        for endpoint in unknown:
            tasks.start_soon(endpoint.learn_window)
        yield
        tasks.cancel_scope.cancel()


async def report_omissions(run: AssistantRun, fitted: Fitted) -> None:
    """Report the omissions of a prompt that did not fit, in the trace and as one warning."""
    if not fitted.omissions:
        return
    with span("context", fitted.omissions, **fitted.figures()):
        pass
    message = f"the prompt was cut to the context of the model: {fitted.omissions}"
    hint = "options.context_tokens of the connector, history.tokens, search.rerank.top_k"
    await run.channel.send(Warned(code="context_shortened", message=message, hint=hint))


async def report_given(run: AssistantRun) -> None:
    """Send how many of the items that were found the model reads. Where a hook has put its own
    results into messages nobody knows."""
    given, by_hook = run.answer.sources_offered, {each.source for each in run.results if each.items}
    if given or (run.results and "hook" not in by_hook):
        await run.channel.send(SourcesGiven(given=given))


def _found(run: AssistantRun, *, without_hook: bool) -> list[Item]:
    """Return the items of all searches; `without_hook` without those of the hook, whose messages
    may have any of them."""
    results = [each for each in run.results if not (without_hook and each.source == "hook")]
    return [item for result in results for item in result.items]


def prompt_composer(
    run: AssistantRun,
    created: CreateReturn | None,
    pooled: Pool,
    tooling: Tooling,
    summary: str = "",
) -> Compose:
    """Return a function that composes the prompt within a number of tokens: the assistant's
    prompts, the conversation, with a summary of the messages before it, and the sources.

    Messages that Create returned replace the conversation if a user message is among them;
    otherwise they are context in front of the last user message. A hook that returns messages and
    turns the citation prompt off has formatted its own search results: they are not repeated.
    """
    conversation = list(run.request.messages)
    added = list(created.messages or ()) if created else []
    if any(message.role == "user" for message in added):
        conversation = added
    elif added:
        last = max(
            (n for n, message in enumerate(conversation) if message.role == "user"),
            default=len(conversation),
        )
        conversation = [*conversation[:last], *added, *conversation[last:]]
    conversation = run.files.noted(expanded(conversation, tooling.result_bytes))
    citation = run.settings.search.citation
    own = bool(added) and not citation.auto_inject_prompt
    kept = [entry for entry in pooled.entries if not (own and entry.source == "hook")]
    items = [item for entry in kept for item in entry.items]
    found = _found(run, without_hook=bool(added))
    shared = () if run.settings.disable_global_prompts else run.runtime.app.prompts
    grammar = run.searcher.citation_index.grammar
    prompts = fill_prompts(run, [*shared, *run.prompts])
    cites = tooling.toolbox.cites

    def build(items: Sequence[Item], conversation: Sequence[Message]) -> Prompt:
        sources = ""
        # Set by each try: the prompt that is built last is the one that is sent.
        run.answer.sources_offered = len(items)
        run.searcher.citation_index.withhold(found, items)
        if items:
            sources = sources_text(items, citation, grammar, tooling.fence)
        elif run.results and not pooled.entries:
            failed = [bool(result.error) for result in run.results]
            declined = declined_text(run.declined_searches(), grammar)
            part = PART_FAILED if any(failed) else "" if declined else NOTHING_FOUND
            rest = "\n".join(filter(None, (part, declined)))
            sources = SEARCH_FAILED if all(failed) else rest
        how_to_cite = instructions(citation, tools=cites) if sources or cites else ""
        summarised = with_summary(conversation, summary)
        return build_prompt(prompts, summarised, sources, how_to_cite)

    return partial(fit, build, items, conversation)
