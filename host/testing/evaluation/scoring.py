"""What one turn is worth: the checks of its row, and what is measured of any turn. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from groundhook.core.types.connector_spec import Price
from groundhook.core.types.events import (
    Cited,
    Event,
    Failed,
    SearchFound,
    StreamEnd,
    StreamStart,
    ToolResult,
)
from groundhook.core.types.search import Certainty, Item
from groundhook.host.search.citations.facts import CitedSource, facts, flat
from groundhook.host.testing.evaluation.suite import EvaluationRow


@dataclass(frozen=True, order=True)
class Turn:
    """The place of a turn in an evaluation: indices of its row, configuration and run."""

    row: int
    configuration: int
    run: int


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One turn of a suite. `checks` are the shares (0-1) of what the row expects that the answer
    has, by kind; `lacks` names the rest in words. `found` is the share of the expected sources that
    the searches found, cited or not; `supported` that of the claims whose facts are in what they
    cite, of all claims with facts. Times are in milliseconds; None: nothing of the kind."""

    turn: Turn
    checks: Mapping[str, float] = field(default_factory=dict)
    lacks: tuple[str, ...] = ()
    found: float | None = None
    supported: float | None = None
    certainty: Certainty | None = None
    first_text_ms: float | None = None
    total_ms: float | None = None
    tokens: int = 0
    cost: float | None = None
    content: str = ""
    cited: tuple[str, ...] = ()
    error: str = ""

    @property
    def passed(self) -> bool:
        return not self.error and all(value == 1 for value in self.checks.values())

    @property
    def score(self) -> float | None:
        """The mean of the checks; None if the row expects nothing."""
        if not self.checks:
            return None
        return 0.0 if self.error else sum(self.checks.values()) / len(self.checks)


def outcome_of(
    turn: Turn, row: EvaluationRow, events: Sequence[Event], prices: Mapping[str, Price]
) -> Outcome:
    """Return the outcome of a turn from its events. `prices` are those of the connectors."""
    end = next((each for each in events if isinstance(each, StreamEnd)), StreamEnd())
    failed = next((each for each in events if isinstance(each, Failed)), None)
    cited = [each for each in end.citations if each.verdict != "unknown"]
    checks, lacks = _checks(row, end.content, cited)
    return Outcome(
        turn=turn,
        checks=checks,
        lacks=tuple(lacks),
        found=_found(row, events),
        supported=_supported(end),
        certainty=end.certainty,
        first_text_ms=end.timings.get("first_text"),
        total_ms=end.timings.get("total"),
        tokens=end.usage.prompt_tokens + end.usage.completion_tokens,
        cost=_cost(events, end, prices),
        content=end.content,
        cited=tuple(each.title or each.marker for each in cited),
        error=f"{failed.code}: {failed.message}" if failed else "",
    )


def _checks(
    row: EvaluationRow, content: str, cited: Sequence[Cited]
) -> tuple[dict[str, float], list[str]]:
    """Return the checks of a row, and in words what the answer lacks."""
    checks, lacks = dict[str, float](), list[str]()
    for kind, wanted, has in _expectations(row, content, cited):
        missing = [each for each in wanted if not has(each)]
        checks[kind] = 1 - len(missing) / len(wanted)
        lacks += [f"{_LACKS[kind]} {_shown(each)}" for each in missing]
    if row.refusal:
        checks["refusal"] = float(not cited)
        lacks += [f"cites {each.title or each.marker!r}, and was to refuse" for each in cited[:3]]
    return checks, lacks


def _found(row: EvaluationRow, events: Sequence[Event]) -> float | None:
    if not row.sources:
        return None
    names = frozenset(name for item in _items(events) for name in _names(item))
    return sum(flat(wanted) in names for wanted in row.sources) / len(row.sources)


def _cost(events: Sequence[Event], end: StreamEnd, prices: Mapping[str, Price]) -> float | None:
    connector = next((each.connector for each in events if isinstance(each, StreamStart)), "")
    if connector not in prices:
        return None
    return prices[connector].cost(end.usage.prompt_tokens, end.usage.completion_tokens)


_LACKS = {"sources": "does not cite", "phrases": "does not say", "figures": "lacks the figure"}


def _expectations(
    row: EvaluationRow, content: str, cited: Sequence[Cited]
) -> Iterator[tuple[str, Any, Any]]:
    names = frozenset(name for each in cited for name in _names(each))
    text, figures = flat(content), CitedSource.of(content)

    def says(phrase: str | tuple[str, ...]) -> bool:
        every = (phrase,) if isinstance(phrase, str) else phrase
        return any(flat(each) in text for each in every)

    def has_figure(figure: str) -> bool:
        numbers = [fact for fact in facts(figure) if fact.kind == "number"]
        return all(map(figures.has, numbers)) if numbers else says(figure)

    if row.sources:
        yield "sources", row.sources, lambda wanted: flat(wanted) in names
    if row.phrases:
        yield "phrases", row.phrases, says
    if row.figures:
        yield "figures", row.figures, has_figure


def _shown(wanted: str | tuple[str, ...]) -> str:
    return repr(wanted) if isinstance(wanted, str) else " or ".join(map(repr, wanted))


def _supported(end: StreamEnd) -> float | None:
    claims = end.claims.cited + end.claims.uncited
    return end.claims.supported / claims if claims else None


def _items(events: Iterable[Event]) -> Iterator[Item]:
    for event in events:
        if isinstance(event, SearchFound):
            yield event.item
        elif isinstance(event, ToolResult):
            yield from event.items


def _names(source: Item | Cited) -> frozenset[str]:
    """Return all by which a suite may name a source: whole names, so that `hooks.md` is not found
    in `webhooks.md`."""
    document, model = source.document_id, source.model
    record = "" if source.record_id is None else str(source.record_id)
    address = source.url.partition("://")[2] or source.url
    names = [
        source.title,
        *source.title.split(" › "),
        source.url,
        address,
        address.partition("/")[0],
        document,
        document.rpartition("/")[2],
        f"{source.collection}/{document}" if document else "",
        source.collection,
        model,
        model.rpartition(".")[2],
        f"{model}/{record}" if record else "",
        f"{model.rpartition('.')[2]}/{record}" if record else "",
    ]
    return frozenset(filter(None, map(flat, names)))
