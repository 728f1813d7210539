"""The steps of one turn, in order, for one assistant.

    a follow-up becomes a self-contained question
    Create hook, while the user's own data is searched
    plan and retrieve
    prompt
    model and tools
    verification of the answer
    Next hook

Where a hook asks the user (`HookAsked`), the turn ends with the question.
`host.turn.stream` opens turns, follows their delegation and ends them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio

from groundhook.core.error_events import error_events
from groundhook.core.errors import (
    ConfigError,
    HookError,
    HookReturnInvalid,
    HostError,
    ModelContextExceeded,
    Place,
    UnknownName,
)
from groundhook.core.exception_groups import unwrap_exception_groups
from groundhook.core.hook_engine import HookAsked, HookSession
from groundhook.core.ports import (
    Connector,
    ModelCall,
)
from groundhook.core.problems import Problem
from groundhook.core.types.events import Warned
from groundhook.core.types.sampling import Sampling
from groundhook.core.types.turn import (
    CreateReturn,
    Delegation,
    Message,
    NextPayload,
    NextReturn,
    connector_ids,
)
from groundhook.host.llm.fallback import Fallback
from groundhook.host.search.merge import Pool
from groundhook.host.tools.toolbox import Toolbox
from groundhook.host.turn.content import user_data
from groundhook.host.turn.contract import check_choice, check_names, held_to, keeping
from groundhook.host.turn.prompt.budget import prompt_tokens
from groundhook.host.turn.prompt.composing import (
    Compose,
    learning_windows,
    prompt_composer,
    report_given,
    report_omissions,
    tokens_for_messages,
)
from groundhook.host.turn.prompt.source_block import (
    Prompt,
    quotable,
)
from groundhook.host.turn.prompt.summary import summarised
from groundhook.host.turn.retrieval import ranked_pool, search_automatically, search_user_data
from groundhook.host.turn.run import AssistantRun, certainty_of_runs
from groundhook.host.turn.services.tools import scopes_of, tools_of
from groundhook.host.turn.tooling import Tooling

if TYPE_CHECKING:
    from groundhook.core.types.chats import Decision
    from groundhook.host.turn.services.turn import TurnServices

T = TypeVar("T")


@dataclass(frozen=True)
class _Hooks:
    """The open hook session of a turn, and the services that the host offers to it."""

    session: HookSession
    services: TurnServices


async def run_steps(run: AssistantRun) -> Delegation | None:
    """Run the steps of `run.package`. Returns the delegation if a hook delegates the turn, else
    None. Raises HostError for an error that ends the turn; the error of a failed model does not
    raise and is sent as an event."""
    await _send_warnings(run)
    if len(run.asked_messages) > 1 and not _decided(run):
        # Imported here because the first question of a conversation is never a follow-up.
        from groundhook.host.turn.rewriting import rewrite_question

        await rewrite_question(run)
    async with _open_hooks(run) as hooks:
        try:
            created = await _create_and_user_data(run, hooks)
        except HookAsked as asked:
            await run.answer.ask(asked, run.package.id)
            return None
        if created is not None and created.delegate is not None:
            return created.delegate
        async with _verifying(run):
            conversation, error = await _answer(run, created, hooks)
        try:
            with _record_time(run, "next"):
                run.returned = await _run_next(run, hooks, conversation, error)
            demanded = run.request.demanded_reply
            if run.returned is None and demanded is None and run.answer.is_silent:
                run.answer.say_instead(run.sentences()["no_answer"])
        except HookAsked as asked:
            await run.answer.ask(asked, run.package.id)
        except HookError:
            # If the model failed as well, nothing stands in for its answer.
            await _report_model_error(run, error)
            raise
    delegation = run.returned.delegate if run.returned else None
    # The assistant that takes over may still answer.
    if delegation is None:
        await _report_model_error(run, error)
    return delegation


async def _answer(
    run: AssistantRun, created: CreateReturn | None, hooks: _Hooks | None
) -> tuple[Sequence[Message], HostError | None]:
    """Stream the answer of Create, else search, and stream the model's; neither where Next goes on
    behind a question about the answer. Returns the conversation for Next, and the error if the
    model failed."""
    if hooks is not None and hooks.session.resumes_next:
        return run.request.messages, None
    if created is None or created.answer_text is None:
        return await _search_and_answer(run, created)
    await _report_not_run(run)
    contract = run.request.contract
    check_choice(contract, run.answer.client_calls)
    await run.answer.say(await held_to(contract, created.answer_text))
    return run.request.messages, None


@asynccontextmanager
async def _verifying(run: AssistantRun) -> AsyncIterator[None]:
    """Have the answer of the block verified after it, or before it is shown."""
    if not run.settings.uses.verify:
        yield
        return
    # Imported here because few assistants have their answers verified.
    from groundhook.host.turn.verification import verifier_of, verify_answer

    by = verifier_of(run)
    if by and run.settings.search.verify.when == "before":
        run.answer.shown.hold()
    try:
        yield
        if by:
            with _record_time(run, "verify"):
                await verify_answer(run, by)
    finally:
        if run.answer.shown.release(run.answer.cited):
            run.answer.first_text_ms = run.channel.elapsed_ms()


async def _search_and_answer(
    run: AssistantRun, created: CreateReturn | None
) -> tuple[Sequence[Message], HostError | None]:
    """Search, and stream the model's answer. Returns the conversation for Next, and the error if
    the model failed."""
    # Made before the search, so that an unknown connector ends the turn without one.
    connector = Fallback(run.connectors, run.connector, run.searcher.scope.warn)
    pooled = await _search_and_start_servers(run, created)
    tooling = await _prepare_tools(run)
    compose, prompt = await _compose_prompt(run, created, pooled, tooling)
    error: HostError | None = None
    if not _is_done_by_hook(run, created):
        stream = partial(_stream_answer, run, connector, pooled, tooling)
        with _record_time(run, "model"):
            prompt, error = await _answer_within_window(run, compose, prompt, stream)
    return prompt.conversation, error


async def _prepare_tools(run: AssistantRun) -> Tooling:
    """Return the tools that the model may call, and the settings of their calls."""
    options, loop = run.settings.options, run.settings.mcp.options
    fence, kept = run.runtime.randomness.token(8), run.request.conversation
    toolbox = await tools_of(run)
    await _check_confirm(run, toolbox)
    check_names(run.request.contract, toolbox.schemas())
    return Tooling(
        toolbox=toolbox,
        scope_of=scopes_of(run),
        rounds=options.tool_rounds if loop.max_turn is None else loop.max_turn,
        loop=loop.tool_loop,
        result_bytes=options.tool_result_kb * 1024,
        fence=fence,
        ask_to_cite=run.settings.search.citation.auto_inject_prompt,
        client=run.request.contract.tools,
        confirm=options.confirm,
        can_ask=kept is not None and kept.can_ask,
        decided=_decided(run),
        assistant_id=run.package.id,
        journal=run.journal,
    )


def _decided(run: AssistantRun) -> Sequence[Decision]:
    """Return the tool calls of the answer before that the user has decided about."""
    kept = run.request.conversation
    return [each for each in kept.decided if not each.question] if kept else ()


async def _report_not_run(run: AssistantRun) -> None:
    """Warn about approved calls that the hook's own answer leaves out."""
    if names := [each.name for each in _decided(run) if each.approved]:
        message = f"Create answered, so the approved calls were not run: {', '.join(names)}"
        await run.warn(HookReturnInvalid(message, place=Place(run.package.hook_file)))


