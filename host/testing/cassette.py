"""Recorded answers of sources and models, for tests with the same result in every run: one JSON
file for each file of tests.

    {"now": "2026-03-01T12:00:00+00:00", "seed": 1, "web": false, "calls": [
      {"call": "kb search", "request": {"query": "…", "limit": 5}, "answers": [{"items": […]}]}
    ]}

A call is found by its canonical request: only the keys that are set, sorted, and text of several
lines as a list of lines, so that differences are readable line by line. A request that is repeated
has several answers, in order; the last one applies to all further repetitions. This module owns the
file and the look-up; `host.testing.tape` and its users define the calls.
"""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from groundhook.core.errors import ConfigError, HostError, Place
from groundhook.core.types.base import Value, dotted, validation_problems

FIRST_NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)  # clock of tests without recordings
FIRST_SEED = 1
SUFFIX = ".cassette.json"
LONGEST_DIFFERENCE = 24  # lines of a difference that are shown


class NotRecorded(HostError):
    """The cassette of a test does not have the answer to a call."""

    code = "not_recorded"


class Recorded(Value):
    """A call and its answers."""

    call: str
    request: dict[str, Any]
    answers: tuple[dict[str, Any], ...] = Field(min_length=1)


class _File(Value):
    now: datetime = FIRST_NOW
    seed: int = FIRST_SEED
    web: bool = False
    calls: tuple[Recorded, ...] = ()


