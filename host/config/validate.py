"""Validates a document against the model of its kind: every problem at once, each with file, line,
column and key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from groundhook.core.errors import ConfigError, Place
from groundhook.core.problems import Problem, problems_of, raise_all
from groundhook.core.types.base import dotted, validation_problems
from groundhook.host.config.documents import ConfigDocument
from groundhook.host.config.environment import (
    KEY_VARIABLE,
    Environment,
    expand,
    need,
    unset_in,
    without_unset,
    without_values,
)
from groundhook.host.config.locations import Path
from groundhook.host.config.normalise import Normal, Stray, normalise

_Model = TypeVar("_Model", bound=BaseModel)


@dataclass(frozen=True)
class ValidDocument:
    """A document that was validated against a model. `data` has canonical keys, variables replaced,
    and only the keys that are set."""

    document: ConfigDocument
    normal: Normal
    errors: tuple[ConfigError, ...]
    ignored: tuple[Problem, ...] = ()  # a warning for each unknown key that is not an error

    @property
    def data(self) -> Mapping[str, Any]:
        return self.normal.data

    def place(self, path: Path) -> Place:
        """Return where the value at a canonical path is written."""
        return self.document.place(self.normal.written(path))

    def findings(self) -> list[Problem]:
        """Return errors, repeated keys, and variables that are not set (a warning: they may be set
        where the app runs)."""
        unset = [
            problem
            for each in unset_in(self.data)
            for problem in problems_of(each.error(), "warning")
        ]
        errors = [problem for error in self.errors for problem in problems_of(error)]
        return [*self.document.warnings, *self.ignored, *errors, *unset]


def check_document(
    model: type[BaseModel],
    document: ConfigDocument,
    environment: Environment,
    *,
    switch_on: bool = False,
    lenient: bool = False,
) -> ValidDocument:
    """Return a document, validated against `model` (see `normalise` for `switch_on`). `lenient`: an
    unknown key is a warning unless it is nearly a known one. Never raises; `errors` holds what was
    found."""
    normal = normalise(model, expand(document, environment), switch_on=switch_on)
    ignored = [stray for stray in normal.strays if lenient and stray.harmless]
    errors = [_stray_error(document, stray) for stray in normal.strays if stray not in ignored]
    try:
        model.model_validate(without_unset(normal.data))
    except ValidationError as exc:
        unset = {each.path for each in unset_in(normal.data)}  # of which nothing is known
        wrong = [
            (path, message)
            for path, message in _drop_alternatives(validation_problems(exc))
            if normal.written(path) not in unset
        ]
        errors += [
            _error_at(document, normal, path, message, environment) for path, message in wrong
        ]
    warnings = [
        problem
        for stray in ignored
        for problem in problems_of(
            _stray_error(document, stray, ", which nothing reads"), "warning"
        )
    ]
    return ValidDocument(document, normal, tuple(sorted(errors, key=_sort_key)), tuple(warnings))


def read_value(
    model: type[_Model],
    document: ConfigDocument,
    environment: Environment,
    *,
    lenient: bool = False,
    **more: Any,
) -> _Model:
    """Return a document as a `model` (see `check_document` for `lenient`); `more` are fields that
    are not in the file (its id). Raises ConfigError for all problems at once, or for a variable
    that is not set."""
    checked = check_document(model, document, environment, lenient=lenient)
    need(checked.data)
    raise_all(checked.errors)
    return model.model_validate({**checked.data, **more})


def _stray_error(document: ConfigDocument, stray: Stray, more: str = "") -> ConfigError:
    message = (
        f"{stray.message} {dotted(stray.path)!r}{more}"
        if stray.message == "unknown key"
        else f"{dotted(stray.path)!r}: {stray.message}"
    )
    return ConfigError(message, place=document.place(stray.path, of="key"), hint=stray.hint)


def _drop_alternatives(problems: Sequence[tuple[Path, str]]) -> list[tuple[Path, str]]:
    """Return the problems under the keys of the file. Of a value that may have several types, which
    each have a problem, the type whose problem is deepest was meant."""
    # Steps that name the types of such a value are not keys.
    found = [
        (tuple(step for step in path if step != "bool" and "[" not in str(step)), message)
        for path, message in problems
    ]
    above = {path[:length] for path, _ in found for length in range(len(path))}
    return [(path, message) for path, message in found if path not in above]


def _error_at(
    document: ConfigDocument, normal: Normal, path: Path, message: str, environment: Environment
) -> ConfigError:
    written = normal.written(path)
    place = document.place(written)
    if message == "field required":
        return ConfigError(f"{dotted(written)!r} is missing", place=place)
    found = document.at(written, ...)  # as written, so that the value of a variable is never shown
    message = without_values(message, found, environment)
    if found is None:  # YAML reports it in the line after its key
        place = document.place(written, of="key")
    # A value here may be a key that was written in place of its variable, so it is not shown.
    instead = "" if written[-1:] == (KEY_VARIABLE,) else _describe_found(message, found)
    return ConfigError(f"{dotted(written)!r}: {message}{instead}", place=place)


def _describe_found(message: str, found: Any) -> str:
    """Return `, not X` for a message: the value, or its type for a list, an object or an empty
    value."""
    if isinstance(found, bool):  # as it is written in the file
        return f", not {str(found).lower()}"
    if isinstance(found, (str, int, float)):
        return f", not {found!r}" if found != "" and len(repr(found)) < 60 else ""
    if found is None:
        return ", and it is empty"
    kind = "an object" if isinstance(found, dict) else "a list" if isinstance(found, list) else ""
    return (
        f", not {kind}" if kind and message.startswith("should be ") and kind not in message else ""
    )


def _sort_key(error: ConfigError) -> tuple[int, int]:
    return (error.place.line, error.place.column) if error.place else (0, 0)
