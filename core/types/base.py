"""The base of all wire values: frozen pydantic models, aliases for both spellings, and a report of
unknown keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar, get_args

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, FailFast, ValidationError

from groundhook.core.errors import suggestion

AnyModel = TypeVar("AnyModel", bound=BaseModel)
_Listed = TypeVar("_Listed")

MOST_ENTRIES = 1000  # entries of a list or mapping of a script or client
MOST_UNKNOWN = 20  # unknown keys that a report names
MOST_PROBLEMS = 100  # wrong values that a report names
# steps of a path; deeper keys go to pydantic unchecked, which has a limit of its own
DEEPEST = 60
UNNAMED = "\0"  # tag of a member of a union, which paths in messages do not show
HAS_TEXT = r"[^\s\x00\ufeff]"  # pattern of text that is more than blanks and what readers remove
_MEMBER = re.compile(r"str|int|float|bool|none|[a-z-]+[\[(].*")  # the library's names for types
_SHOULD = "should be "
LONGEST_NAME = 80  # characters of a key in a report


def _limit_entries(value: Any) -> Any:
    if isinstance(value, (list, tuple, dict)) and len(value) > MOST_ENTRIES:
        raise ValueError(f"should have at most {MOST_ENTRIES} entries, not {len(value)}")
    return value


class _First(FailFast):
    """Report the first wrong entry alone. Hashable, since members of unions must be."""

    def __hash__(self) -> int:
        return hash(self.fail_fast)


# For mappings and lists from outside: a hundred thousand wrong entries would give as many errors,
# and block the event loop for seconds.
FEW = BeforeValidator(_limit_entries)
Few = Annotated[_Listed, _First(), FEW]

# For fields of values that programs make: any sequence is accepted and kept as a tuple.
if TYPE_CHECKING:
    Several = Sequence
    FewOf = Annotated[Sequence[_Listed], FEW]
else:
    Several = tuple[_Listed, ...]
    FewOf = Few[tuple[_Listed, ...]]


class Value(BaseModel):
    """A value on the wire. Frozen: a changed one is a new one (`model_copy(update=…)`)."""

    # Validators are built when they are first used: building all of them takes a tenth of the time
    # of a start.
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, defer_build=True)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with changes, as pydantic's method does, in a fifth of its time: a turn
        makes a hundred copies."""
        if deep or self.__pydantic_extra__ is not None or self.__pydantic_private__ is not None:
            return super().model_copy(update=update, deep=deep)
        changes, fields_set = update or {}, self.__pydantic_fields_set__
        fields = {**self.__dict__, **changes}
        return unvalidated(
            self.__class__,
            fields,
            fields_set if fields_set.issuperset(changes) else fields_set.union(changes),
        )


def defaults_of(model: type[AnyModel]) -> AnyModel:
    """Return the value with every default, for a default of another value. `model()` would build
    its validator where the module is imported, a tenth of the time of a start for the settings."""
    return model.model_construct()


def unvalidated(model: type[AnyModel], fields: dict[str, Any], fields_set: set[str]) -> AnyModel:
    """Return a value without validation, in a third of the time. The caller guarantees the types.
    `fields` are all fields of the model, in their order; `fields_set` the names of those that are
    set."""
    made = _new(model)
    _set(made, "__dict__", fields)
    _set(made, "__pydantic_fields_set__", fields_set)
    _set(made, "__pydantic_extra__", None)
    _set(made, "__pydantic_private__", None)
    return made


_new = object.__new__
_set = object.__setattr__  # a frozen model refuses to set its attributes


def well_formed(value: Any) -> Any:
    """Return a JSON value with U+FFFD for halves of surrogate pairs, which clients may send and
    UTF-8 cannot encode."""
    if isinstance(value, str):
        return (
            value
            if value.isascii()
            else value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        )
    if isinstance(value, (list, tuple)):
        return [well_formed(entry) for entry in value]
    if isinstance(value, Mapping):
        return {well_formed(key): well_formed(entry) for key, entry in value.items()}
    return value


@dataclass(frozen=True)
class UnknownKey:
    """A key that nothing reads. `path` is dotted, list positions in brackets: `rerank.topk`,
    `wheres[0].feild`. `hint` has the nearest known key."""

    path: str
    hint: str

    def __str__(self) -> str:
        return f"unknown key {self.path!r} ({self.hint})"


def validate_known(
    model: type[AnyModel], raw: Mapping[str, Any]
) -> tuple[AnyModel, list[UnknownKey]]:
    """Validate `raw` as `model` without the keys that the model does not have; return the value and
    those keys.

    The list names at most MOST_UNKNOWN keys and counts the others. Raises pydantic.ValidationError
    if a known key has a wrong value; `validation_problems` returns its messages.
    """
    unknown: list[tuple[str, str, type[BaseModel]]] = []
    known = _strip(model, raw, "", unknown)
    named = [
        UnknownKey(f"{path}{_shorten(key)}", suggestion(key, sorted(names_of(of))))
        for path, key, of in unknown[:MOST_UNKNOWN]
    ]
    if len(unknown) > MOST_UNKNOWN:
        named.append(UnknownKey("…", f"and {len(unknown) - MOST_UNKNOWN} more"))
    return model.model_validate(known), named


