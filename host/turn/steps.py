"""The steps of one turn, in order, for one assistant.

    Create hook, beside the user's own data ─ plan and retrieve ─ prompt ─ model and tools ─ Next
    hook

`host.turn.stream` opens turns, hands them on and ends them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

import anyio

from groundhook.host.core.error_events import failures
from groundhook.host.core.errors import (
    ConfigError,
    HookError,
    HookReturnInvalid,
    HostError,
    Place,
    UnknownName,
)
from groundhook.host.core.exception_groups import unwrapped
from groundhook.host.core.hook_engine import HookSession
from groundhook.host.core.ports import (
    Connector,
    ModelCall,
)
from groundhook.host.core.types.events import Warned
from groundhook.host.core.types.turn import (
    CreateReturn,
    Delegation,
    Message,
    NextPayload,
    NextReturn,
    connector_ids,
)
from groundhook.host.llm.fallback import Fallback
from groundhook.host.search.merge import Pool
from groundhook.host.turn.content import user_data
from groundhook.host.turn.prompt import (
    NOTHING_FOUND,
    SEARCH_FAILED,
    Prompt,
    instructions,
    prompt_of,
    quotable,
    sources_text,
)
from groundhook.host.turn.retrieval import ranked_pool, search_automatically, search_user_data
from groundhook.host.turn.run import Run
from groundhook.host.turn.services.tools import tools_of
from groundhook.host.turn.services.turn import TurnServices, hook_options, hook_turn

T = TypeVar("T")


@dataclass(frozen=True)
class _Hooks:
    """The hooks of one assistant in one turn, and what the host does for them."""

    session: HookSession
    services: TurnServices


async def take_turn(run: Run) -> Delegation | None:
    """One turn of `run.package` → whom it is handed to. What Next returned is `run.returned`.
    Raises HostError for what ends the turn; a model that failed is told to the client and does not
    raise."""
    await _say_warnings(run)
    async with _open_hooks(run) as hooks:
        created = await _create_and_user_data(run, hooks)
        if created is not None and created.delegate is not None:
            return created.delegate
        connector = Fallback(run.connectors, run.runtime.connectors, run.searcher.scope.warn)
        pooled = await _search_beside_tools(run, created)
        prompt = _prompt(run, created, pooled)
        with _timed(run, "model"):
            error = await _answer(run, connector, prompt, pooled)
        try:
            with _timed(run, "next"):
                run.returned = await _next(run, hooks, prompt.conversation, error)
        except HookError:
            await _tell(run, error)
            raise
    delegation = run.returned.delegate if run.returned else None
    if delegation is None:
        await _tell(run, error)
    return delegation


async def _tell(run: Run, error: HostError | None) -> None:
    run.failure = str(error) if error else ""
    for event in failures(error) if error else ():
        await run.channel.send(event)


async def _search_beside_tools(run: Run, created: CreateReturn | None) -> Pool:
    """MCP servers that tools are wanted of start while the search is under way."""
    async with AsyncExitStack() as stack:
        if run.settings.mcp.servers:
            (await stack.enter_async_context(anyio.create_task_group())).start_soon(tools_of, run)
        with _timed(run, "search"):
            await search_automatically(run, created)
            return await ranked_pool(run)


async def _say_warnings(run: Run) -> None:
    """What is odd about the package, and keys of the request that nothing reads."""
    for problem in run.package.warnings:
        await run.warn(problem)
    for key in run.unknown:
        await run.channel.send(Warned(code="unknown_key", message=f"the request has an {key}"))


async def _create_and_user_data(run: Run, hooks: _Hooks | None) -> CreateReturn | None:
    """Create runs while the user's own data is searched. Raises HookError when the assistant wants
    that."""
    data = user_data(run.request.messages)
    if hooks is None:
        await search_user_data(run, data)
        return None
    created: CreateReturn | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(search_user_data, run, data)
        with _timed(run, "create"):
            hook = hooks.session.create(run.request.messages, hook_options(run.request.options))
            created = await _governed(run, hooks.services.during("Create", hook))
    if created is not None:
        await _governed(run, _adopt(run, created))
    return created


async def _adopt(run: Run, created: CreateReturn) -> None:
    _refuse_unknown_names(run, created)
    told = run.unknown
    try:
        run.adopt(created)
    except HookReturnInvalid as exc:
        raise HookReturnInvalid(
            exc.message, place=Place(run.package.hook_file), hint=exc.hint
        ) from None
    for key in run.unknown:
        if key not in told:
            await run.channel.send(
                Warned(
                    code="unknown_key",
                    message=f"Create returned an {key}",
                    file=run.package.hook_file,
                )
            )


def _refuse_unknown_names(run: Run, created: CreateReturn) -> None:
    """Raises HookReturnInvalid for a connector or a preset that there is not."""
    try:
        for id in connector_ids(created.connector) if created.connector is not None else ():
            with suppress(ConfigError):  # its file is wrong, which whoever asks it says
                run.runtime.connectors(id)
        run.package.prompts_for(created.prompt_preset or "")
    except UnknownName as exc:
        place = Place(run.package.hook_file)
        raise HookReturnInvalid(
            f"what Create returned leads nowhere: {exc.message}", place=place, hint=exc.hint
        ) from None


def _prompt(run: Run, created: CreateReturn | None, pooled: Pool) -> Prompt:
    """What the model is sent: prompts, the conversation as Create left it, and the sources.

    Messages of Create with a user message among them are the conversation; without one they are
    context for it. A hook that returns messages and turns the citation prompt off has formatted its
    own findings: they are not repeated.
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
    citation = run.settings.search.citation
    own = bool(added) and not citation.auto_inject_prompt
    items = [entry.item for entry in pooled.entries if not (own and entry.source == "hook")]
    shared = () if run.settings.disable_global_prompts else run.runtime.app.prompts
    preset = run.settings.prompt_preset  # one that Create returned is known to be there
    place = run.runtime.app.settings_for(run.package).place("prompt_preset") if preset else None
    own_prompts = run.package.prompts_for(preset, place=place)
    grammar = run.searcher.citation_index.grammar
    told = ""
    run.answer.offered = bool(items)
    if items:
        told = sources_text(items, citation, grammar, run.runtime.fixed.token(8))
    elif run.results and not pooled.entries:
        failed = all(result.error for result in run.results)
        told = SEARCH_FAILED if failed else NOTHING_FOUND
    how = instructions(citation) if told else ""
    return prompt_of([*shared, *own_prompts], conversation, told, how)


