"""Endpoints of the workbench: trials of settings and prompts beside the files, and tests that keep
what worked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
from anyio import to_thread
from pydantic import Field
from starlette.responses import Response, StreamingResponse

from groundhook.core.errors import UsageError
from groundhook.core.json_lines import line
from groundhook.core.types.base import FewOf, Value
from groundhook.core.types.connector_spec import Price
from groundhook.core.types.turn import Identity, Message
from groundhook.host.config.package import Package
from groundhook.host.config.trial import Trial, trial_of
from groundhook.host.config.trial_diff import trial_changes, trial_diff
from groundhook.host.output.dialects.blocks import written
from groundhook.host.output.dialects.kept import kept
from groundhook.host.server import request_body
from groundhook.host.server.api.steps import StepLines, lines_of
from groundhook.host.server.identity.client_addresses import is_loopback
from groundhook.host.server.problems import Refused
from groundhook.host.server.serving import Call
from groundhook.host.server.turns.blocks_writer import parsed_of
from groundhook.host.server.turns.sse import JSON_LINES
from groundhook.host.testing.evaluation.comparing import MEASURES, compare, mean
from groundhook.host.testing.evaluation.evaluator import prices_of
from groundhook.host.testing.evaluation.scoring import Outcome, Turn, outcome_of
from groundhook.host.testing.evaluation.suite import EvaluationRow, append_row, line_of
from groundhook.host.testing.moves import moves
from groundhook.host.testing.side_by_side import OnText, Side, SideBySide

MOST_QUESTIONS = 50
COLUMNS = ("files", "trial")
TESTS_FILE = "tests/workbench.suite.jsonl"  # in the assistant's folder
_Send = Callable[[Mapping[str, Any]], Awaitable[None]]
_OWN_STEPS = ("", "builtin", "disabled")
_NO_ASSISTANT = ("mcp:", "connector:")


class TrialRequest(Value):
    """A trial of an assistant, and what it is asked."""

    assistant: str = Field(min_length=1, max_length=1000, description="Id of the assistant")
    trial: dict[str, Any] = Field(default={}, description="Keys of package.yao, and prompts")
    questions: FewOf[EvaluationRow] = Field(
        default=(),
        max_length=MOST_QUESTIONS,
        description="Rows of a suite: {question, sources, phrases, figures, refusal, messages};"
        " none: the diff alone",
    )
    stream: bool = Field(
        default=False, description="Whether each piece of an answer is sent as it comes"
    )


class KeptTest(Value):
    """A row for the suite of the workbench."""

    row: EvaluationRow = Field(description="The question, and what its answer must have")
    write: bool = Field(default=False, description="Whether to write it, or to show it only")


async def create(call: Call) -> Response:
    """Ask questions under the files and under a trial, and yield a line for each answer."""
    wanted = request_body.validate_strictly(TrialRequest, await call.json())
    package, trial = trial_for(call, wanted.assistant, wanted.trial)
    rows = [_own_row(row, wanted.assistant, n) for n, row in enumerate(wanted.questions)]
    call.admit_stream()
    head = {
        "type": "trial",
        "columns": COLUMNS,
        "changes": trial_changes(package, trial),
        "prompts": trial.prompts is not None,
        "diff": [
            {"file": name, "diff": text}
            for name, text in await to_thread.run_sync(trial_diff, package, trial)
        ],
    }
    return StreamingResponse(_answers(call, wanted, trial, rows, head), media_type=JSON_LINES)


def trial_for(call: Call, assistant: str, given: Mapping[str, Any]) -> tuple[Package, Trial]:
    """Return an assistant with a trial of it that the caller may make. Raises UnknownName,
    UsageError, ConfigError."""
    package = call.serving.package(call.caller, assistant)
    trial = trial_of(given, package)
    _check_assistants(call, trial)
    call.serving.host.app.settings_for(package, trial=trial)  # raises for what does not fit
    return package, trial


def _check_assistants(call: Call, trial: Trial) -> None:
    """Raise UnknownName for a step that is given to an assistant which the caller may not use."""
    uses = trial.layer.data.get("uses", {})
    rerank = trial.layer.data.get("search", {}).get("rerank", {})
    for name in (*uses.values(), rerank.get("agent") or ""):
        if name not in _OWN_STEPS and not name.startswith(_NO_ASSISTANT):
            call.serving.package(call.caller, name)


def _own_row(row: EvaluationRow, assistant: str, number: int) -> EvaluationRow:
    """Return a row for the caller. Raises UsageError for one of another assistant or person."""
    if row.assistant not in ("", assistant):
        raise UsageError(f"questions[{number}].assistant: a trial is of {assistant!r} alone")
    if row.identity != Identity():
        raise UsageError(f"questions[{number}].identity: a trial runs under that of its caller")
    return row


@dataclass(frozen=True)
class _Run:
    """The questions of one request."""

    call: Call
    asked: SideBySide
    rows: Sequence[EvaluationRow]
    prices: Mapping[str, Price]
    stream: bool

    async def answers(self, send: _Send) -> None:
        """Ask the questions one after the other, each in both columns at once, and send a line for
        each answer and for the moves between them."""
        outcomes: dict[int, list[Outcome]] = {0: [], 1: []}
        for number, row in enumerate(self.rows):
            sides: dict[int, Side] = {}
            async with anyio.create_task_group() as tasks:
                for column in range(len(COLUMNS)):
                    tasks.start_soon(self._column, row, number, column, sides, outcomes, send)
            before, after = sides[0].ranking, sides[1].ranking
            found = moves(before[0], after[0], before[1], after[1])
            await send({"type": "moves", "question": number, "moves": found})
        if self.rows:
            await send(_summary(outcomes[0], outcomes[1]))

    async def _column(
        self,
        row: EvaluationRow,
        number: int,
        column: int,
        sides: dict[int, Side],
        outcomes: dict[int, list[Outcome]],
        send: _Send,
    ) -> None:
        messages = [*row.messages, Message(role="user", content=row.question)]

        async def on_text(delta: str) -> None:
            piece = {"question": number, "column": column, "delta": delta}
            await send({"type": "text", **piece})

        side = sides[column] = await self._admitted(
            messages, column, send, on_text if self.stream else None
        )
        outcome = outcome_of(Turn(number, column, 0), row, side.events, self.prices)
        outcomes[column].append(outcome)
        shown = await _shown(self.call, side, outcome, brief=len(self.rows) > 1)
        await send({"type": "answer", "question": number, "column": column, **shown})

    async def _admitted(
        self, messages: Sequence[Message], column: int, send: _Send, on_text: OnText | None
    ) -> Side:
        """Return a side within the limits of turns, waiting for the next one if need be."""
        serving, caller = self.call.serving, self.call.caller
        while True:
            try:
                async with serving.admitted(caller):
                    return await self.asked.ask(messages, column, on_text)
            except Refused as exc:
                if exc.code != "rate_limited":
                    raise
                seconds = int(exc.headers.get("retry-after", "2"))
                await send({"type": "waiting", "seconds": seconds, "reason": exc.message})
                await anyio.sleep(seconds)


async def _answers(
    call: Call,
    wanted: TrialRequest,
    trial: Trial,
    rows: Sequence[EvaluationRow],
    head: Mapping[str, Any],
) -> AsyncIterator[str]:
    host = call.serving.host
    asked = SideBySide.of(host, wanted.assistant, call.caller.identity, trial)
    run = _Run(call, asked, rows, prices_of(host), wanted.stream)

    async def work(steps: StepLines) -> None:
        await steps.tell(head)
        await run.answers(steps.tell)

    async for each in lines_of(call, work):
        yield each


async def _shown(call: Call, side: Side, outcome: Outcome, *, brief: bool) -> dict[str, Any]:
    """Return a side as the page shows it; `brief`: without sources and prompt."""
    audience = call.audience(trace=True)
    seen = (audience.of(event) for event in side.events)
    answer = kept(event for event in seen if event is not None)
    blocks = (await parsed_of(call.serving.readers, *written(answer)))[0]
    entries, dropped = side.ranking
    shown = {
        **answer.model_dump(
            mode="json",
            include={"content", "citations", "certainty", "grounded", "claims", "usage", "timings"},
        ),
        "blocks": blocks,
        "ranking": entries,
        "dropped": dropped,
        "cost": outcome.cost,
        "calls": side.calls,
        "checks": dict(outcome.checks),
        "lacks": outcome.lacks,
        "passed": outcome.passed,
        "errors": [each.model_dump(mode="json") for each in answer.errors],
        "warnings": [each.model_dump(mode="json") for each in answer.warnings],
    }
    return shown if brief else {**shown, "prompt": side.prompt}


def _summary(before: Sequence[Outcome], after: Sequence[Outcome]) -> dict[str, Any]:
    """Return what got better and worse, by the checks of the rows."""
    comparison = compare(
        sorted(before, key=lambda each: each.turn), sorted(after, key=lambda each: each.turn)
    )
    intervals = {each.measure: each for each in comparison.measures}
    return {
        "type": "summary",
        "changes": {str(row): change for row, change in comparison.changes.items()},
        "p": comparison.p,
        "measures": list(_measures(before, after, intervals)),
    }


def _measures(
    before: Sequence[Outcome], after: Sequence[Outcome], intervals: Mapping[Any, Any]
) -> Iterator[dict[str, Any]]:
    for measure in MEASURES:
        values = [mean(before, measure), mean(after, measure)]
        if any(value is not None for value in values):
            compared = intervals.get(measure)
            yield {
                "name": measure.name,
                "label": measure.label,
                "unit": measure.unit,
                "higher": measure.higher,
                "values": values,
                "interval": compared.interval if compared else None,
            }


async def keep_test(call: Call) -> Response:
    """Show the row that a test would add to the assistant's suite, or write it."""
    id = call.request.path_params["assistant"]
    package = call.serving.package(call.caller, id)
    wanted = request_body.validate_strictly(KeptTest, await call.json())
    row = _own_row(wanted.row, id, 0).model_copy(update={"assistant": ""})
    if not row.expects:
        raise UsageError(
            "row: a test must expect something", hint="give sources, phrases, figures or refusal"
        )
    if wanted.write:
        _refuse_writing(call)
        await to_thread.run_sync(partial(append_row, package.folder / TESTS_FILE, row))
    document = {
        "file": f"{package.shown}/{TESTS_FILE}",
        "line": line_of(row),
        "written": wanted.write,
        "may_write": _may_write(call),
    }
    return Response(line(document), media_type="application/json")


def _may_write(call: Call) -> bool:
    forwarded = "x-forwarded-for" in call.request.headers
    return call.serving.settings.author_writes and is_loopback(call.address) and not forwarded


def _refuse_writing(call: Call) -> None:
    if not _may_write(call):
        raise Refused(
            "not_permitted",
            "tests are written only with server.author_writes, and from this machine",
            hint="download the line and add it to the file",
        )
