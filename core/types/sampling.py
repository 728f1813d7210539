"""Options of a language model's answer that are sent to the endpoint as they are."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from groundhook.core.types.base import Value

LONGEST_STOPS = 16


def _make_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _format(value: Any) -> Any:
    return {"type": value} if isinstance(value, str) else value


class Sampling(Value):
    """The sampling and the format of an answer. None or empty: the model's own."""

    top_p: float | None = Field(default=None, ge=0, le=1)
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    frequency_penalty: float | None = Field(default=None, ge=-2, le=2)
    stop: Annotated[tuple[str, ...], BeforeValidator(_make_tuple)] = Field(
        default=(), max_length=LONGEST_STOPS, description="Texts that end the answer"
    )
    seed: int | None = None
    response_format: Annotated[dict[str, Any] | None, BeforeValidator(_format)] = Field(
        default=None,
        description='As the endpoint takes it: {"type": "json_object"}; its type alone works too',
    )
    reasoning_effort: str | None = Field(
        default=None, min_length=1, max_length=32, description="Such as `low`, `medium` or `high`"
    )

    def over(self, below: Sampling) -> dict[str, Any]:
        """Return the options that are set, here or else in `below`, as JSON values."""
        made: dict[str, Any] = {}
        for name in Sampling.model_fields:
            own = getattr(self, name)
            value = getattr(below, name) if own is None or own == () else own
            if value is not None and value != ():
                made[name] = list(value) if isinstance(value, tuple) else value
        return made

    def sampling(self) -> Sampling:
        """Return these options alone, of a value that has more."""
        return Sampling(**{name: getattr(self, name) for name in Sampling.model_fields})
