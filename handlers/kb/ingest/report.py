"""What an add says while it runs and when it is over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from groundhook.handlers.kb.ingest.sources import File, Found, Item

# bytes of changed files done, bytes of them in all, document under way, passages embedded
Progress = Callable[[int, int, str, int], None]
Outcome = Literal["added", "replaced", "unchanged", "removed", "failed"]
MOST_ROWS = 100  # rows of a file that are told one by one when they fail
MOST_NAMES = 20


@dataclass(frozen=True, kw_only=True)
class FileReport:
    """What became of a file, or of a row that failed, or of a document that is gone. `chunks`
    counts the document's chunks where it was added or replaced. A file of rows is `read` or
    `failed`, and `rows` counts what became of them."""

    path: str
    document: str
    outcome: Outcome | Literal["read"]
    chunks: int = 0
    error: str = ""
    rows: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AddReport:
    """What became of an add. `counts` are documents by outcome. `skipped` files of the folders end
    in something that cannot be read; `unread` are the first of them. `undeclared` is what documents
    say of themselves and no field declares; `notes` are what else should be known."""

    collection: str
    files: tuple[FileReport, ...] = ()
    skipped: int = 0
    unread: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    chunks: int = 0
    undeclared: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        return any(file.outcome == "failed" for file in self.files)


class Tally:
    """Counts, and keeps what is told one by one; its size does not grow with the number of rows."""

    def __init__(self) -> None:
        self.counts = Counter[str]()
        self.chunks = 0
        self._files: dict[int, list[FileReport]] = {}
        self._rows: dict[int, Counter[str]] = {}
        self._undeclared: dict[str, None] = {}
        self._remarks: list[str] = []
        self._more_remarks = 0

    def note(self, item: Item, outcome: Outcome, *, chunks: int = 0, error: str = "") -> None:
        """A document of a file, or a row."""
        self.counts[outcome] += 1
        self.chunks += chunks
        own = self._files.setdefault(item.file.index, [])
        if not item.file.rows:
            own.append(_report(item.file, item.document, outcome, chunks=chunks, error=error))
            return
        rows = self._rows.setdefault(item.file.index, Counter())
        rows[outcome] += 1
        if outcome == "failed" and rows[outcome] <= MOST_ROWS:
            own.append(_report(item.file, item.document, outcome, error=error))

    def gone(self, document: str) -> None:
        self.counts["removed"] += 1
        removed = self._files.setdefault(-1, [])
        if len(removed) < MOST_ROWS:
            removed.append(FileReport(path="", document=document, outcome="removed"))

    def undeclared(self, names: list[str]) -> None:
        if len(self._undeclared) < MOST_NAMES:
            self._undeclared.update(dict.fromkeys(names))

    def remark(self, item: Item, notes: Sequence[str]) -> None:
        """What should be known about a document that is added all the same."""
        for note in notes:
            if len(self._remarks) < MOST_NAMES:
                self._remarks.append(f"{str(item.file.path)!r}: {note}")
            else:
                self._more_remarks += 1

    def report(self, collection: str, given: Found, broken: Mapping[int, str]) -> AddReport:
        """`broken` are files of rows that could not be read to their end, and why."""
        told: list[FileReport] = []
        for file in given.files:
            if file.rows and not file.error:
                rows = self._rows.get(file.index, Counter())
                outcome: Literal["failed", "read"] = "failed" if file.index in broken else "read"
                told.append(
                    FileReport(
                        path=str(file.path),
                        document=file.document,
                        outcome=outcome,
                        error=broken.get(file.index, ""),
                        rows=dict(rows),
                    )
                )
            told += self._files.get(file.index, [])
        notes = [
            f"{str(given.files[index].path)!r}: {rows['failed']} rows failed, of which the first"
            f" {MOST_ROWS} are told"
            for index, rows in self._rows.items()
            if rows["failed"] > MOST_ROWS
        ]
        more = (
            [f"{self._more_remarks} more such warnings are not told"] if self._more_remarks else []
        )
        return AddReport(
            collection=collection,
            files=(*told, *self._files.get(-1, [])),
            skipped=given.skipped,
            unread=given.unread,
            counts=dict(self.counts + Counter(failed=len(broken))),
            chunks=self.chunks,
            undeclared=tuple(self._undeclared),
            notes=(*self._remarks, *more, *notes),
        )


class Meter:
    """Bytes done, for whoever watches. What has not changed is taken off the whole: it would pass
    for speed."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self._whole = 0
        self._passages = 0
        self._under_way: dict[tuple[int, str], int] = {}

    def part(self, item: Item, share: float, passages: int = 0) -> None:
        """A document is made to this share, 0-1, with so many more passages."""
        self._passages += passages
        key = (item.file.index, item.document)
        if share >= 1:
            self._under_way.pop(key, None)
            self._whole += item.size
        else:
            self._under_way[key] = int(item.size * share)
        self._tell(item)

    def unchanged(self, item: Item) -> None:
        self._under_way.pop((item.file.index, item.document), None)
        self._total -= item.size
        self._tell(item)

    def _tell(self, item: Item) -> None:
        if self._progress is not None and not item.file.error:
            done = self._whole + sum(self._under_way.values())
            document = item.document or item.file.document
            self._progress(done, max(self._total, 0), document, self._passages)


def _report(
    file: File, document: str, outcome: Outcome, *, chunks: int = 0, error: str = ""
) -> FileReport:
    return FileReport(
        path=str(file.path), document=document, outcome=outcome, chunks=chunks, error=error
    )