@dataclass
class Cassette:
    """The recordings of one file of tests. `recording`: real answers are recorded; otherwise every
    answer must be recorded already. `home` is the app's folder, which is written as `/app`, so that
    a recording is the same on every machine."""

    path: Path
    shown: str
    recording: bool
    home: str = ""
    now: datetime = FIRST_NOW
    seed: int = FIRST_SEED
    web: bool = False
    problems: list[NotRecorded] = field(default_factory=list)
    _calls: dict[tuple[str, str], Recorded] = field(default_factory=dict)
    _played: Counter[tuple[str, str]] = field(default_factory=Counter)

    @staticmethod
    def load(
        path: Path, shown: str, *, record_at: datetime | None = None, home: str = ""
    ) -> Cassette:
        """Return the recordings of a file; none if the file does not exist. With `record_at` return
        a new cassette with the clock of the old one, or else that moment. Raises ConfigError for a
        file that is not a cassette."""
        found = _read(path, shown) if path.is_file() else None
        if record_at is not None:
            now = found.now if found else record_at.astimezone(UTC).replace(microsecond=0)
            return Cassette(path, shown, True, home, now, found.seed if found else FIRST_SEED)
        file = found or _File()
        calls = {(each.call, canonical(each.request)): each for each in file.calls}
        return Cassette(path, shown, False, home, file.now, file.seed, file.web, _calls=calls)

    def play(self, call: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the next answer to a request. Raises NotRecorded with the nearest recorded
        request."""
        key = (call, self._replace_home(canonical(request)))
        recorded = self._calls.get(key)
        if recorded is None:
            problem = NotRecorded(
                f"{self._missing_error(call, request)}\n"
                "`groundhook test --record` records the real answer"
            )
            self.problems.append(problem)
            raise problem
        at = self._played[key]
        self._played[key] += 1
        return recorded.answers[min(at, len(recorded.answers) - 1)]

    def has(self, call: str, request: Mapping[str, Any]) -> bool:
        """Return whether an answer to a request is recorded."""
        return (call, self._replace_home(canonical(request))) in self._calls

    def has_any(self, call: str, key: str, value: str) -> bool:
        """Return whether any such call is recorded whose request has this value."""
        return any(
            each.call == call and each.request.get(key) == value for each in self._calls.values()
        )

    def keep(self, call: str, request: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Add an answer to the recording of a request."""
        text = self._replace_home(canonical(request))
        known = self._calls.get((call, text))
        kept = json.loads(self._replace_home(json.dumps(answer, ensure_ascii=False)))
        answers = (*(known.answers if known else ()), kept)
        self._calls[call, text] = Recorded(call=call, request=json.loads(text), answers=answers)

    @property
    def unused(self) -> int:
        """The number of recorded calls that no test made."""
        return 0 if self.recording else sum(key not in self._played for key in self._calls)

    def save(self) -> bool:
        """Write the recordings and return whether the file changed. Without recordings the file is
        removed."""
        before = self.path.read_text(encoding="utf-8") if self.path.is_file() else ""
        after = self._write_text() if self._calls else ""
        if before == after:
            return False
        if after:
            fresh = self.path.with_suffix(".writing")
            fresh.write_text(after, encoding="utf-8")
            # Renamed when it is complete: an interrupted run does not damage the old file.
            fresh.replace(self.path)
        else:
            self.path.unlink()
        return True

    def _replace_home(self, text: str) -> str:
        return text.replace(f"{self.home}/", "/app/") if self.home else text

    def _write_text(self) -> str:
        calls = [
            {
                "call": each.call,
                "request": each.request,
                "answers": list(_drop_repetitions(each.answers)),
            }
            for _, each in sorted(self._calls.items())
        ]
        whole = {"now": self.now.isoformat(), "seed": self.seed, "web": self.web, "calls": calls}
        return json.dumps(whole, ensure_ascii=False, indent=2) + "\n"

    def _missing_error(self, call: str, request: Mapping[str, Any]) -> str:
        wanted = _format_request(request)
        problem = f"no recording of this {call} in {self.shown}:\n{_indent(wanted)}"
        others = [
            _format_request(each.request) for each in self._calls.values() if each.call == call
        ]
        if not others:
            return f"{problem}\nno {call} is recorded there"
        nearest = max(
            others,
            key=lambda other: difflib.SequenceMatcher(
                None, wanted, other, autojunk=False
            ).quick_ratio(),
        )
        difference = _indent(_difference(nearest, wanted))
        return f"{problem}\nthe nearest recorded one differs in\n{difference}"


def canonical(request: Mapping[str, Any]) -> str:
    """Return a request in the form that is compared: JSON with sorted keys and text in lines."""
    return json.dumps(_split_texts(request), ensure_ascii=False, sort_keys=True)


def lines(text: str) -> str | list[str]:
    """Return text as it is recorded: text of several lines as a list."""
    return text.split("\n") if "\n" in text else text


def joined(recorded: Any) -> str:
    """Return the text of a value that `lines` made."""
    return "\n".join(recorded) if isinstance(recorded, list) else str(recorded)


def _split_texts(value: Any) -> Any:
    match value:
        case str():
            return lines(value)
        case Mapping():
            return {str(key): _split_texts(entry) for key, entry in value.items()}
        case list() | tuple():
            return [_split_texts(entry) for entry in value]
        case _:
            return value


def _drop_repetitions(answers: tuple[dict[str, Any], ...]) -> Iterator[dict[str, Any]]:
    """Yield the answers without repetitions at the end: the last one applies to all further
    calls."""
    last = len(answers)
    while last > 1 and answers[last - 1] == answers[last - 2]:
        last -= 1
    yield from answers[:last]


def _format_request(request: Mapping[str, Any]) -> str:
    return json.dumps(_split_texts(request), ensure_ascii=False, indent=2, sort_keys=True)


def _difference(before: str, after: str) -> str:
    changed = [
        line
        for line in difflib.ndiff(before.splitlines(), after.splitlines())
        # neither equal lines, nor the marks below different ones
        if line[:2] in ("- ", "+ ")
    ]
    more = len(changed) - LONGEST_DIFFERENCE
    return "\n".join(
        changed[:LONGEST_DIFFERENCE] + ([f"… and {more} more lines"] if more > 0 else [])
    )


def _indent(text: str) -> str:
    shown = text.splitlines()
    more = len(shown) - LONGEST_DIFFERENCE
    shown = shown[:LONGEST_DIFFERENCE] + ([f"… and {more} more lines"] if more > 0 else [])
    return "\n".join(f"    {line}" for line in shown)


def _read(path: Path, shown: str) -> _File:
    try:
        return _File.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except OSError as exc:
        raise ConfigError(f"cannot be read: {exc.strerror}", place=Place(shown)) from exc
    except UnicodeDecodeError as exc:
        raise ConfigError("is not UTF-8 text", place=Place(shown)) from exc
    except json.JSONDecodeError as exc:
        raise ConfigError(
            f"is not JSON: {exc.msg}", place=Place(shown, exc.lineno, exc.colno), hint=_MEND
        ) from exc
    except ValidationError as exc:
        step, message = validation_problems(exc)[0]
        raise ConfigError(
            f"is not a cassette: {dotted(step)}: {message}", place=Place(shown), hint=_MEND
        ) from exc


_MEND = "delete the file and record it again with `groundhook test --record`"
