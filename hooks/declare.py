"""Models of `core.types` as TypeScript interfaces.

A value that a hook passes to the host is declared with every spelling that the host reads, and its
fields with defaults are optional; a value that a hook receives has all its fields. Knows nothing of
calls.
"""

from __future__ import annotations

import inspect
import json
import re
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import AliasChoices, BaseModel
from pydantic.fields import FieldInfo

_SCALARS: dict[Any, str] = {
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    type(None): "null",
    Any: "any",
}
_LISTS = (list, tuple, set, frozenset, Sequence, Iterable)


class Declarations:
    """Interfaces by name, in the order of first use. `special` replaces the type of a field:
    {("KBOptions", "collections"): "CollectionName[]"}."""

    def __init__(self, special: Mapping[tuple[str, str], str]) -> None:
        self._special = special
        self._made: dict[str, str] = {}

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(self._made.values())

    def add(self, model: type[BaseModel], *, given: bool) -> str:
        """Declare a model and those it mentions; return its name. The direction of the first use
        of a model counts."""
        name = model.__name__
        if name not in self._made:
            self._made[name] = ""  # a model may mention itself
            self._made[name] = self._interface(model, given)
        return name

    def type_of(self, annotation: Any, *, given: bool) -> str:
        """Return an annotation in TypeScript; `any` for one without a counterpart."""
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            return self.add(annotation, given=given)
        if annotation in _SCALARS:
            return _SCALARS[annotation]
        origin, args = get_origin(annotation), get_args(annotation)
        if origin is Annotated:
            return self.type_of(args[0], given=given)
        if origin is Literal:
            return " | ".join(json.dumps(value) for value in args)
        if origin in (Union, types.UnionType):
            return " | ".join(dict.fromkeys(self.type_of(arg, given=given) for arg in args))
        if origin in _LISTS and args:
            inner = self.type_of(args[0], given=given)
            return f"({inner})[]" if " | " in inner else f"{inner}[]"
        if origin in (dict, Mapping):
            return f"Record<string, {self.type_of(args[1], given=given)}>"
        return "any"

    def _interface(self, model: type[BaseModel], given: bool) -> str:
        members = [
            line
            for name, field in model.model_fields.items()
            for line in self._member(model, name, field, given)
        ]
        if model.model_config.get("extra") == "allow":
            members.append("[key: string]: any;")
        body = "".join(f"  {line}\n" for line in members)
        return f"{comment(_first_paragraph(model))}export interface {model.__name__} {{\n{body}}}\n"

    def _member(
        self, model: type[BaseModel], name: str, field: FieldInfo, given: bool
    ) -> Iterator[str]:
        if field.exclude:
            return
        type = self.type_of(field.annotation, given=given)
        special = self._special.get((model.__name__, name))
        if special is not None:
            type = special + (" | null" if type.endswith("| null") else "")
        main = field.serialization_alias or name
        others = [other for other in _list_spellings(field, name) if other != main] if given else []
        optional = "?" if given and (others or not field.is_required()) else ""
        yield from comment(field.description or "").splitlines()
        yield f"{main}{optional}: {type};"
        for other in others:
            yield f"/** The same as `{main}`. */"
            yield f"{other}{optional}: {type};"


def comment(text: str) -> str:
    """Return a text as a JSDoc comment with its line break; empty for an empty text."""
    return f"/** {text.replace('*/', '* /')} */\n" if text else ""


def _list_spellings(field: FieldInfo, name: str) -> list[str]:
    alias = field.validation_alias
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
    return [choice for choice in choices if isinstance(choice, str) and choice != name]


def _first_paragraph(model: type[BaseModel]) -> str:
    """Return the first paragraph of a model's docstring, on one line."""
    paragraph = inspect.cleandoc(model.__doc__ or "").split("\n\n")[0]
    return re.sub(r"\s+", " ", paragraph).strip()