async def _check_confirm(run: AssistantRun, toolbox: Toolbox) -> None:
    """Warn about names of `options.confirm` that no tool has: their tools would run unasked."""
    for name in run.settings.options.confirm:
        if name != "*" and name not in toolbox:
            unknown = UnknownName("tool", name, list(toolbox.names))
            message = f"options.confirm: {unknown.message}"
            place = run.runtime.app.settings_for(run.package).place("options.confirm")
            await run.warn(Problem("warning", message, place, unknown.hint, "unknown_tool"))


async def _compose_prompt(
    run: AssistantRun, created: CreateReturn | None, pooled: Pool, tooling: Tooling
) -> tuple[Compose, Prompt]:
    """Compose the prompt within the model's window. Returns the composer too, for a shorter one."""
    await _replace_unknown_preset(run, created)
    most_tokens = tokens_for_messages(run, tooling)
    compose = prompt_composer(run, created, pooled, tooling)
    fitted = compose(most_tokens)
    if summary := await summarised(run, fitted.omitted):
        compose = prompt_composer(run, created, pooled, tooling, summary)
        fitted = compose(most_tokens)
    await report_omissions(run, fitted)
    return compose, fitted.prompt


async def _replace_unknown_preset(run: AssistantRun, created: CreateReturn | None) -> None:
    """Use the package's default prompts, with a warning, in place of a preset that it lacks."""
    name, presets = run.settings.prompt_preset, run.package.presets
    if name and name not in presets:
        of_files = run.runtime.app.settings_for(run.package)
        place = of_files.place("prompt_preset") if of_files.settings.prompt_preset == name else None
        if created is not None and created.prompt_preset == name:
            place = Place(run.package.hook_file)
        unknown = UnknownName("prompt preset", name, presets)
        message = f"{unknown.message}; the default prompts are used"
        await run.warn(Problem("warning", message, place, unknown.hint, "unknown_preset"))
        run.settings = run.settings.model_copy(update={"prompt_preset": ""})


