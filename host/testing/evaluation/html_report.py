"""The report of an evaluation: one HTML file with its plots inside, without scripts and without
anything from elsewhere. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from html import escape
from statistics import median

from groundhook.host.testing.evaluation.comparing import (
    MEASURES,
    ComparedEvaluations,
    Comparison,
    Measure,
    by_row,
    certainty_table,
    compare,
    mean,
    passed_share,
    shown,
)
from groundhook.host.testing.evaluation.scoring import Outcome
from groundhook.host.testing.evaluation.suite import EvaluationSuite

TOTAL = next(measure for measure in MEASURES if measure.name == "total_ms")
SCORE = MEASURES[0]
WIDTH, LABELS = 720, 230  # of a plot, and of the names at its left
LONGEST_ANSWER = 4000  # characters of an answer that are shown
LONGEST_NAME = 90


@dataclass(frozen=True, kw_only=True)
class EvaluationReport:
    """An evaluation with all its outcomes. `names` are those of the configurations."""

    suite: EvaluationSuite
    names: Sequence[str]
    runs: int
    at: datetime
    outcomes: Sequence[Outcome]

    @cached_property
    def every(self) -> list[list[Outcome]]:
        """The outcomes of each configuration."""
        return [
            [each for each in self.outcomes if each.turn.configuration == number]
            for number in range(len(self.names))
        ]

    @cached_property
    def comparison(self) -> Comparison | None:
        """The comparison of the two configurations; None with one."""
        return compare(*self.every) if len(self.names) == 2 else None

    @cached_property
    def means(self) -> dict[Measure, list[float | None]]:
        """The means of each configuration, of every measure that some turn has."""
        means = {measure: [mean(each, measure) for each in self.every] for measure in MEASURES}
        return {
            measure: values
            for measure, values in means.items()
            if any(value is not None for value in values)
        }


def html_report(report: EvaluationReport) -> str:
    """Return the report as an HTML document."""
    title = f"Evaluation of {report.suite.shown}"
    many = "s" if report.runs > 1 else ""
    about = (
        f"{len(report.suite.rows)} questions, {report.runs} run{many}, "
        f"{report.at:%Y-%m-%d %H:%M %Z}"
    )
    parts = [
        f"<h1>{escape(title)}</h1><p>{escape(about)}</p>{_verdict(report)}{_legend(report)}",
        f"<h2>Measures</h2>{_measures(report)}",
        _figure("Shares, the mean of all questions", _share_bars(report)),
        _figure("Score of each question", _question_scores(report)),
        _figure("Certainty against truth", _certainties(report)),
        _figure("Time of a whole turn, each a dot; the line is the median", _times(report)),
        f"<h2>Questions</h2>{''.join(_questions(report))}",
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body>{''.join(parts)}</body></html>\n"
    )


def _verdict(report: EvaluationReport) -> str:
    comparison = report.comparison
    if comparison is None:
        return f"<p class=verdict>{shown(passed_share(report.every[0]), 'share')} passed</p>"
    count = comparison.count
    return (
        f"<p class=verdict>{count['better']} better, {count['worse']} worse, {count['same']} the"
        f" same <span class=quiet>(sign test: p = {comparison.p:.3f})</span></p>"
    )


def _legend(report: EvaluationReport) -> str:
    names = (
        f"<span class=key><i class=c{n}></i>{escape(name)}</span>"
        for n, name in enumerate(report.names)
    )
    return f"<p>{' '.join(names)}</p>"


def _measures(report: EvaluationReport) -> str:
    comparison = report.comparison
    changed = {each.measure: each for each in comparison.measures} if comparison else {}
    head = [*report.names, *(["Difference", "95 % of resamples"] if comparison else [])]
    rows = []
    for measure, values in report.means.items():
        cells = [f"<td>{'' if v is None else shown(v, measure.unit)}" for v in values]
        if comparison:
            cells += _difference_cells(changed.get(measure))
        rows.append(f"<tr><th scope=row>{escape(measure.label)}{''.join(cells)}")
    columns = "".join(f"<th scope=col>{escape(name)}" for name in head)
    return f"<table><tr><th scope=col>Measure{columns}{''.join(rows)}</table>"


def _difference_cells(compared: ComparedEvaluations | None) -> list[str]:
    if compared is None:
        return ["<td>", "<td>"]
    measure, difference = compared.measure, compared.after - compared.before
    good = difference > 0 if measure.higher else difference < 0
    style = ("better" if good else "worse") if compared.certain else "quiet"
    interval = ""
    if compared.interval is not None:
        low, high = (shown(value, measure.unit, signed=True) for value in compared.interval)
        interval = f"{low} to {high}"
    return [
        f"<td class={style}>{shown(difference, measure.unit, signed=True)}",
        f"<td class=quiet>{interval}",
    ]


def _figure(caption: str, svg: str) -> str:
    return f"<figure><figcaption>{escape(caption)}</figcaption>{svg}</figure>" if svg else ""


def _svg(height: float, marks: Iterable[str], label: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(label)}">'
        f"{''.join(marks)}</svg>"
    )


def _at(share: float) -> float:
    """Return the place of a share (0-1) from the left."""
    return LABELS + share * (WIDTH - LABELS - 60)


def _name(text: str, y: float) -> str:
    cut = text if len(text) <= 32 else f"{text[:31]}…"
    return f'<text x="{LABELS - 10}" y="{y:.1f}" class="name">{escape(cut)}</text>'


def _grid(height: float) -> str:
    lines = (
        f'<line x1="{_at(share):.1f}" x2="{_at(share):.1f}" y1="0" y2="{height}" class="grid"/>'
        for share in (0, 0.25, 0.5, 0.75, 1)
    )
    return "".join(lines)


def _share_bars(report: EvaluationReport) -> str:
    marks, y, size = list[str](), 4.0, 12
    for measure, values in report.means.items():
        if measure.unit != "share":
            continue
        marks.append(_name(measure.label, y + size * len(values) / 2 + 4))
        for n, value in enumerate(values):
            if value is not None:
                marks.append(
                    f'<rect x="{_at(0)}" y="{y:.1f}" width="{_at(value) - _at(0):.1f}"'
                    f' height="{size - 2}" class="c{n}"/>'
                    f'<text x="{_at(value) + 6:.1f}" y="{y + size - 3:.1f}">'
                    f"{shown(value, 'share')}</text>"
                )
            y += size
        y += 10
    return _svg(y, [_grid(y), *marks], "Shares of each measure") if marks else ""


def _question_scores(report: EvaluationReport) -> str:
    scores = [by_row(each, SCORE) for each in report.every]
    marks, y = list[str](), 12.0
    for number, row in enumerate(report.suite.rows):
        places = [_at(each[number]) for each in scores if number in each]
        if not places:
            continue
        marks.append(_name(row.question, y + 4))
        marks.append(
            f'<line x1="{min(places):.1f}" x2="{max(places):.1f}" y1="{y}" y2="{y}" class="move"/>'
        )
        # The first one is a ring, so that both are seen where they are equal.
        marks += [
            f'<circle cx="{place:.1f}" cy="{y}" r="{6 if n == 0 and len(places) == 2 else 4}"'
            f' class="{"ring" if n == 0 and len(places) == 2 else f"c{n}"}"/>'
            for n, place in enumerate(places)
        ]
        y += 20
    return _svg(y, [_grid(y), *marks], "Score of each question") if marks else ""


def _certainties(report: EvaluationReport) -> str:
    marks, y = list[str](), 4.0
    for name, outcomes in zip(report.names, report.every, strict=True):
        for certainty, (right, wrong) in certainty_table(outcomes).items():
            whole = right + wrong
            marks.append(_name(f"{certainty} · {name}", y + 11))
            middle, end = _at(right / whole), _at(1)
            marks.append(
                f'<rect x="{_at(0)}" y="{y}" width="{middle - _at(0):.1f}" height="14"'
                f' class="right"/><rect x="{middle:.1f}" y="{y}" width="{end - middle:.1f}"'
                f' height="14" class="wrong"/>'
                f'<text x="{_at(0) + 6}" y="{y + 11}" class="on">{right} right</text>'
                f'<text x="{end + 6}" y="{y + 11}">{wrong} wrong</text>'
            )
            y += 20
    return _svg(y, marks, "Right and wrong answers by certainty") if marks else ""


def _times(report: EvaluationReport) -> str:
    times = [
        [value for each in outcomes if (value := TOTAL.of(each)) is not None]
        for outcomes in report.every
    ]
    longest = max((value for every in times for value in every), default=0)
    if not longest:
        return ""
    marks, y = list[str](), 16.0
    for name, every, n in zip(report.names, times, range(len(times)), strict=True):
        marks.append(_name(name, y + 4))
        marks += [
            f'<circle cx="{_at(value / longest):.1f}" cy="{y}" r="4" class="c{n} dot"/>'
            for value in every
        ]
        if every:
            middle = _at(median(every) / longest)
            marks.append(
                f'<line x1="{middle:.1f}" x2="{middle:.1f}" y1="{y - 11}" y2="{y + 11}"'
                f' class="median"/><text x="{middle + 5:.1f}" y="{y + 21}">'
                f"{shown(median(every), 'ms')}</text>"
            )
        y += 42
    return _svg(y, [_grid(y - 14), *marks], "Times of turns")


def _questions(report: EvaluationReport) -> Iterator[str]:
    comparison = report.comparison
    for number, row in enumerate(report.suite.rows):
        own = [each for each in report.outcomes if each.turn.row == number]
        passed = sum(each.passed for each in own)
        change = comparison.changes.get(number, "same") if comparison else ""
        state = change or ("better" if passed == len(own) else "worse")
        words = change or f"{passed} of {len(own)} passed"
        asked = row.question
        name = asked if len(asked) <= LONGEST_NAME else f"{asked[:LONGEST_NAME]}…"
        head = f"<summary><b class={state}>{words}</b> {escape(name)}</summary>"
        note = f"<p class=quiet>{escape(row.note)}</p>" if row.note else ""
        question = f"<p dir=auto>{escape(asked)}</p>"
        yield f"<details>{head}{question}{note}{''.join(_answer(report, one) for one in own)}"
        yield "</details>"


def _answer(report: EvaluationReport, outcome: Outcome) -> str:
    lacks = "".join(f"<li>{escape(each)}" for each in outcome.lacks)
    content = outcome.content[:LONGEST_ANSWER]
    more = "…" if len(outcome.content) > LONGEST_ANSWER else ""
    state = "failed" if outcome.error else "passed" if outcome.passed else "not passed"
    facts = [f"run {outcome.turn.run + 1}", state, outcome.certainty or ""]
    if outcome.total_ms is not None:
        facts.append(shown(outcome.total_ms, "ms"))
    error = f"<p class=worse>{escape(outcome.error)}</p>" if outcome.error else ""
    cited = f"<p class=quiet>cites {escape(', '.join(outcome.cited))}</p>" if outcome.cited else ""
    name = escape(report.names[outcome.turn.configuration])
    return (
        f"<section><h3><i class=c{outcome.turn.configuration}></i>{name}"
        f" <span class=quiet>{escape(' · '.join(filter(None, facts)))}</span></h3>"
        f"{error}{f'<ul class=worse>{lacks}</ul>' if lacks else ''}"
        f"<p class=answer dir=auto>{escape(content)}{more}</p>{cited}</section>"
    )


STYLE = """
:root{color-scheme:light dark;--a:#2563a8;--b:#b4560b;--good:#1a7a3c;--bad:#b3261e;--line:#8885}
@media(prefers-color-scheme:dark){:root{--a:#7fb2ea;--b:#f0a05a;--good:#6fce8f;--bad:#ff8a80}}
body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem;overflow-wrap:anywhere}h2{font-size:1.2rem;margin-top:2rem}h3{font-size:1rem}
.verdict{font-size:1.3rem}.quiet{opacity:.75;font-weight:normal}
.better{color:var(--good)}.worse{color:var(--bad)}.same{opacity:.75}
table{border-collapse:collapse;width:100%}th,td{padding:.25rem .5rem;text-align:right}
tr>:first-child{text-align:left}tr{border-bottom:1px solid var(--line)}th{font-weight:600}
figure{margin:1.5rem 0}figcaption{font-weight:600;margin-bottom:.5rem}
svg{width:100%;height:auto}svg text{font-size:12px;fill:currentColor}
.name{text-anchor:end}.grid{stroke:var(--line)}.move{stroke:var(--line);stroke-width:3}
.median{stroke:currentColor;stroke-width:2}.dot{fill-opacity:.6}.ring{fill:none;stroke-width:2}
.c0{fill:var(--a)}.c1{fill:var(--b)}.ring{stroke:var(--a)}
svg .on{fill:#fff}.right{fill:#1a7a3c}.wrong{fill:#b3261e}
i{display:inline-block;width:.8em;height:.8em;border-radius:50%;margin-right:.4em}
i.c0{background:var(--a)}i.c1{background:var(--b)}.key{margin-right:1.5em}
details{border-bottom:1px solid var(--line);padding:.5rem 0}summary{cursor:pointer}
.answer{white-space:pre-wrap;overflow-wrap:anywhere}
"""
