"""What the outcomes of a suite say together: means of each measure, and of two configurations what
got better, worse and stayed. Pure."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from groundhook.host.testing.evaluation.scoring import Outcome

_Change = Literal["better", "worse", "same"]
_Unit = Literal["share", "ms", "count", "cost"]
RESAMPLES = 2000
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Measure:
    """A figure of a turn. `higher`: more is better; None: neither is."""

    name: str
    label: str
    of: Callable[[Outcome], float | None]
    higher: bool | None = True
    unit: _Unit = "share"


def _check(kind: str) -> Callable[[Outcome], float | None]:
    return lambda outcome: outcome.checks.get(kind)


def _overconfident(outcome: Outcome) -> float | None:
    """Return whether a wrong answer was called sure; None where nothing tells what is right."""
    return float(outcome.certainty == "sure" and not outcome.passed) if outcome.checks else None


MEASURES = (
    Measure("score", "Score of the checks", lambda outcome: outcome.score),
    Measure("found", "Expected sources found", lambda outcome: outcome.found),
    Measure("sources", "Expected sources cited", _check("sources")),
    Measure("phrases", "Expected phrases", _check("phrases")),
    Measure("figures", "Expected figures", _check("figures")),
    Measure("refusal", "Refusals kept", _check("refusal")),
    Measure("supported", "Claims supported", lambda outcome: outcome.supported),
    Measure("overconfident", "Sure, and wrong", _overconfident, higher=False),
    Measure("first_text_ms", "First words", lambda outcome: outcome.first_text_ms, False, "ms"),
    Measure("total_ms", "Whole turn", lambda outcome: outcome.total_ms, False, "ms"),
    Measure("tokens", "Tokens", lambda outcome: float(outcome.tokens) or None, False, "count"),
    Measure("cost", "Cost", lambda outcome: outcome.cost, False, "cost"),
)


@dataclass(frozen=True)
class ComparedEvaluations:
    """A measure of both configurations over the same rows: the means, the mean difference, and its
    interval of 95 % confidence; None with fewer than two rows."""

    measure: Measure
    before: float
    after: float
    interval: tuple[float, float] | None

    @property
    def certain(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.interval is not None and (self.interval[0] > 0 or self.interval[1] < 0)


@dataclass(frozen=True)
class Comparison:
    """The paired comparison of two configurations. `changes` has one entry for each row that
    expects something; `p` is that of the sign test."""

    measures: tuple[ComparedEvaluations, ...]
    changes: Mapping[int, _Change]
    p: float

    @property
    def count(self) -> Counter[str]:
        return Counter(self.changes.values())

    @property
    def is_worse(self) -> bool:
        """Whether more rows got worse than better, with 95 % confidence."""
        count = self.count
        return count["worse"] > count["better"] and self.p < 1 - CONFIDENCE


def mean(outcomes: Sequence[Outcome], measure: Measure) -> float | None:
    """Return the mean of a measure over the turns that have it; None if none has."""
    values = [value for each in outcomes if (value := measure.of(each)) is not None]
    return fmean(values) if values else None


def by_row(outcomes: Sequence[Outcome], measure: Measure) -> dict[int, float]:
    """Return the mean of a measure for each row, over its runs."""
    rows: dict[int, list[Outcome]] = {}
    for each in outcomes:
        rows.setdefault(each.turn.row, []).append(each)
    means = {row: mean(every, measure) for row, every in rows.items()}
    return {row: value for row, value in means.items() if value is not None}


def compare(before: Sequence[Outcome], after: Sequence[Outcome]) -> Comparison:
    """Return the comparison of the same rows under two configurations."""
    pairs = {
        measure: _paired(by_row(before, measure), by_row(after, measure)) for measure in MEASURES
    }
    measures = tuple(
        ComparedEvaluations(
            measure,
            fmean(one for one, _ in paired.values()),
            fmean(other for _, other in paired.values()),
            bootstrap([other - one for one, other in paired.values()]),
        )
        for measure, paired in pairs.items()
        if paired
    )
    scores = pairs[MEASURES[0]]
    changes = {row: _change(one, other) for row, (one, other) in scores.items()}
    count = Counter(changes.values())
    return Comparison(measures, changes, sign_test(count["better"], count["worse"]))


def _paired(
    before: Mapping[int, float], after: Mapping[int, float]
) -> dict[int, tuple[float, float]]:
    return {row: (before[row], after[row]) for row in sorted(before.keys() & after.keys())}


def _change(before: float, after: float) -> _Change:
    if math.isclose(before, after, abs_tol=1e-9):
        return "same"
    return "better" if after > before else "worse"


def sign_test(better: int, worse: int) -> float:
    """Return the two-sided p value of the sign test: how likely so uneven a split is if each change
    were as likely to be better as worse. Rows that stayed are left out (W. J. Dixon and
    A. M. Mood, "The Statistical Sign Test", Journal of the American Statistical Association 41,
    1946)."""
    changed, fewer = better + worse, min(better, worse)
    tail = sum(math.comb(changed, each) for each in range(fewer + 1))
    p: float = 2 * tail / 2**changed
    return min(1.0, p)


def bootstrap(differences: Sequence[float]) -> tuple[float, float] | None:
    """Return the interval of 95 % confidence of a mean of paired differences, by the percentiles of
    resampled means (B. Efron and R. Tibshirani, "An Introduction to the Bootstrap", 1993, chapter
    13); None with fewer than two. The same differences have the same interval."""
    if len(differences) < 2:
        return None
    chance = random.Random(1)
    size = len(differences)
    means = sorted(math.fsum(chance.choices(differences, k=size)) / size for _ in range(RESAMPLES))
    outside = round(RESAMPLES * (1 - CONFIDENCE) / 2)
    return means[outside], means[-outside - 1]


def certainty_table(outcomes: Sequence[Outcome]) -> dict[str, tuple[int, int]]:
    """Return for each certainty how many answers were right and wrong, by the checks of their
    rows."""
    table: dict[str, tuple[int, int]] = {}
    for name in ("sure", "partial", "none", "not judged"):
        own = [each.passed for each in outcomes if each.checks and _certainty_name(each) == name]
        if own:
            table[name] = (sum(own), len(own) - sum(own))
    return table


def _certainty_name(outcome: Outcome) -> str:
    return outcome.certainty or "not judged"


def passed_share(outcomes: Sequence[Outcome]) -> float:
    """Return the share of turns that passed all checks of their rows."""
    return fmean(each.passed for each in outcomes) if outcomes else 0.0


def shown(value: float, unit: _Unit, *, signed: bool = False) -> str:
    """Return a value of a measure, or a difference with its sign, as text."""
    sign = "+" if signed and value > 0 else ""
    match unit:
        case "share":
            return f"{sign}{value * 100:.0f} %"
        case "ms":
            return f"{sign}{value:.0f} ms" if abs(value) < 1000 else f"{sign}{value / 1000:.1f} s"
        case "count":
            return f"{sign}{value:,.0f}"
        case "cost":
            return f"{sign}{value:.6f}"
