"""The progress of an add, and its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from groundhook.handlers.kb.embed import CurveSource
from groundhook.handlers.kb.ingest.sources import File, Inputs, PlannedDocument

# bytes of changed files done, bytes of them in total, current document, passages embedded
AddProgress = Callable[[int, int, str, int], None]
AddOutcome = Literal["added", "replaced", "unchanged", "removed", "failed"]
MOST_ROWS = 100  # failed rows of a file that are listed one by one
MOST_NAMES = 20


@dataclass(frozen=True, kw_only=True)
class FileReport:
    """The outcome of a file, of a row that failed, or of a document that was removed. `chunks`
    counts the chunks of an added or replaced document. A file of rows is `read` or `failed`, and
    `rows` counts its rows by outcome."""

    path: str
    document: str
    outcome: AddOutcome | Literal["read"]
    chunks: int = 0
    error: str = ""
    rows: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AddReport:
    """The result of an add. `counts` are documents by outcome. `skipped` counts files of the
    folders for whose ending there is no reader; `unread` are the first of them. `undeclared` are
    fields of the documents that the collection does not declare; `notes` are further remarks.
    `language` is the one in which the collection is analysed ("": not known), and `curve` where the
    curve of its model's similarities is from: with one that is guessed no search is sure."""

    collection: str
    files: tuple[FileReport, ...] = ()
    skipped: int = 0
    unread: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    chunks: int = 0
    undeclared: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    language: str = ""
    curve: CurveSource = "measured"

    @property
    def failed(self) -> bool:
        """Whether a file of the add failed."""
        return any(file.outcome == "failed" for file in self.files)


class Tally:
    """Counts outcomes, and keeps a limited number of those that are listed one by one, since a file
    may have millions of rows."""

    def __init__(self) -> None:
        self.counts = Counter[str]()
        self.chunks = 0
        self._files: dict[int, list[FileReport]] = {}
        self._rows: dict[int, Counter[str]] = {}
        self._undeclared: dict[str, None] = {}
        self._remarks: list[str] = []
        self._more_remarks = 0

    def note(
        self, item: PlannedDocument, outcome: AddOutcome, *, chunks: int = 0, error: str = ""
    ) -> None:
        """Enter the outcome of a file or a row."""
        self.counts[outcome] += 1
        self.chunks += chunks
        own = self._files.setdefault(item.file.index, [])
        if not item.file.rows:
            own.append(_file_report(item.file, item.document, outcome, chunks=chunks, error=error))
            return
        rows = self._rows.setdefault(item.file.index, Counter())
        rows[outcome] += 1
        if outcome == "failed" and rows[outcome] <= MOST_ROWS:
            own.append(_file_report(item.file, item.document, outcome, error=error))

    def removed(self, document: str) -> None:
        """Enter a document that was removed."""
        self.counts["removed"] += 1
        removed = self._files.setdefault(-1, [])
        if len(removed) < MOST_ROWS:
            removed.append(FileReport(path="", document=document, outcome="removed"))

    def undeclared(self, names: list[str]) -> None:
        """Enter fields that the collection does not declare."""
        if len(self._undeclared) < MOST_NAMES:
            self._undeclared.update(dict.fromkeys(names))

    def remark(self, item: PlannedDocument, notes: Sequence[str]) -> None:
        """Enter remarks about a document that is added nevertheless."""
        for note in notes:
            if len(self._remarks) < MOST_NAMES:
                self._remarks.append(f"{str(item.file.path)!r}: {note}")
            else:
                self._more_remarks += 1

    def report(self, collection: str, inputs: Inputs, broken: Mapping[int, str]) -> AddReport:
        """Return the report. `broken` are files of rows that could not be read to their end, with
        the reason."""
        reports: list[FileReport] = []
        for file in inputs.files:
            if file.rows and not file.error:
                rows = self._rows.get(file.index, Counter())
                outcome: Literal["failed", "read"] = "failed" if file.index in broken else "read"
                reports.append(
                    FileReport(
                        path=str(file.path),
                        document=file.document,
                        outcome=outcome,
                        error=broken.get(file.index, ""),
                        rows=dict(rows),
                    )
                )
            reports += self._files.get(file.index, [])
        notes = [
            f"{str(inputs.files[index].path)!r}: {rows['failed']} rows failed, of which the first"
            f" {MOST_ROWS} are listed"
            for index, rows in self._rows.items()
            if rows["failed"] > MOST_ROWS
        ]
        unlisted = (
            [f"{self._more_remarks} more such warnings are not listed"]
            if self._more_remarks
            else []
        )
        return AddReport(
            collection=collection,
            files=(*reports, *self._files.get(-1, [])),
            skipped=inputs.skipped,
            unread=inputs.unread,
            counts=dict(self.counts + Counter(failed=len(broken))),
            chunks=self.chunks,
            undeclared=tuple(self._undeclared),
            notes=(*self._remarks, *unlisted, *notes),
        )


class Meter:
    """Reports progress in bytes. Unchanged documents are subtracted from the total: counting them
    as done would look like speed."""

    def __init__(self, progress: AddProgress | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self._whole = 0
        self._passages = 0
        self._under_way: dict[tuple[int, str], int] = {}

    def part(self, item: PlannedDocument, share: float, passages: int = 0) -> None:
        """Report that a document is done to this share, 0-1, with `passages` more passages."""
        self._passages += passages
        key = (item.file.index, item.document)
        if share >= 1:
            self._under_way.pop(key, None)
            self._whole += item.size
        else:
            self._under_way[key] = int(item.size * share)
        self._report(item)

    def unchanged(self, item: PlannedDocument) -> None:
        """Report a document that need not be built."""
        self._under_way.pop((item.file.index, item.document), None)
        self._total -= item.size
        self._report(item)

    def _report(self, item: PlannedDocument) -> None:
        if self._progress is not None and not item.file.error:
            done = self._whole + sum(self._under_way.values())
            document = item.document or item.file.document
            self._progress(done, max(self._total, 0), document, self._passages)


def _file_report(
    file: File, document: str, outcome: AddOutcome, *, chunks: int = 0, error: str = ""
) -> FileReport:
    return FileReport(
        path=str(file.path), document=document, outcome=outcome, chunks=chunks, error=error
    )
