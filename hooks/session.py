"""The hooks of one turn, on the host's side: runs Create and Next in one isolate, under limits, and
interprets their outcomes. If the process dies, a run that did not cause it starts again in another
process with the answers that it had already received, unless one of its calls had an effect
outside. A host call (`hooks/host_calls.py`) runs in the task that awaits the hook, so it inherits
the turn's trace and ends with it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import anyio
from pydantic import BaseModel, ValidationError

from groundhook.core.errors import (
    HookCrashed,
    HookError,
    HookReturnInvalid,
    HostError,
    Place,
)
from groundhook.core.hook_engine import HookAsked, HookTurn, ScriptFunction
from groundhook.core.types.base import validate_known
from groundhook.core.types.events import HookJournal
from groundhook.core.types.turn import (
    Client,
    CreateReturn,
    Identity,
    Message,
    NextPayload,
    NextReturn,
)
from groundhook.hooks import faults
from groundhook.hooks.api.row import HostCall
from groundhook.hooks.host_calls import HostCalls
from groundhook.hooks.leases import Called, Done, Lease, LeaseSource, LeaseTerms, Lost
from groundhook.hooks.program import HookProgram, non_function_error
from groundhook.hooks.replay_log import ReplayLog
from groundhook.hooks.wire import from_v8, to_v8

Returned = TypeVar("Returned", bound=BaseModel)

FIELDS: dict[str, Any] = {
    **dict.fromkeys(
        ("chat_id", "assistant_id", "question", "locale", "theme", "route", "referer", "accept"), ""
    ),
    "client": Client().model_dump(),
    "metadata": {},
    "authorized": Identity().model_dump(),
}
MOST_RESTARTS = 3
_ABSENT = object()


class IsolateSession:
    """Serves Create and Next of one turn. Close it."""

    def __init__(
        self,
        turn: HookTurn,
        program: HookProgram,
        source: LeaseSource,
        table: Mapping[str, HostCall],
    ) -> None:
        self._turn = turn
        self._calls = HostCalls(turn, program, table)
        self._limits = turn.limits
        self._program = program
        self._file = program.modules[0].file
        self._source = source
        self._lease: Lease | None = None
        self._alone = False
        self._loaded = False
        self._restarts = 0
        # hooks that have run in this isolate: name, arguments
        self._past: list[tuple[str, str]] = []
        self._hook = ""

    @property
    def program(self) -> HookProgram:
        return self._program

    @property
    def journal(self) -> HookJournal:
        return self._calls.journal.calls if self._calls.journal.has_question else ()

    @property
    def resumes_next(self) -> bool:
        return self._calls.journal.kept_payload is not None

    async def create(
        self, messages: Sequence[Message], options: Mapping[str, Any], /
    ) -> CreateReturn | None:
        wire = [message.wire() for message in messages]
        return await self._invoke_as("Create", [wire, dict(options)], CreateReturn)

    async def next(
        self,
        payload: NextPayload,
        options: Mapping[str, Any],
        /,
        context: Mapping[str, Any] | None = None,
    ) -> NextReturn | None:
        journal = self._calls.journal
        given = journal.kept_payload or payload.model_dump(mode="json")
        journal.begin_next(given, Place(self._file))
        return await self._invoke_as(
            "Next", [given, dict(options), dict(context or {})], NextReturn
        )

    async def call(
        self, function: ScriptFunction, arguments: Mapping[str, Any] | Sequence[Any], /
    ) -> Any:
        given = _order_arguments(function, arguments)
        at = function.context
        if at >= 0:  # the worker puts `ctx` there
            given += [_ABSENT] * (at - len(given))
            if not isinstance(arguments, Mapping) and _has_context(function, given):
                given[at] = None
            else:
                given.insert(at, None)
        absent = [index for index, value in enumerate(given) if value is _ABSENT]
        sent = [None if value is _ABSENT else value for value in given]
        return await self.invoke(function.name, [None, {}, {}, sent, at, absent])

    async def close(self) -> None:
        """Release the isolate, if there is one."""
        lease, self._lease = self._lease, None
        if lease is not None:
            await lease.release()

    async def check(self) -> None:
        """Compile every module in V8. Raises HookSyntaxError."""
        lease = await self._take_lease()
        lease.invoke(f"__groundhook.compile({self._program.literal})")
        await self._read_outcome(await self._finish(lease))

    # ---- a hook from end to end

    async def invoke(self, hook: str, arguments: Sequence[Any]) -> Any:
        """Call a function of the script and return its JSON value; None if there is no such
        function. Raises HookError."""
        self._hook = self._calls.hook = hook
        with anyio.move_on_after(self._limits.wall_ms / 1000) as scope:
            raw = await self._read_outcome(await self._run(hook, to_v8(arguments)))
        if scope.cancelled_caught:
            await self._abandon()
            raise faults.limit_error("wall_ms", hook, self._limits, self._file)
        return raw

    async def _invoke_as(
        self, hook: str, arguments: list[Any], model: type[Returned]
    ) -> Returned | None:
        raw = await self.invoke(hook, arguments)
        return None if raw is None else await self._validate(raw, model)

    async def _validate(self, raw: Any, model: type[Returned]) -> Returned:
        if not isinstance(raw, dict):
            message = f"{self._hook} must return an object or nothing, not {json.dumps(raw)[:40]}"
            raise HookReturnInvalid(message, place=Place(self._file))
        try:
            value, unknown = validate_known(model, raw)
        except ValidationError as exc:
            raise faults.return_error(self._hook, raw, model, exc, self._program) from exc
        for key in unknown:
            await self._turn.services.warn(
                "unknown_option", f"what {self._hook} returned has an {key}"
            )
        return value

    async def _run(self, hook: str, arguments: str) -> Done:
        """Run a hook to its end, in another isolate if its process dies and it may be repeated;
        return the outcome."""
        while True:
            lost = None
            lease = self._lease
            if lease is None:
                lease = await self._take_lease()
                self._loaded = False
                self._calls.log.rewind()
                lost = await self._repeat(lease)
            ended = lost or await self._drive(lease, hook, arguments)
            if isinstance(ended, Done):
                self._past.append((hook, arguments))
                return ended
            await self._recover(ended)

    async def _repeat(self, lease: Lease) -> Lost | None:
        """Run the earlier hooks again, so that a new isolate has the state of the lost one."""
        for hook, arguments in self._past:
            ended = await self._drive(lease, hook, arguments)
            if isinstance(ended, Lost):
                return ended
        return None

    async def _drive(self, lease: Lease, hook: str, arguments: str) -> Done | Lost:
        program = "" if self._loaded else f",{self._program.literal}"
        self._loaded = True
        lease.invoke(f"__groundhook.invoke({json.dumps(hook)},{json.dumps(arguments)}{program})")
        return await self._answer_calls(lease)

    async def _answer_calls(self, lease: Lease) -> Done | Lost:
        """Answer host calls until the code has ended; return how it ended."""
        while True:
            event = await lease.event()
            if not isinstance(event, Called):
                return event
            try:
                answer = await self._calls.answer(event.request)
            except (HookError, HookAsked):
                await self._abandon()
                raise
            lease.reply(answer)

    async def _finish(self, lease: Lease) -> Done:
        ended = await self._answer_calls(lease)
        if isinstance(ended, Lost):
            self._lease = None
            raise self._crash_error(ended)
        return ended

    async def _take_lease(self) -> Lease:
        context = {**FIELDS, **self._turn.context}
        limits = {"argument_kb": self._limits.argument_kb, "result_kb": self._limits.result_kb}
        fixed = {"now": _to_milliseconds(self._turn.now), "seed": self._turn.seed}
        terms = LeaseTerms(
            to_v8(
                {"context": context, "limits": limits, "fixed": fixed, "trace": self._turn.trace_id}
            ),
            self._limits.heap_mb,
            self._limits.cpu_ms,
            self._limits.memory_mb,
        )
        self._lease = await self._source.lease(terms, alone=self._alone)
        return self._lease

    # ---- when the process is gone

    async def _recover(self, lost: Lost) -> None:
        """Drop the isolate; raise unless the run may start again in another process."""
        self._restarts += 1
        again = (
            lost.role != "culprit" and self._calls.log.complete and self._restarts <= MOST_RESTARTS
        )
        error = None if again else self._crash_error(lost)
        await self._abandon(keep=again)
        if error is not None:
            raise error
        self._alone = self._alone or lost.role == "suspect"

    def _crash_error(self, lost: Lost) -> HostError:
        hook, place = self._hook or "the hook", Place(self._file)
        if not lost.started:
            hint = "run `python -m groundhook.hooks.worker 0` in a terminal to see why"
            return HookCrashed(
                f"the process for hooks did not start ({lost.reason})", place=place, hint=hint
            )
        if lost.role == "culprit" and lost.limit:
            return faults.limit_error(lost.limit, hook, self._limits, self._file)
        if lost.role == "culprit":
            hint = "V8 aborts on a few things, such as an array or a text that is far too large"
            return HookCrashed(
                f"{hook} ended the process it ran in ({lost.reason})", place=place, hint=hint
            )
        hint = (
            "its effects outside cannot be repeated"
            if not self._calls.log.complete
            else "try again"
        )
        return HookCrashed(
            f"another run ended the process that {hook} ran in ({lost.reason})",
            place=place,
            hint=hint,
        )

    async def _abandon(self, *, keep: bool = False) -> None:
        """Drop the isolate. `keep`: keep its replay log, since the run will be repeated."""
        with anyio.CancelScope(shield=True):
            await self.close()
        if not keep:
            self._past.clear()
            self._calls.log = ReplayLog()

    # ---- the outcome

    async def _read_outcome(self, done: Done) -> Any:
        """Return the JSON value that a hook returned, None for nothing. Raises HookError. The first
        character of the text is a tag: those are listed at `pack` of prelude.js."""
        tag, rest = done.text[:1], done.text[1:]
        if done.kind in ("limit", "heap"):
            raise await self._limit_error("heap_mb" if done.kind == "heap" else done.text)
        if done.kind == "stopped":
            raise HookCrashed(f"{self._hook} was stopped", place=Place(self._file))
        if done.kind != "value":
            raise faults.engine_error(self._hook, done.text, self._program)
        match tag:
            case "":
                return None
            case "=":
                return self._parse_return(rest)
            case "?":
                raise faults.no_json_error(self._hook, rest, self._program)
            case "^":
                raise await self._limit_error(rest)
            case "&":
                raise faults.unsettled_error(self._hook, self._file)
            case "#":
                raise non_function_error(self._hook, rest, Place(self._file))
            case "%":
                raise await self._syntax_error(from_v8(rest))
            case _:
                raise faults.thrown_error(self._hook, rest, self._program)

    def _parse_return(self, text: str) -> Any:
        try:
            return from_v8(text)
        except ValueError as exc:
            raise HookReturnInvalid(
                f"what {self._hook} returned is {exc}", place=Place(self._file)
            ) from exc

    async def _limit_error(self, limit: str) -> HostError:
        await self._abandon()
        return faults.limit_error(limit, self._hook, self._limits, self._file)

    async def _syntax_error(self, refused: Mapping[str, Any]) -> HostError:
        """Return the error of a module that V8 refused. It is evaluated by itself, because only
        then does V8 report the place."""
        index: int = refused["index"]
        assert self._lease is not None
        self._lease.invoke(json.loads(self._program.text)[index]["code"])
        again = await self._finish(self._lease)
        await self._abandon()
        return faults.module_syntax_error(index, str(refused["message"]), again.text, self._program)


def _to_milliseconds(moment: datetime | None) -> int | None:
    """Return a moment in JavaScript's milliseconds."""
    return None if moment is None else round(moment.timestamp() * 1000)


def _order_arguments(
    function: ScriptFunction, arguments: Mapping[str, Any] | Sequence[Any]
) -> list[Any]:
    """Return the arguments in the order in which a function takes them, without ctx."""
    if not isinstance(arguments, Mapping):
        return list(arguments)
    if function.order is None:
        return [dict(arguments)]
    given = [arguments.get(name, _ABSENT) for name in function.order]
    if function.rest:
        following = given.pop()
        given += following if isinstance(following, list) else []
    return given


def _has_context(function: ScriptFunction, given: Sequence[Any]) -> bool:
    """Return whether a caller includes a copy of its own ctx: it passes all parameters. A rest
    parameter takes any number of them, and there an object counts as ctx."""
    at = function.context
    if function.rest:
        return len(given) > at and isinstance(given[at], Mapping)
    return len(given) == function.takes
