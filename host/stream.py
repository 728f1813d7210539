"""Stream(): one turn of a conversation, from the request to the last event.

    begin ─ Create hook, and the user's own data ─ plan ─ retrieve ─ prompt ─ model and tools ─ Next hook ─ finish

A failed search never ends a turn. A failed model does not keep Next from running. What ends a turn is one `error` event,
and `stream_end` still follows with what had arrived.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

import anyio
from pydantic import ValidationError

from host.content import user_data
from host.errors import HookError, HookReturnInvalid, HostError, leaves
from host.output.channel import Channel
from host.output.findings import failures
from host.output.outbox import Outbox
from host.ports import HookSession, ModelCall
from host.prompt import quotable, with_references
from host.retrieval import ranked_pool, search_automatically, search_user_data
from host.run import Heard, Machinery, Request, Run
from host.search.merge import Pool
from host.services.tools import tools_of
from host.services.turn import TurnServices, hook_options, hook_turn
from host.trace import recording, span
from host.types.base import dotted, problems, read
from host.types.events import Event, Failed, StreamEnd, Trace, Warned
from host.types.turn import CreateReturn, Delegation, Message, NextPayload, NextReturn, TurnOptions

T = TypeVar("T")


@dataclass(frozen=True)
class _Hooks:
    """The hooks of one assistant in one turn, and what the host does for them."""

    session: HookSession
    services: TurnServices


log = logging.getLogger("groundhook")


@asynccontextmanager
async def open_turn(machinery: Machinery, request: Request) -> AsyncIterator[AsyncIterator[Event]]:
    """Enter a turn and read its events. Leaving it stops the model, the searches and the hook before the next line.
    Raises UnknownName for an assistant that is not there, and ConfigError for one that cannot be used."""
    channel = Channel(f"t_{secrets.token_hex(6)}")
    run = Run.begin(machinery, request, channel, call)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_drive, run)
        try:
            yield channel
        finally:
            channel.close()
            tasks.cancel_scope.cancel()


async def _drive(run: Run) -> None:
    """The turn and those it is handed to, with every failure told to the client."""
    channel, data = run.channel, None
    try:
        await channel.send(run.started())
        with recording(lambda node: channel.note(Trace(node=node))):
            try:
                with anyio.fail_after(run.machinery.app.settings.turn_timeout_ms / 1000), span("turn", run.package.id):
                    run, data = await _follow(run)
            except* TimeoutError:
                limit = run.machinery.app.settings.turn_timeout_ms
                await channel.send(Failed(code="turn_timeout", message=f"the turn took longer than {limit} ms"))
            except* HostError as errors:
                for error in leaves(errors):
                    assert isinstance(error, HostError)
                    await _fail(run, error)
            except* Exception as bugs:  # the outermost edge: a bug ends its own turn, loudly, and no other
                log.exception("a bug in Groundhook or a plug-in ended the turn %s", channel.turn_id)
                message = "; ".join(repr(bug) for bug in leaves(bugs))
                await channel.send(
                    Failed(code="internal", message=f"internal error: {message}", hint="the log has the traceback")
                )
        await channel.send(_end(run, data))
    finally:
        channel.close()


async def _follow(run: Run) -> tuple[Run, NextReturn | None]:
    """Run the turn, and the turns it delegates to, in the same channel → the last run and what its Next returned."""
    while True:
        delegation, data = await _turn(run)
        if delegation is None:
            return run, data
        request = await _handed_on(run, delegation)
        run = Run.begin(run.machinery, request, run.channel, call, caller=run, outbox=run.outbox)
        await run.channel.send(run.started())


async def _handed_on(run: Run, delegation: Delegation) -> Request:
    """What the next assistant is asked: as this one was, but for what the hook said. Raises HookReturnInvalid."""
    said = {**run.request.options.model_dump(exclude_unset=True), **delegation.options}
    try:
        options, unknown = read(TurnOptions, said)
    except ValidationError as exc:
        path, message = problems(exc)[0]
        raise HookReturnInvalid(f"{run.package.shown}: delegate.options.{dotted(path)}: {message}") from None
    for key in unknown:
        await run.channel.send(Warned(code="unknown_key", message=f"delegate.options has an {key}", file=run.package.shown))
    messages = delegation.messages or run.request.messages
    return replace(run.request, assistant_id=delegation.agent_id, messages=messages, options=options)


async def call(caller: Run, request: Request, heard: Heard, outbox: Outbox | None) -> tuple[StreamEnd, str]:
    """A turn within a turn, for a hook that calls another assistant: `host.run.Nested`. Its events go to `heard` instead of the
    client, its steps into the caller's trace."""
    channel = Channel(caller.channel.turn_id)
    run = Run.begin(caller.machinery, request, channel, call, caller=caller, outbox=outbox)
    data, failed = None, list[str]()

    async def listen() -> None:
        async for event in channel:
            if isinstance(event, Failed):
                failed.append(f"{event.message} ({event.hint})" if event.hint else event.message)
            else:
                await heard(event)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen)
        try:
            run, data = await _follow(run)
        except* HostError as errors:
            failed += [str(error) for error in leaves(errors)]
        finally:
            channel.close()
    return _end(run, data), "; ".join(failed)


async def _turn(run: Run) -> tuple[Delegation | None, NextReturn | None]:
    """The steps of one turn, in order → whom it is handed to, what Next returned."""
    await _say_warnings(run)
    async with _open_hooks(run) as hooks:
        created = await _create_and_user_data(run, hooks)
        if created is not None and created.delegate is not None:
            return created.delegate, None
        pooled = await _search_beside_tools(run, created)
        messages = _messages(run, created, pooled)
        with _timed(run, "model"):
            error = await _answer(run, messages, pooled)
        with _timed(run, "next"):
            returned = await _next(run, hooks, messages, error)
    delegation = returned.delegate if returned else None
    if error is not None and delegation is None:
        await _fail(run, error)
    return delegation, returned