async def _answer(run: Run, connector: Connector, prompt: Prompt, pooled: Pool) -> HostError | None:
    """The model's answer → the error when it failed; what had arrived was sent and is kept."""
    options = run.settings.options
    toolbox = await tools_of(run)
    # A hook may read something else out of the answer than the step's own JSON.
    plain = run.package.hook is None and not toolbox.schemas()
    call = ModelCall(
        messages=prompt.messages,
        sources=prompt.sources,
        question=run.question,
        references=quotable(pooled.items, run.searcher.citation_index.grammar),
        tools=toolbox.schemas(),
        temperature=options.temperature,
        max_tokens=options.max_tokens,
        max_completion_tokens=options.max_completion_tokens,
        reply=run.request.reply if plain else None,
    )
    try:
        with unwrapped():
            await run.answer.stream(
                connector,
                call,
                toolbox,
                rounds=options.tool_rounds,
                result_kb=options.tool_result_kb,
            )
    except HostError as exc:
        return exc
    return None


async def _next(
    run: Run, hooks: _Hooks | None, messages: Sequence[Message], error: HostError | None
) -> NextReturn | None:
    """Next sees the completion, or the error."""
    if hooks is None:
        return None
    payload = NextPayload(
        messages=tuple(message.wire() for message in messages),
        completion=run.answer.completion(),
        tools=tuple(run.answer.tools),
        error=str(error) if error else None,
    )
    hook = hooks.session.next(payload, hook_options(run.request.options))
    returned = await _governed(run, hooks.services.during("Next", hook))
    if returned is not None:
        run.metadata.update(returned.metadata or {})
    return returned


async def _governed(run: Run, hook: Awaitable[T]) -> T | None:
    """What comes of a hook. With `hooks.on_error: continue` a hook that fails is a warning, and
    nothing came of it."""
    try:
        with unwrapped():
            return await hook
    except HookError as exc:
        if run.settings.hooks.on_error == "fail":
            raise
        await run.warn(exc)
        return None


@asynccontextmanager
async def _open_hooks(run: Run) -> AsyncIterator[_Hooks | None]:
    """The hooks of the run's assistant; None when there are none, or when they cannot be opened and
    the turn is to go on."""
    async with AsyncExitStack() as stack:
        hooks: _Hooks | None = None
        if run.package.hook is not None:
            services = TurnServices.of(run)
            opening = stack.enter_async_context(
                run.runtime.hooks.open(hook_turn(run, run.package.hook, services))
            )
            session = await _governed(run, opening)
            hooks = _Hooks(session, services) if session else None
        yield hooks


@contextmanager
def _timed(run: Run, step: str) -> Iterator[None]:
    began = run.channel.elapsed_ms()
    try:
        yield
    finally:
        run.timings[step] = round(run.channel.elapsed_ms() - began, 3)
