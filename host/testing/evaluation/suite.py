"""Suites of questions: JSON lines, one question with what its answer must have on each line.

    {"question": "How long is green tea brewed?", "sources": ["tea.md"], "figures": ["2 minutes"]}

Owns the form of a row, reading, and writing of new rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError

from groundhook.core.errors import ConfigError, Place, UsageError
from groundhook.core.json_lines import line
from groundhook.core.json_text import read_json
from groundhook.core.problems import raise_all
from groundhook.core.types.base import FewOf, Value, dotted, validate_known, validation_problems
from groundhook.core.types.turn import Identity, Message

SUFFIX = ".suite.jsonl"
MOST_ROWS = 10_000


def _as_text(value: Any) -> Any:
    numbers = (int, float)
    return str(value) if isinstance(value, numbers) and not isinstance(value, bool) else value


Figure = Annotated[str, BeforeValidator(_as_text)]


class EvaluationRow(Value):
    """A question, and what its answer must have. A row without any of this is only measured."""

    id: str = Field(default="", max_length=200, description="Empty: the question")
    question: str = Field(min_length=1)
    messages: FewOf[Message] = Field(default=(), description="The conversation before it")
    assistant: str = Field(default="", description="Empty: that of the suite")
    identity: Identity = Identity()
    sources: FewOf[str] = Field(
        default=(),
        description="Sources that must be cited: a document, title, address, model or record",
    )
    phrases: FewOf[str | FewOf[str]] = Field(
        default=(), description="Texts that must be in the answer; of an inner list, one of them"
    )
    figures: FewOf[Figure] = Field(default=(), description="Numbers, also with units")
    refusal: bool = Field(default=False, description="The answer must cite nothing")
    note: str = Field(default="", description="For people")

    @property
    def name(self) -> str:
        """What tells rows apart."""
        return self.id or self.question

    @property
    def expects(self) -> bool:
        return bool(self.sources or self.phrases or self.figures or self.refusal)


@dataclass(frozen=True)
class EvaluationSuite:
    """The rows of a file. `shown` is its name in messages."""

    path: Path
    shown: str
    rows: tuple[EvaluationRow, ...]

    def assistant(self, row: EvaluationRow) -> str:
        """Return the assistant that a row asks; "" where neither it nor the place of the file names
        one."""
        return row.assistant or assistant_of(self.path)


def assistant_of(path: Path) -> str:
    """Return the assistant in whose folder `tests` a suite is; "" elsewhere."""
    parts = path.absolute().parts
    if "assistants" not in parts or parts[-2] != "tests":
        return ""
    start = len(parts) - 1 - parts[::-1].index("assistants")
    return ".".join(parts[start + 1 : -2])


def read_suite(path: Path, shown: str) -> EvaluationSuite:
    """Return a suite. Raises ConfigError with the line of each problem."""
    rows = list(_rows(path, shown))
    names: dict[str, int] = {}
    errors = []
    for number, row in rows:
        first = names.setdefault(row.name, number)
        if first != number:
            errors.append(
                ConfigError(
                    f"the same question as in line {first}",
                    place=Place(shown, number),
                    hint="give each its own 'id'",
                )
            )
    raise_all(errors)
    if not rows:
        raise ConfigError(
            "the suite has no rows",
            place=Place(shown),
            hint='a row is {"question": "…", "sources": ["…"]}',
        )
    return EvaluationSuite(path, shown, tuple(row for _, row in rows))


def _rows(path: Path, shown: str) -> Iterable[tuple[int, EvaluationRow]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        hint = f"suites end with {SUFFIX}, such as assistants/<id>/tests/first{SUFFIX}"
        raise ConfigError("there is no such suite", place=Place(shown), hint=hint) from None
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"cannot be read: {reason}", place=Place(shown)) from exc
    written = [(n, each) for n, each in enumerate(text.split("\n"), 1) if each.strip()]
    if len(written) > MOST_ROWS:
        raise ConfigError(f"the suite has more than {MOST_ROWS} rows", place=Place(shown))
    errors, rows = list[ConfigError](), list[tuple[int, EvaluationRow]]()
    for number, each in written:
        try:
            rows.append((number, _row(each)))
        except _WrongRow as exc:
            errors.append(ConfigError(exc.message, place=Place(shown, number), hint=exc.hint))
    raise_all(errors)
    return rows


class _WrongRow(Exception):
    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


def _row(text: str) -> EvaluationRow:
    try:
        raw = read_json(text)
    except ValueError as exc:
        raise _WrongRow(f"is not JSON: {exc}") from None
    if not isinstance(raw, Mapping):
        raise _WrongRow("a row must be an object", 'such as {"question": "…", "sources": ["…"]}')
    try:
        row, unknown = validate_known(EvaluationRow, raw)
    except ValidationError as exc:
        path, message = validation_problems(exc)[0]
        raise _WrongRow(f"{dotted(path)!r}: {message}") from None
    if unknown:
        raise _WrongRow(f"unknown key {unknown[0].path!r}", unknown[0].hint)
    if row.refusal and (row.sources or row.phrases or row.figures):
        raise _WrongRow("'refusal' leaves nothing to expect of the answer", "remove one of them")
    return row


def append_rows(path: Path, rows: Sequence[EvaluationRow]) -> None:
    """Add rows to the end of a suite, which is created if needed."""
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    if before and not before.endswith("\n"):
        before += "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".writing")
    fresh.write_text(before + "".join(map(line_of, rows)), encoding="utf-8")
    # Renamed when it is complete: an interrupted run does not damage the old file.
    fresh.replace(path)


def append_row(path: Path, row: EvaluationRow) -> None:
    """Add a row to a suite. Raises UsageError for a question that it has, ConfigError for a suite
    that cannot be read."""
    known = read_suite(path, path.name).rows if path.is_file() else ()
    if any(each.name == row.name for each in known):
        raise UsageError(f"{path.name} has this question", hint="give the row its own 'id'")
    append_rows(path, [row])


def line_of(row: EvaluationRow) -> str:
    """Return a row as its line in a suite: only what is set."""
    return line(row.model_dump(mode="json", exclude_defaults=True))
