"""What all wire values share: frozen pydantic models, aliases for both spellings, and a report of
unknown keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Self, TypeVar, get_args

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, FailFast, ValidationError

from groundhook.host.core.errors import suggestion

Model = TypeVar("Model", bound=BaseModel)
Listed = TypeVar("Listed")

MOST_ENTRIES = 1000  # of a list or mapping whose entries are checked one by one
MOST_UNKNOWN = 20  # unknown keys that are named
# steps of a path below which unknown keys are left to the model's own validator, which gives up in
# time
DEEPEST = 60
LONGEST_NAME = 80  # characters of a key in a report


def _few(value: Any) -> Any:
    if isinstance(value, (list, tuple, dict)) and len(value) > MOST_ENTRIES:
        raise ValueError(f"should have at most {MOST_ENTRIES} entries, not {len(value)}")
    return value


class _First(FailFast):
    """Only the first wrong entry is reported. Hashable, as unions want their members."""

    def __hash__(self) -> int:
        return hash(self.fail_fast)


# For mappings and lists that a script fills: a hundred thousand wrong entries are as many errors,
# and seconds of the event loop.
FEW = BeforeValidator(_few)
Few = Annotated[Listed, _First(), FEW]


class Value(BaseModel):
    """A value on the wire. Frozen: a changed one is a new one (`model_copy(update=…)`)."""

    # Validators are built when they are first used: building all of them is a tenth of a start.
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, defer_build=True)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """As pydantic's, in a fifth of the time: a turn makes a hundred of these."""
        if deep or self.__pydantic_extra__ is not None or self.__pydantic_private__ is not None:
            return super().model_copy(update=update, deep=deep)
        changes, said = update or {}, self.__pydantic_fields_set__
        fields = {**self.__dict__, **changes}
        return unvalidated(
            self.__class__, fields, said if said.issuperset(changes) else said.union(changes)
        )


def unvalidated(model: type[Model], fields: dict[str, Any], said: set[str]) -> Model:
    """A value of what has the right types for certain, in a third of the time that validating it
    takes. `fields` are all of the model's, in their order, of which those of `said` are more than
    defaults."""
    made = _new(model)
    _set(made, "__dict__", fields)
    _set(made, "__pydantic_fields_set__", said)
    _set(made, "__pydantic_extra__", None)
    _set(made, "__pydantic_private__", None)
    return made


_new = object.__new__
_set = object.__setattr__  # a frozen model refuses its own


def well_formed(value: Any) -> Any:
    """A JSON value in which half a surrogate pair, which a client may send and nothing can encode,
    is U+FFFD."""
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
    `wheres[0].feild`."""

    path: str
    hint: str

    def __str__(self) -> str:
        return f"unknown key {self.path!r} ({self.hint})"


def read(model: type[Model], raw: Mapping[str, Any]) -> tuple[Model, list[UnknownKey]]:
    """Validate `raw` as `model`, leaving out keys that the model does not have and reporting them.

    Of very many unknown keys the first are named and the rest counted. Raises
    pydantic.ValidationError when a known key has a wrong value; `problems` words it.
    """
    unknown: list[tuple[str, str, type[BaseModel]]] = []
    known = _strip(model, raw, "", unknown)
    named = [
        UnknownKey(f"{path}{_short(key)}", suggestion(key, sorted(names_of(of))))
        for path, key, of in unknown[:MOST_UNKNOWN]
    ]
    if len(unknown) > MOST_UNKNOWN:
        named.append(UnknownKey("…", f"and {len(unknown) - MOST_UNKNOWN} more"))
    return model.model_validate(known), named


def problems(error: ValidationError) -> list[tuple[tuple[str | int, ...], str]]:
    """What a validation found, worded without the library's own links: [(path, message)]."""
    return [(tuple(item["loc"]), _worded(item["msg"])) for item in error.errors(include_url=False)]


def dotted(path: tuple[str | int, ...]) -> str:
    """("messages", 2, "role") → "messages[2].role"."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else (f".{step}" if text else step)
    return text


@cache
def names_of(model: type[BaseModel]) -> Mapping[str, Any]:
    """Every key under which the model accepts a field → that field's annotation."""
    names: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        names[name] = field.annotation
        alias = field.validation_alias
        for choice in alias.choices if isinstance(alias, AliasChoices) else [alias]:
            if isinstance(choice, str):
                names[choice] = field.annotation
    return names


@cache
def _inner(model: type[BaseModel]) -> Mapping[str, type[BaseModel] | None]:
    """The wire model, if there is one, that the value of each key is made of."""
    return {
        name: next(_models_in(annotation), None) for name, annotation in names_of(model).items()
    }


def _short(key: str) -> str:
    return key if len(key) <= LONGEST_NAME else f"{key[:LONGEST_NAME]}…"


def _strip(
    model: type[BaseModel],
    raw: Mapping[str, Any],
    path: str,
    unknown: list[tuple[str, str, type[BaseModel]]],
) -> dict[str, Any]:
    """`raw` without keys that the model does not have; those are added to `unknown`: (path, key,
    model)."""
    if model.model_config.get("extra") == "allow" or path.count(".") > DEEPEST:
        return dict(raw)
    names = _inner(model)
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
    """The wire models an annotation mentions; a mapping of models is left to the model's own
    validator."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif getattr(annotation, "__origin__", None) not in (dict, Mapping):
        for part in get_args(annotation):
            yield from _models_in(part)


def _worded(message: str) -> str:
    message = message.removeprefix("Value error, ").replace("Input should", "should")
    message = re.sub(
        r"be a valid (?:dictionary or instance of \w+|dictionary)", "be an object", message
    )
    message = re.sub(r"^(?:Tuple|List) should (.*) after validation,", r"should \1,", message)
    message = message.replace("be a valid tuple", "be a list").replace(
        "be a valid string", "be text"
    )
    message = re.sub(
        r"be a valid integer(?:, unable to .*|, got a number with .*)?$",
        "be a whole number",
        message,
    )
    message = re.sub(r"be a valid number(?:, unable to .*)?$", "be a number", message)
    message = re.sub(r"be a valid boolean(?:, unable to .*)?$", "be true or false", message)
    message = message.replace("String should have at least 1 character", "should not be empty")
    return message[:1].lower() + message[1:]
