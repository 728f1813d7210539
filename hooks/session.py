"""One turn's hooks, seen from the host: Create and Next over one isolate, host calls in between,
limits on all of it.

Owns the course of a run, what its outcome means, and what happens when its process dies: a run that
did not cause that starts again elsewhere, with the answers it had already received, unless one of
its calls had an effect outside. A host call runs in the task that awaits the hook, so it inherits
the turn's trace and ends with it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import anyio
from pydantic import BaseModel, ValidationError

from groundhook.hooks import faults
from groundhook.hooks.api.row import HostCall
from groundhook.hooks.leases import Called, Done, Lost, Order, Seat, Seats
from groundhook.hooks.replay_log import Journal
from groundhook.hooks.script import Program, no_function
from groundhook.hooks.wire import from_v8, to_v8
from groundhook.host.core.errors import HookCrashed, HookReturnInvalid, HostError, Place, UsageError
from groundhook.host.core.ports import HookTurn
from groundhook.host.core.types.base import read
from groundhook.host.core.types.turn import (
    Client,
    CreateReturn,
    Identity,
    Message,
    NextPayload,
    NextReturn,
)

Returned = TypeVar("Returned", bound=BaseModel)

FIELDS: dict[str, Any] = {
    **dict.fromkeys(
        ("chat_id", "assistant_id", "locale", "theme", "route", "referer", "accept"), ""
    ),
    "client": Client().model_dump(),
    "metadata": {},
    "authorized": Identity().model_dump(),
}
MOST_RESTARTS = 3
PRELUDE = ("!limit", "!wait", "!uncaught", "!hole")  # what the prelude itself asks for


class Session:
    """Serves Create and Next of one turn. Close it."""

    def __init__(
        self, turn: HookTurn, program: Program, seats: Seats, calls: Mapping[str, HostCall]
    ) -> None:
        self._turn = turn
        self._known = calls
        self._limits = turn.limits
        self._program = program
        self._file = program.modules[0].file
        self._seats = seats
        self._seat: Seat | None = None
        self._alone = False
        self._loaded = False
        self._restarts = self._calls = 0
        self._past: list[
            tuple[str, str]
        ] = []  # hooks that have run in this isolate: name, arguments
        self._journal = Journal()
        self._hook = ""

    @property
    def program(self) -> Program:
        return self._program

    async def create(
        self, messages: Sequence[Message], options: Mapping[str, Any], /
    ) -> CreateReturn | None:
        wire = [message.wire() for message in messages]
        return await self._returned("Create", [wire, dict(options)], CreateReturn)

    async def next(self, payload: NextPayload, options: Mapping[str, Any], /) -> NextReturn | None:
        return await self._returned(
            "Next", [payload.model_dump(mode="json"), dict(options)], NextReturn
        )

    async def close(self) -> None:
        seat, self._seat = self._seat, None
        if seat is not None:
            await seat.leave()

    async def check(self) -> None:
        """Compile every module in V8. Raises HookSyntaxError."""
        seat = await self._take()
        seat.invoke(f"__groundhook.compile({self._program.literal})")
        await self._value(await self._finish(seat))

    # ---- a hook from end to end

    async def invoke(self, hook: str, arguments: Sequence[Any]) -> Any:
        """Call a function of the script → the JSON value it returned, None when there is no such
        function. Raises HookError."""
        self._hook = hook
        with anyio.move_on_after(self._limits.wall_ms / 1000) as scope:
            raw = await self._value(await self._done(hook, to_v8(arguments)))
        if scope.cancelled_caught:
            await self._abandon()
            raise faults.over("wall_ms", hook, self._limits, self._file)
        return raw

    async def _returned(
        self, hook: str, arguments: list[Any], model: type[Returned]
    ) -> Returned | None:
        raw = await self.invoke(hook, arguments)
        return None if raw is None else await self._validated(raw, model)

    async def _validated(self, raw: Any, model: type[Returned]) -> Returned:
        if not isinstance(raw, dict):
            said = f"{self._hook} must return an object or nothing, not {json.dumps(raw)[:40]}"
            raise HookReturnInvalid(said, place=Place(self._file))
        try:
            value, unknown = read(model, raw)
        except ValidationError as exc:
            raise faults.wrong_return(self._hook, raw, model, exc, self._program) from exc
        for key in unknown:
            await self._turn.services.warn(
                "unknown_option", f"what {self._hook} returned has an {key}"
            )
        return value

    async def _done(self, hook: str, arguments: str) -> Done:
        while True:
            if self._seat is None:
                self._seat = await self._take()
                self._loaded = False
                self._journal.rewind()
                lost = await self._repeat(self._seat)
            else:
                lost = None
            ended = lost or await self._drive(self._seat, hook, arguments)
            if isinstance(ended, Done):
                self._past.append((hook, arguments))
                return ended
            await self._recover(ended)

    async def _repeat(self, seat: Seat) -> Lost | None:
        """Bring a new isolate to where the lost one was."""
        for hook, arguments in self._past:
            ended = await self._drive(seat, hook, arguments)
            if isinstance(ended, Lost):
                return ended
        return None

    async def _drive(self, seat: Seat, hook: str, arguments: str) -> Done | Lost:
        program = "" if self._loaded else f",{self._program.literal}"
        self._loaded = True
        seat.invoke(f"__groundhook.invoke({json.dumps(hook)},{json.dumps(arguments)}{program})")
        return await self._until_ended(seat)

    async def _until_ended(self, seat: Seat) -> Done | Lost:
        while True:
            event = await seat.event()
            if not isinstance(event, Called):
                return event
            seat.reply(await self._answer(event.request))

    async def _finish(self, seat: Seat) -> Done:
        ended = await self._until_ended(seat)
        if isinstance(ended, Lost):
            self._seat = None
            raise self._crashed(ended)
        return ended

    async def _take(self) -> Seat:
        context = {**FIELDS, **self._turn.context}
        limits = {"argument_kb": self._limits.argument_kb, "result_kb": self._limits.result_kb}
        fixed = {"now": _milliseconds(self._turn.now), "seed": self._turn.seed}
        order = Order(
            to_v8({"context": context, "limits": limits, "fixed": fixed}),
            self._limits.heap_mb,
            self._limits.cpu_ms,
            self._limits.memory_mb,
        )
        self._seat = await self._seats.take(order, alone=self._alone)
        return self._seat

    # ---- when the process is gone

    async def _recover(self, lost: Lost) -> None:
        await self._abandon(keep=True)
        self._restarts += 1
        if lost.role == "culprit" or not self._journal.complete or self._restarts > MOST_RESTARTS:
            self._past.clear()
            raise self._crashed(lost)
        self._alone = self._alone or lost.role == "suspect"

    def _crashed(self, lost: Lost) -> HostError:
        hook, place = self._hook or "the hook", Place(self._file)
        if not lost.started:
            hint = "`python -m groundhook.hooks.worker 0` in a terminal says why"
            return HookCrashed(
                f"the process for hooks did not start ({lost.reason})", place=place, hint=hint
            )
        if lost.role == "culprit" and lost.limit:
            return faults.over(lost.limit, hook, self._limits, self._file)
        if lost.role == "culprit":
            hint = "V8 gave up on something it did, such as an array or a text far too large"
            return HookCrashed(
                f"{hook} ended the process it ran in ({lost.reason})", place=place, hint=hint
            )
        hint = (
            "what it had done outside cannot be done twice"
            if not self._journal.complete
            else "try again"
        )
        return HookCrashed(
            f"the process {hook} ran in was ended by another run ({lost.reason})",
            place=place,
            hint=hint,
        )

    async def _abandon(self, *, keep: bool = False) -> None:
        """Give up the isolate; what it held is lost, unless it will be brought back."""
        with anyio.CancelScope(shield=True):
            await self.close()
        if not keep:
            self._past.clear()
            self._journal = Journal()

    # ---- what came of it

    async def _value(self, done: Done) -> Any:
        """The JSON value a hook returned, None for nothing. Raises HookError."""
        tag, rest = done.text[:1], done.text[1:]
        if done.kind in ("limit", "heap"):
            raise await self._over("heap_mb" if done.kind == "heap" else done.text)
        if done.kind == "stopped":
            raise HookCrashed(f"{self._hook} was stopped", place=Place(self._file))
        if done.kind != "value":
            raise faults.failed(self._hook, done.text, self._program)
        match tag:
            case "":
                return None
            case "=":
                return self._loaded_json(rest)
            case "?":
                raise faults.no_json(self._hook, rest, self._program)
            case "^":
                raise await self._over(rest)
            case "&":
                raise faults.never(self._hook, self._file)
            case "#":
                raise no_function(self._hook, rest, Place(self._file))
            case "%":
                raise await self._unparsed(json.loads(rest))
            case _:
                raise faults.threw(self._hook, rest, self._program)

    def _loaded_json(self, text: str) -> Any:
        try:
            return from_v8(text)
        except ValueError as exc:
            raise HookReturnInvalid(
                f"what {self._hook} returned is {exc}", place=Place(self._file)
            ) from exc

    async def _over(self, limit: str) -> HostError:
        await self._abandon()
        return faults.over(limit, self._hook, self._limits, self._file)

    async def _unparsed(self, refused: Mapping[str, Any]) -> HostError:
        """V8 says where only when it is given the module by itself."""
        index: int = refused["index"]
        assert self._seat is not None
        self._seat.invoke(json.loads(self._program.text)[index]["code"])
        again = await self._finish(self._seat)
        await self._abandon()
        return faults.unparsed(index, str(refused["message"]), again.text, self._program)

    # ---- host calls

    async def _answer(self, request: str) -> str:
        name, _, text = request.partition("\n")
        if name in PRELUDE:
            return await self._attend(name, text)
        known = self._journal.answer(request)
        if known is not None:
            return known
        self._calls += 1
        if self._calls > self._limits.calls:
            raise await self._over("calls")
        call = self._known.get(name)
        if call is None:  # no script can say that through the prelude
            raise HookCrashed(
                f"{self._hook} asked the host for {name[:80]!r}, which is no call",
                place=Place(self._file),
            )
        answer = await self._dispatch(call, text)
        if len(answer) > self._limits.result_kb * 1024:
            raise await self._over("result_kb")
        self._journal.add(request, answer, call.effect)
        return answer

    async def _attend(self, name: str, text: str) -> str:
        if name == "!limit":
            raise await self._over(text)
        if name == "!wait":  # until the next timer is due
            await anyio.sleep(float(text) / 1000)
        else:
            code, error = faults.warned(name, self._hook, text, self._program)
            hint = f" ({error.hint})" if error.hint else ""
            await self._turn.services.warn(code, f"{error.message}{hint}", error.place)
        return ""

    async def _dispatch(self, call: HostCall, text: str) -> str:
        try:
            arguments = self._arguments(call, text)
            with anyio.move_on_after(self._limits.call_ms / 1000) as scope:
                value = await call.run(call, self._turn.services, arguments)
        except UsageError as exc:
            return _thrown("TypeError", str(exc), exc.code)
        except HostError as exc:
            return _thrown("Error", str(exc), exc.code)
        if scope.cancelled_caught:
            if call.late is None:
                raise await self._over("call_ms")
            limit = faults.over("call_ms", self._hook, self._limits, self._file)
            try:
                value = call.late(
                    arguments, f"no answer in {self._limits.call_ms} ms ({limit.hint})"
                )
            except HostError as exc:
                return _thrown("Error", str(exc), exc.code)
        return f"={value}" if value else ""

    def _arguments(self, call: HostCall, text: str) -> list[Any]:
        try:
            arguments = from_v8(text)
        except ValueError as exc:
            raise UsageError(f"{call.js}: what it was given is {exc}") from exc
        if not isinstance(arguments, list):
            raise UsageError(f"{call.js}: what it was given is no list of arguments")
        if call.prints and "hook:" in text:
            return [
                faults.mapped(value, self._program) if isinstance(value, str) else value
                for value in arguments
            ]
        return arguments


def _milliseconds(moment: datetime | None) -> int | None:
    """A moment as JavaScript counts time."""
    return None if moment is None else round(moment.timestamp() * 1000)


def _thrown(name: str, message: str, code: str) -> str:
    return "!" + json.dumps({"name": name, "message": message, "code": code})
