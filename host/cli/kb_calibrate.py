"""`groundhook kb calibrate`: measures the cosines of a collection's embedding model, and prints its
curve."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Protocol

import click
from rich.progress import MofNCompleteColumn

from groundhook.core.errors import UsageError
from groundhook.core.types.events import Failed
from groundhook.host.app.opening import open_host
from groundhook.host.cli import options
from groundhook.host.cli.edge import FAILED, execute
from groundhook.host.cli.progress import progress
from groundhook.host.cli.report import Report
from groundhook.host.cli.tables import table


class _Curve(Protocol):
    @property
    def middle(self) -> float: ...
    @property
    def scale(self) -> float: ...


class Calibrated(Protocol):
    """The measurement, as the knowledge base reports it."""

    @property
    def provider(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def questions(self) -> int: ...
    @property
    def made(self) -> bool: ...
    @property
    def off_topic(self) -> int: ...
    @property
    def off_topic_built_in(self) -> bool: ...
    @property
    def related(self) -> tuple[float, ...]: ...
    @property
    def unrelated(self) -> tuple[float, ...]: ...
    @property
    def balanced(self) -> float: ...
    @property
    def lost(self) -> float: ...
    @property
    def passed(self) -> float: ...
    @property
    def guessed(self) -> bool: ...
    @property
    def in_use(self) -> tuple[float, float]: ...
    @property
    def curve(self) -> _Curve | None: ...


@click.command("calibrate", short_help="Measure the similarity curve of an embedding model.")
@click.argument("collection")
@click.option(
    "--questions",
    "file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help=(
        "JSON lines {question, document}: questions with the id of the document that answers;"
        " without `document`: off-topic questions."
    ),
)
@click.option(
    "--most",
    type=click.IntRange(10, 10_000),
    default=100,
    show_default=True,
    metavar="N",
    help="Number of questions made from the documents when FILE is not given.",
)
@click.option("--tenant", default="", metavar="T", help="Tenant whose documents are measured.")
@options.common
def calibrate(
    collection: str,
    file: Path | None,
    most: int,
    tenant: str,
    app: Path,
    as_json: bool,
    debug: bool,
) -> int:
    """Measure the similarities of related and unrelated texts in COLLECTION, and print a curve.

    The curve belongs in `embedders.<name>.curve` in agent/agent.yml; with it, `threshold` has the
    same meaning as for every other embedding model. Without FILE the questions are sentences of the
    documents, and the off-topic questions are about daily life. Nothing is changed.
    """
    report = Report(json=as_json)

    async def work() -> int:
        async with open_host(app, tune_gc=True) as host:
            questions = (
                None if file is None else host.kb.parse_questions(_read_lines(file), str(file))
            )
            with progress(report, f"calibrating {collection}", str, MofNCompleteColumn()) as update:
                found = await host.kb.calibrate(
                    collection, questions, max_questions=most, tenant=tenant, progress=update
                )
        if report.json:
            report.line(asdict(found))
        _show(report, found, str(file))
        if found.curve is None:
            message = (
                f"{found.provider}:{found.model} does not separate related from unrelated texts of"
                " these documents"
            )
            report.failed(
                Failed(
                    code="calibrate",
                    message=message,
                    hint="use questions of your own with --questions",
                )
            )
            return FAILED
        return 0

    return execute(work, report, debug=debug)


def _read_lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as exc:
        raise UsageError(f"{str(file)!r} cannot be read: {exc}") from exc


def _show(report: Report, found: Calibrated, file: str) -> None:
    own = "made from the documents" if found.made else f"of {file}"
    off_topic = f"{found.off_topic} {'built-in ' if found.off_topic_built_in else ''}off-topic"
    off_topic += " question" if found.off_topic == 1 else " questions"
    off_topic += "" if found.off_topic_built_in else f" of {file}"
    report.show(f"Measured with {found.questions} questions {own}, and {off_topic}.")
    marks = ("1 %", "5 %", "50 %", "95 %", "99 %")
    rows = [
        (name, *(f"{cosine:.3f}" for cosine in cosines))
        for name, cosines in (
            ("a question and its passage", found.related),
            ("an off-topic question and the nearest passage", found.unrelated),
        )
    ]
    report.show(table(("cosine of", *marks), rows, numbers=marks))
    report.show(
        f"A threshold at the cosine {found.balanced:.3f} drops {found.lost:.0%} of the passages"
        f" that answer and keeps {found.passed:.0%} of those nearest to off-topic questions."
    )
    report.show(
        f"The curve in use makes this cosine a similarity of {found.in_use[0]:.2f}, and the median"
        f" of questions and their passages {found.in_use[1]:.2f}."
    )
    if found.curve is None:
        return
    values = f"{{middle: {found.curve.middle:g}, scale: {found.curve.scale:g}}}"
    if found.provider in ("builtin", "hash"):
        report.show(
            f"The curve {values} would make them 0.27 and 0.87; that of {found.provider!r} cannot"
            " be set."
        )
    else:
        report.show("This curve, in agent/agent.yml, makes them 0.27 and 0.87:")
        report.show(f"\nembedders:\n  {found.provider}:\n    curve: {values}")
        if found.guessed:
            report.show(
                f"\nUntil it is set, no search with {found.model} is sure, and none omits what is"
                " unlike the question: the curve in use is a guess."
            )
