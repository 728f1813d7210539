"""Runs a suite: each question under each configuration, on the app's real sources and models or on
recorded answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from groundhook.core.errors import HostError, UnknownName, UsageError
from groundhook.core.types.connector_spec import Price
from groundhook.core.types.turn import Message
from groundhook.host.app.host import Host
from groundhook.host.chats.memory.memory import open_memory
from groundhook.host.config.trial import Trial, read_trial
from groundhook.host.testing.answer import TurnRequests
from groundhook.host.testing.cassette import SUFFIX as CASSETTE
from groundhook.host.testing.cassette import Cassette
from groundhook.host.testing.evaluation.scoring import Outcome, Turn, outcome_of
from groundhook.host.testing.evaluation.suite import SUFFIX, EvaluationSuite
from groundhook.host.testing.frozen_web import with_frozen_web
from groundhook.host.testing.stage import Stage, TurnArguments


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """What is evaluated: the assistants as their files are, or with the trial in a file."""

    name: str
    trial: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """A suite under one or two configurations, `runs` times, with at most `at_once` turns at the
    same time. Each row asks its own assistant, else `assistant`."""

    host: Host
    suite: EvaluationSuite
    configurations: Sequence[Configuration]
    cassette: Cassette
    assistant: str = ""
    runs: int = 1
    at_once: int = 1

    async def run(self, seen: Callable[[Outcome], object]) -> list[Outcome]:
        """Run every turn and return the outcomes, by row, configuration and run; `seen` is called
        with each as soon as it is known. Raises UnknownName, UsageError and ConfigError before the
        first turn."""
        trials, prices = self._trials(), prices_of(self.host)
        host = replace(self.host, runtime=with_frozen_web(self.host.runtime))
        limit = anyio.Semaphore(self.at_once)
        outcomes = list[Outcome]()

        async def one(turn: Turn) -> None:
            async with limit:
                trial = trials[turn.configuration].get(self._assistant(turn.row))
                outcome = await self._turn(host, turn, trial, prices)
            outcomes.append(outcome)
            seen(outcome)

        async with anyio.create_task_group() as tasks:
            for run in range(self.runs):
                for row in range(len(self.suite.rows)):
                    order = range(len(self.configurations))
                    # In turn, since the second one finds caches that the first one filled.
                    for configuration in order[:: -1 if (row + run) % 2 else 1]:
                        tasks.start_soon(one, Turn(row, configuration, run))
        return sorted(outcomes, key=lambda each: each.turn)

    async def _turn(
        self, host: Host, turn: Turn, trial: Trial | None, prices: dict[str, Price]
    ) -> Outcome:
        asked = self.suite.rows[turn.row]
        question = Message(role="user", content=asked.question)
        wanted = TurnArguments(identity=asked.identity)
        try:
            async with _stage(host, self._assistant(turn.row), self.cassette) as stage:
                events = await stage.run(
                    [*asked.messages, question], wanted, TurnRequests(), trial=trial
                )
        except HostError as exc:
            checks = {"answer": 0.0} if asked.expects else {}
            return Outcome(turn=turn, checks=checks, error=f"{exc.code}: {exc.message}")
        return outcome_of(turn, asked, events, prices)

    def _assistant(self, row: int) -> str:
        return self.suite.rows[row].assistant or self.assistant

    def _trials(self) -> list[dict[str, Trial]]:
        """Return the trials of each configuration by assistant."""
        app, needed = self.host.app, {self._assistant(row) for row in range(len(self.suite.rows))}
        for id in sorted(needed):
            if not id:
                raise UsageError(
                    f"{self.suite.shown} does not say which assistant answers",
                    hint="--assistant names it; so does the folder assistants/<id>/tests",
                )
            if id not in app.packages:
                raise UnknownName("assistant", id, app.packages)
        return [
            {}
            if each.trial is None
            else {
                id: read_trial(each.trial, str(each.trial), app.package(id), app.environment)
                for id in needed
            }
            for each in self.configurations
        ]


def prices_of(host: Host) -> dict[str, Price]:
    """Return the prices of the app's connectors that have one."""
    prices = dict[str, Price]()
    for id in host.app.connectors:
        with suppress(HostError):  # a broken file, which the turn that needs it reports
            if (price := host.app.connectors.named(id).price) is not None:
                prices[id] = price
    return prices


@asynccontextmanager
async def _stage(host: Host, assistant: str, cassette: Cassette) -> AsyncIterator[Stage]:
    with TemporaryDirectory(prefix="groundhook-eval-") as folder:
        limits, now = host.app.settings.memory, cassette.now
        async with open_memory(Path(folder) / "memory.sqlite", lambda: now, limits) as memory:
            yield Stage(host, assistant, cassette, memory)


def cassette_of(host: Host, suite: EvaluationSuite, *, play: bool) -> Cassette:
    """Return the cassette beside a suite. With `play` it answers; otherwise the real sources and
    models do, and their answers are recorded, for `save`. Raises ConfigError."""

    def renamed(name: str) -> str:
        return name.removesuffix(SUFFIX).removesuffix(".jsonl") + CASSETTE

    return Cassette.load(
        suite.path.with_name(renamed(suite.path.name)),
        renamed(suite.shown),
        record_at=None if play else host.runtime.now(),
        home=host.app.root.resolve().as_posix(),
    )
