"""Reads a question with a language model: one request, and at most two corrections.

    reading = await ModelReader(store.schemas).read("connector:small", draft, scope, look_up)

An answer is checked in this order: the linter, against what the identity may see; values, against
the data; the account, that every number, date, value and condition of the question has a part in
the query. Each problem is the next correction. What the account still lacks in the end is `unread`.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from groundhook.core.errors import DelegateError, UnknownName
from groundhook.core.ports import Scope
from groundhook.core.types.delegation import QueryAsk
from groundhook.core.types.uses import ModelPrompt
from groundhook.handlers.db.by_model.account import meaningful, unaccounted
from groundhook.handlers.db.by_model.answers import READ, ModelAnswer, plain
from groundhook.handlers.db.by_model.offered import Offered
from groundhook.handlers.db.by_model.values import LookUp, Spelling, UnknownValue
from groundhook.handlers.db.dialect import translate
from groundhook.handlers.db.model.schema import Schema
from groundhook.handlers.db.query.dsl import QueryDSL, models_of
from groundhook.handlers.db.query.linter import checked, lint
from groundhook.handlers.db.question.question import TokenizedQuestion
from groundhook.handlers.db.question.scope import QuestionScope

MOST_TRIES = 3  # the first, and two corrections
MOST_PROBLEMS = 5  # named in one correction
SHARE = 0.7  # of the time that is left of the search, for the model
KEPT, KEPT_SECONDS = 64, 60.0  # answers, for the same question in the same minute


@dataclass(frozen=True)
class ReadingRequest:
    """What a model is asked: the question with the models that it may be about, what of them is
    shown, and the prompt. `permits` are the limits of the identity in these models."""

    question: TokenizedQuestion
    scopes: Sequence[QuestionScope]
    offered: Offered
    prompt: ModelPrompt
    permits: Hashable
    limit: int


@dataclass(frozen=True)
class ModelReading:
    """The answer of a model: queries (several: readings that fit equally well), or why there are
    none. `unread`: words without a part in the query; `unknown`: values that no record has; `said`:
    a refusal or a question back."""

    queries: tuple[QueryDSL, ...] = ()
    unread: tuple[str, ...] = ()
    unknown: tuple[UnknownValue, ...] = ()
    said: str = ""


@dataclass
class ModelReader:
    """Asks language models. Keeps answers for a minute, by the whole prompt and the limits of the
    identity: a hook and the automatic search of a turn ask the same."""

    _kept: OrderedDict[Hashable, tuple[float, ModelReading]] = field(default_factory=OrderedDict)

    async def read(
        self, doer: str, draft: ReadingRequest, scope: Scope, look_up: LookUp
    ) -> tuple[ModelReading, bool]:
        """Return the reading of a question, and whether it was kept. Raises DelegateError if the
        model gives no usable answer in time."""
        prompt = draft.prompt
        key = (doer, prompt.system, prompt.user, draft.permits)
        made, kept = self._kept.get(key, (0.0, None))
        if kept is not None and time.monotonic() - made < KEPT_SECONDS:
            return kept, True
        checking = _Checking(draft, look_up)
        settings = scope.settings.query
        try:
            await scope.delegates.ask(
                READ,
                doer,
                QueryAsk(
                    query=draft.question.text,
                    models=(),
                    limit=draft.limit,
                    now=scope.now().isoformat(),
                ),
                timeout_ms=_time_left(settings.timeout_ms),
                hint="search.query.timeout_ms",
                wrong=checking.problem,
                tries=MOST_TRIES,
                prompt=prompt,
            )
        except DelegateError:
            if checking.reading is None:
                raise  # else: a correction failed, and the answer before it can be used
        assert checking.reading is not None
        self._keep(key, checking.reading)
        return checking.reading, False

    def _keep(self, key: Hashable, reading: ModelReading) -> None:
        self._kept[key] = (time.monotonic(), reading)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)


def _time_left(timeout_ms: int) -> int:
    """Return the deadline of the model: a part of the time that the search has left."""
    left = anyio.current_effective_deadline() - anyio.current_time()
    return max(1, min(timeout_ms, int(left * 1000 * SHARE)) if left < 1e6 else timeout_ms)


@dataclass
class _Checking:
    """Checks the answers of one question. `reading` is the best so far that can be used."""

    draft: ReadingRequest
    look_up: LookUp
    reading: ModelReading | None = None
    tried: int = 0
    told_values: bool = False

    async def problem(self, answer: ModelAnswer) -> str:
        """Return the problem with an answer, for the model; "" if it is used."""
        self.tried += 1
        raws, offered = answer.queries, self.draft.offered
        if not raws:
            self.reading = ModelReading(said=plain(answer.cannot or answer.ask))
            return ""
        problems = [each for raw in raws for each in _problems(raw, offered)]
        if problems:
            return "; ".join(problems[:MOST_PROBLEMS])
        spelling = Spelling(offered.schemas, self.look_up)
        queries = [await spelling.spelled(_parsed(raw, offered)) for raw in raws]
        left = self._unaccounted(queries)
        unused = [text for each in answer.unused if (text := plain(each))]
        self.reading = ModelReading(
            tuple(queries),
            tuple(dict.fromkeys([*left, *meaningful(self.draft.question, unused)])),
            tuple(spelling.unknown),
            plain(answer.ask),
        )
        if self.tried >= MOST_TRIES:
            return ""
        if spelling.unknown and not self.told_values:
            self.told_values = True
            named = "; ".join(map(str, spelling.unknown[:MOST_PROBLEMS]))
            return f'{named}; use values that exist, or answer with "cannot"'
        return _dropped(left, unused)

    def _unaccounted(self, queries: Sequence[QueryDSL]) -> tuple[str, ...]:
        question, scopes = self.draft.question, self.draft.scopes
        found = (each for query in queries for each in unaccounted(question, query, scopes))
        return tuple(dict.fromkeys(found))


def _dropped(left: Sequence[str], unused: Sequence[str]) -> str:
    """Return the problem with words that have no part in the query, and that the model does not
    say to have left out."""
    dropped = [each for each in left if not any(_within(each, other) for other in unused)]
    if not dropped:
        return ""
    listed = ", ".join(f'"{each}"' for each in dropped[:MOST_PROBLEMS])
    return (
        f"no part of the query expresses {listed}; add it, or list the words in"
        ' "unused" if the query cannot say it'
    )


def _within(phrase: str, other: str) -> bool:
    return phrase.casefold() in other.casefold() or other.casefold() in phrase.casefold()


def _problems(raw: Mapping[str, Any], offered: Offered) -> list[str]:
    try:
        named = _named(raw, offered)
    except UnknownName as exc:
        return [str(exc)]
    found = [each for each in lint(named, offered.schemas) if each.severity == "error"]
    if found:
        return [str(problem) for problem in found]
    models = models_of(_parsed(raw, offered), offered.schemas)
    if len({offered.schemas[model].connection for model in models}) > 1:
        return [f"{' and '.join(models)} are in different databases"]
    return []


def _parsed(raw: Mapping[str, Any], offered: Offered) -> QueryDSL:
    return checked(_named(raw, offered), offered.schemas)


def _named(raw: Mapping[str, Any], offered: Offered) -> dict[str, Any]:
    """Return the query with the full id of its model. Raises UnknownName."""
    written = translate(raw)
    return {**written, "model": model_called(written.get("model"), offered)}


def model_called(name: Any, offered: Offered) -> str:
    """Return the full id of a searched model, which may be called by its table or its last name;
    that of the only one without a name. Raises UnknownName."""
    models: Sequence[str] = offered.searched
    wanted = str(name or (models[0] if len(models) == 1 else ""))
    schemas: Mapping[str, Schema] = offered.schemas
    for id in models:
        names = (id, id.rpartition(".")[2], *schemas[id].names)
        if wanted in names or wanted.replace("_", " ") in names:
            return id
    raise UnknownName("model", wanted, list(models))
