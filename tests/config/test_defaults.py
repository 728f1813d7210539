"""Defaults of settings and specs."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from pydantic import BaseModel

from groundhook.core.types.base import Value
from tests.parts.product import modules


def _below(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for each in model.__subclasses__():
        yield each
        yield from _below(each)


def test_a_default_that_no_validator_made_is_what_the_validator_makes() -> None:
    for name, _ in modules("core", "toolkits"):
        if name.endswith("settings") or name.startswith("core.types."):
            import_module(f"groundhook.{name}")
    defaults = [
        (model.__name__, name, field.default)
        for model in _below(Value)
        for name, field in model.model_fields.items()
        if isinstance(field.default, BaseModel)
    ]
    assert len(defaults) > 50
    for model, name, default in defaults:
        made = type(default)()
        assert (default, default.model_fields_set) == (made, set()), f"{model}.{name}"