async def _report_model_error(run: AssistantRun, error: HostError | None) -> None:
    run.model_failure = str(error) if error else ""
    for event in error_events(error) if error else ():
        await run.channel.send(event)


async def _search_and_start_servers(run: AssistantRun, created: CreateReturn | None) -> Pool:
    """Search, and return the ranked results. MCP servers with tools start at the same time, since
    both take long."""
    async with AsyncExitStack() as stack:
        if run.settings.mcp.servers:
            # `run.toolboxes` keeps the tools, where `_prepare_tools` finds them.
            (await stack.enter_async_context(anyio.create_task_group())).start_soon(tools_of, run)
        with _record_time(run, "search"):
            await search_automatically(run, created)
            return await ranked_pool(run)


async def _send_warnings(run: AssistantRun) -> None:
    """Send the warnings about the package, and one for each unknown key of the request."""
    for problem in run.package.warnings:
        await run.warn(problem)
    for key in run.unknown:
        await run.channel.send(Warned(code="unknown_key", message=f"the request has an {key}"))


async def _create_and_user_data(run: AssistantRun, hooks: _Hooks | None) -> CreateReturn | None:
    """Run the Create hook while the user's own data is searched. Raises HookError if
    `hooks.on_error` is `fail`, and HookAsked where Create asks the user."""
    resumes = hooks is not None and hooks.session.resumes_next
    data = user_data(() if resumes else run.asked_messages, run.question)
    if hooks is None:
        await search_user_data(run, data)
        return None
    created: CreateReturn | None = None
    asked: HookAsked | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(search_user_data, run, data)
        with _record_time(run, "create"):
            hook = hooks.session.create(run.asked_messages, hooks.services.options())
            try:
                created = await _apply_on_error(run, hooks.services.during("Create", hook))
            except HookAsked as exc:  # raised below, so that the group does not wrap it
                asked = exc
                tasks.cancel_scope.cancel()
    if asked is not None:
        raise asked
    run.journal = hooks.session.journal
    # After the group: adopting a citation format marks anew what the group's search has added.
    if created is not None:
        await _apply_on_error(run, _adopt(run, created))
    return created


async def _adopt(run: AssistantRun, created: CreateReturn) -> None:
    """Apply the settings that Create returned, with a warning for each unknown key."""
    _refuse_unknown_connector(run, created)
    reported = run.unknown
    try:
        run.adopt(created)
    except HookReturnInvalid as exc:
        raise HookReturnInvalid(
            exc.message, place=Place(run.package.hook_file), hint=exc.hint
        ) from None
    for key in run.unknown:
        if key not in reported:
            await run.channel.send(
                Warned(
                    code="unknown_key",
                    message=f"Create returned an {key}",
                    file=run.package.hook_file,
                )
            )


def _refuse_unknown_connector(run: AssistantRun, created: CreateReturn) -> None:
    """Raise HookReturnInvalid for an unknown connector."""
    try:
        for id in connector_ids(created.connector) if created.connector is not None else ():
            with suppress(ConfigError):  # a wrong file is reported when the connector is used
                run.connector(id)
    except UnknownName as exc:
        place = Place(run.package.hook_file)
        raise HookReturnInvalid(
            f"Create returned an unknown connector: {exc.message}", place=place, hint=exc.hint
        ) from None


def _is_done_by_hook(run: AssistantRun, created: CreateReturn | None) -> bool:
    """Return whether the assistant's hook alone does a delegated step: neither its package nor the
    result of Create has a connector, a prompt or a message for a model."""
    if run.request.reply is None or run.package.hook is None or run.package.prompts:
        return False
    if created is not None and (
        created.messages or created.connector or created.prompt_preset or created.tools
    ):
        return False
    own = run.package.layer.data
    return not own.get("connector") and not own.get("prompt_preset")