def validation_problems(error: ValidationError) -> list[tuple[tuple[str | int, ...], str]]:
    """Return the first MOST_PROBLEMS problems of a validation as [(path, message)], in plain words
    and without the library's links."""
    # The library makes all of them or none: lists of strangers are `Few`, which have one each.
    found = error.errors(include_url=False, include_input=False, include_context=False)
    return [(tuple(item["loc"]), _describe(item)) for item in found[:MOST_PROBLEMS]]


def first_problem(error: ValidationError, value: Any) -> tuple[tuple[str | int, ...], str]:
    """Return the first problem of the validation of `value` as (path, message), where the value has
    it: without the library's names for the members of a union, of which the one is meant that fits
    the value the furthest."""
    problems = validation_problems(error)
    placed = [(_in_value(path, value), message) for path, message in problems]
    first = placed[0][0]
    if first == problems[0][0]:
        return placed[0]
    alternatives = [(place, text) for place, text in placed if place[: len(first)] == first]
    furthest = max(alternatives, key=lambda each: len(each[0]))
    if len(furthest[0]) > len(first):
        return furthest
    words = dict.fromkeys(text.removeprefix(_SHOULD) for _, text in alternatives)
    return first, _SHOULD + " or ".join(words)


def _in_value(path: Sequence[str | int], value: Any) -> tuple[str | int, ...]:
    """Return the steps of a path that are keys or places of a value, and a missing key."""
    made: list[str | int] = []
    for step in path:
        inside = isinstance(value, Mapping) if isinstance(step, str) else isinstance(value, list)
        if inside and (isinstance(step, int) or step in value or not _MEMBER.fullmatch(step)):
            made.append(step)
            value = value[step] if isinstance(step, int) or step in value else None
    return tuple(made)


def _describe(item: Mapping[str, Any]) -> str:
    """Return the message of a problem in plain words."""
    text = _reword(item["msg"])
    if item["type"] == "less_than_equal" and item["loc"][-1:] == ("threshold",):
        return f"{text} (similarities are from 0 to 1: 0.7 in place of 70)"
    return text


def dotted(path: tuple[str | int, ...]) -> str:
    """Return a path as text: ("messages", 2, "role") → "messages[2].role"."""
    text = ""
    for step in path:
        if step == UNNAMED:
            continue
        text += f"[{step}]" if isinstance(step, int) else (f".{step}" if text else step)
    return text


@cache
def names_of(model: type[BaseModel]) -> Mapping[str, Any]:
    """Return every key that the model accepts, with its field's annotation."""
    names: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        names[name] = field.annotation
        alias = field.validation_alias
        for choice in alias.choices if isinstance(alias, AliasChoices) else [alias]:
            if isinstance(choice, str):
                names[choice] = field.annotation
    return names


@cache
def _inner_models(model: type[BaseModel]) -> Mapping[str, type[BaseModel] | None]:
    """Return for each key the wire model that its value consists of, or None."""
    return {
        name: next(_models_in(annotation), None) for name, annotation in names_of(model).items()
    }


def _shorten(key: str) -> str:
    return key if len(key) <= LONGEST_NAME else f"{key[:LONGEST_NAME]}…"


def _strip(
    model: type[BaseModel],
    raw: Mapping[str, Any],
    path: str,
    unknown: list[tuple[str, str, type[BaseModel]]],
) -> dict[str, Any]:
    """Return `raw` without the keys that the model does not have, and add those to `unknown` as
    (path, key, model)."""
    if model.model_config.get("extra") == "allow" or path.count(".") > DEEPEST:
        return dict(raw)
    names = _inner_models(model)
    kept: dict[str, Any] = {}
    for key, value in raw.items():
        where = f"{path}{key}"
        if key not in names:
            unknown.append((path, key, model))
            continue
        inner = names[key]
        if inner is not None and isinstance(value, Mapping):
            value = _strip(inner, value, f"{where}.", unknown)
        elif inner is not None and isinstance(value, (list, tuple)) and len(value) <= MOST_ENTRIES:
            value = [
                _strip(inner, entry, f"{where}[{index}].", unknown)
                if isinstance(entry, Mapping)
                else entry
                for index, entry in enumerate(value)
            ]
        kept[key] = value
    return kept


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the wire models in an annotation; pydantic itself validates mappings of models."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif getattr(annotation, "__origin__", None) not in (dict, Mapping):
        for part in get_args(annotation):
            yield from _models_in(part)


def _reword(message: str) -> str:
    message = message.removeprefix("Value error, ").replace("Input should", "should")
    message = re.sub(
        r"be a valid (?:dictionary or instance of \w+|dictionary)", "be an object", message
    )
    message = re.sub(r"^(?:Tuple|List) should (.*) after validation,", r"should \1,", message)
    message = re.sub("be a valid (?:tuple|list)", "be a list", message)
    message = message.replace("be a valid string", "be text")
    message = re.sub(
        r"be a valid integer(?:, unable to .*|, got a number with .*)?$",
        "be a whole number",
        message,
    )
    message = re.sub(r"be a valid number(?:, unable to .*)?$", "be a number", message)
    message = re.sub(r"be a valid boolean(?:, unable to .*)?$", "be true or false", message)
    message = message.replace("String should have at least 1 character", "should not be empty")
    for pattern in (r"\S", HAS_TEXT):
        message = message.replace(f"String should match pattern '{pattern}'", "should not be blank")
    return message[:1].lower() + message[1:]