async def _search_beside_tools(run: Run, created: CreateReturn | None) -> Pool:
    """MCP servers that tools are wanted of start while the search is under way."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tools_of, run)
        with _timed(run, "search"):
            await search_automatically(run, created)
            pooled = await ranked_pool(run)
    return pooled


async def _fail(run: Run, error: HostError) -> None:
    for event in failures(error):
        await run.channel.send(event)


async def _say_warnings(run: Run) -> None:
    """What is odd about the package, and keys of the request that nothing reads."""
    for problem in run.package.warnings:
        await run.warn(problem)
    for key in run.unknown:
        await run.channel.send(Warned(code="unknown_key", message=f"the request has an {key}"))


async def _create_and_user_data(run: Run, hooks: _Hooks | None) -> CreateReturn | None:
    """Create runs while the user's own data is searched. Raises HookError when the assistant wants that."""
    created: CreateReturn | None = None

    async def create() -> None:
        nonlocal created
        if hooks is not None:
            with _timed(run, "create"):
                hook = hooks.session.create(run.request.messages, hook_options(run.request.options))
                created = await _governed(run, hooks, "Create", hook)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(create)
        tasks.start_soon(search_user_data, run, user_data(run.request.messages))
    if created is not None:
        told = run.unknown
        run.adopt(created)
        for key in run.unknown:
            if key not in told:
                await run.channel.send(Warned(code="unknown_key", message=f"Create returned an {key}", file=run.package.shown))
    return created


def _messages(run: Run, created: CreateReturn | None, pooled: Pool) -> list[Message]:
    """What the model is sent: prompts, the conversation as Create left it, and the sources.

    Messages of Create with a user message among them are the conversation; without one they are context for it. A hook that
    returns messages and turns the citation prompt off has formatted its own findings: they are not repeated.
    """
    conversation = list(run.request.messages)
    added = list(created.messages or ()) if created else []
    if any(message.role == "user" for message in added):
        conversation = added
    elif added:
        last = max((n for n, message in enumerate(conversation) if message.role == "user"), default=len(conversation))
        conversation = [*conversation[:last], *added, *conversation[last:]]
    citation = run.settings.search.citation
    own = bool(added) and not citation.auto_inject_prompt
    items = [entry.item for entry in pooled.entries if not (own and entry.source == "hook")]
    shared = () if run.settings.disable_global_prompts else run.machinery.app.prompts
    own_prompts = run.package.prompts_for(run.settings.prompt_preset)
    return with_references([*shared, *own_prompts, *conversation], items, citation, run.machinery.fixed.token(8))


async def _answer(run: Run, messages: Sequence[Message], pooled: Pool) -> HostError | None:
    """The model's answer → the error when it failed; what had arrived was sent and is kept."""
    options = run.settings.options
    toolbox = await tools_of(run)
    call = ModelCall(
        messages=messages,
        question=run.question,
        references=quotable(pooled.items, run.searcher.book.format),
        tools=toolbox.schemas(),
        temperature=options.temperature,
        max_tokens=options.max_tokens,
        max_completion_tokens=options.max_completion_tokens,
    )
    try:
        connector = run.machinery.connectors(run.settings.connector)
        await run.answer.stream(connector, call, toolbox, rounds=options.tool_rounds, result_kb=options.tool_result_kb)
    except HostError as exc:
        return exc
    return None


async def _next(run: Run, hooks: _Hooks | None, messages: Sequence[Message], error: HostError | None) -> NextReturn | None:
    """Next sees the completion, or the error."""
    if hooks is None:
        return None
    payload = NextPayload(
        messages=tuple(message.wire() for message in messages),
        completion=run.answer.completion(),
        tools=tuple(run.answer.tools),
        error=str(error) if error else None,
    )
    returned = await _governed(run, hooks, "Next", hooks.session.next(payload, hook_options(run.request.options)))
    if returned is not None:
        run.metadata.update(returned.metadata or {})
    return returned


async def _governed(run: Run, hooks: _Hooks, name: str, hook: Awaitable[T]) -> T | None:
    """A hook's return. With `hooks.on_error: continue` a hook that fails is a warning and returned nothing."""
    try:
        return await hooks.services.during(name, hook)
    except HookError as exc:
        if run.settings.hooks.on_error == "fail":
            raise
        await run.warn(exc)
        return None


@asynccontextmanager
async def _open_hooks(run: Run) -> AsyncIterator[_Hooks | None]:
    if run.package.hook is None:
        yield None
        return
    services = TurnServices.of(run)
    async with run.machinery.hooks.open(hook_turn(run, run.package.hook, services)) as session:
        yield _Hooks(session, services)


@contextmanager
def _timed(run: Run, step: str) -> Iterator[None]:
    began = run.channel.elapsed_ms()
    try:
        yield
    finally:
        run.timings[step] = round(run.channel.elapsed_ms() - began, 3)


def _end(run: Run, returned: NextReturn | None) -> StreamEnd:
    answer = run.answer
    if answer.first_text_ms is not None:
        run.timings["first_text"] = round(answer.first_text_ms, 3)
    run.timings["total"] = round(run.channel.elapsed_ms(), 3)
    return StreamEnd(
        content=answer.content,
        citations=tuple(answer.cited.values()),
        data=returned.data if returned else None,
        metadata=run.metadata,
        finish_reason=answer.finish_reason,
        usage=answer.usage,
        timings=run.timings,
    )