async def _answer_within_window(
    run: AssistantRun,
    compose: Compose,
    prompt: Prompt,
    stream: Callable[[Prompt], Awaitable[HostError | None]],
) -> tuple[Prompt, HostError | None]:
    """Stream the model's answer; if the model refuses the prompt as too long, try once more with
    one of half the size. Returns the prompt that was sent last, and the error if the model
    failed."""
    await report_given(run)
    error = await stream(prompt)
    # Text that the reader has seen cannot be taken back.
    if isinstance(error, ModelContextExceeded) and not run.answer.has_begun:
        # Half, since few endpoints report by how much the prompt is too long.
        shorter = compose(prompt_tokens(prompt.messages) // 2)
        if shorter.omissions:
            await report_omissions(run, shorter)
            prompt = shorter.prompt
            await report_given(run)
            error = await stream(prompt)
    return prompt, error


async def _stream_answer(
    run: AssistantRun, connector: Connector, pooled: Pool, tooling: Tooling, prompt: Prompt
) -> HostError | None:
    """Stream the model's answer to a prompt. Returns the error if the model failed; the text that
    arrived before is sent and kept."""
    options, contract = run.settings.options, run.request.contract
    toolbox = tooling.toolbox
    own = toolbox.schemas()
    # A Next hook may expect another format than the JSON of a delegated step, whose answer is its
    # `data`; the text that a client demands is the model's. Few endpoints take a schema with tools.
    by_model = run.package.hook is None or run.request.reply is None
    plain = by_model and not own and not contract.tools
    call = ModelCall(
        messages=prompt.messages,
        sources=prompt.sources,
        question=run.question,
        references=quotable(pooled.items, run.searcher.citation_index.grammar),
        failed_searches=run.failed_searches(),
        declined=run.declined_searches(),
        certainty=run.certainty_of_passages(),
        sentences=run.sentences,
        tools=own,
        temperature=options.temperature,
        max_tokens=options.max_tokens,
        max_completion_tokens=options.max_completion_tokens,
        sampling=_with_stop(options.sampling(), contract.stop),
        reply=run.request.demanded_reply if plain else None,
        tool_choice=contract.tool_choice,
        is_step=run.request.reply is not None,
    )
    connector = keeping(connector, contract)
    try:
        with unwrap_exception_groups():
            async with learning_windows(run, prompt):
                await run.answer.stream(connector, call, tooling)
        check_choice(contract, run.answer.client_calls)
    except HostError as exc:
        return exc
    return None


def _with_stop(sampling: Sampling, stop: tuple[str, ...]) -> Sampling:
    return sampling.model_copy(update={"stop": stop}) if stop else sampling


async def _run_next(
    run: AssistantRun, hooks: _Hooks | None, messages: Sequence[Message], error: HostError | None
) -> NextReturn | None:
    """Run the Next hook with the completion or the error. Returns None without a hook."""
    if hooks is None:
        return None
    payload = NextPayload(
        messages=tuple(message.wire() for message in messages),
        completion=run.answer.completion(),
        tools=tuple(run.answer.tools),
        error=str(error) if error else None,
        certainty=certainty_of_runs([run]),
    )
    changed = {"metadata": {**run.request.options.metadata, **run.metadata}, **run.changed}
    hook = hooks.session.next(payload, hooks.services.options(), changed)
    returned = await _apply_on_error(run, hooks.services.during("Next", hook))
    if returned is not None:
        run.metadata.update(returned.metadata or {})
    return returned


async def _apply_on_error(run: AssistantRun, hook: Awaitable[T]) -> T | None:
    """Return the result of a hook. Under `hooks.on_error: continue` a failed hook is a warning, and
    its result None."""
    try:
        with unwrap_exception_groups():
            return await hook
    except HookError as exc:
        if run.settings.hooks.on_error == "fail":
            raise
        await run.warn(exc)
        return None


@asynccontextmanager
async def _open_hooks(run: AssistantRun) -> AsyncIterator[_Hooks | None]:
    """Open the hooks of the assistant. Yields None when it has none, and when they cannot be opened
    and `hooks.on_error` is `continue`."""
    async with AsyncExitStack() as stack:
        hooks: _Hooks | None = None
        if run.package.hook is not None:
            # Imported here because assistants without a hook need no host calls.
            from groundhook.host.turn.services.turn import TurnServices

            services = TurnServices.of(run)
            opening = stack.enter_async_context(
                run.runtime.hooks.open(services.turn(run.package.hook))
            )
            session = await _apply_on_error(run, opening)
            hooks = _Hooks(session, services) if session else None
        yield hooks


@contextmanager
def _record_time(run: AssistantRun, step: str) -> Iterator[None]:
    """Record the time of the block as that of a step, in milliseconds."""
    began = run.channel.elapsed_ms()
    try:
        yield
    finally:
        run.timings[step] = round(run.channel.elapsed_ms() - began, 3)
