"""Tools of process servers that read records: `models.<id>.Find` and `models.<id>.Get`, as hooks
call them by `Process`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from groundhook.core.types.base import dotted, validate_known, validation_problems
from groundhook.core.types.search import RecordQuery
from groundhook.host.turn.run import AssistantRun

_NAME = re.compile(r"models\.(?P<model>.+)\.(?P<verb>find|get)", re.IGNORECASE)
_PARAMETERS: dict[str, dict[str, Any]] = {
    "find": {
        "properties": {"id": {"type": ["integer", "string"], "description": "The primary key."}},
        "required": ["id"],
    },
    "get": {
        "properties": {
            "wheres": {
                "type": "array",
                "items": {"type": "object"},
                "description": "Conditions {field, op, value}, all of which must hold.",
            },
            "orders": {
                "type": "array",
                "items": {"type": "object"},
                "description": "Sort orders {field, order: asc or desc}.",
            },
            "select": {"type": "array", "items": {"type": "string"}, "description": "Fields."},
            "limit": {"type": "integer", "minimum": 1, "maximum": 1000},
        }
    },
}


@dataclass(frozen=True)
class RecordProcess:
    """A read of a model. `model` is its name for the assistant."""

    model: str
    verb: Literal["find", "get"]

    @staticmethod
    def of(name: str) -> RecordProcess | None:
        """Return the read that a name means; None for any other name."""
        found = _NAME.fullmatch(name)
        if found is None:
            return None
        return RecordProcess(found["model"], "find" if found["verb"].lower() == "find" else "get")

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The JSON Schema of the arguments, for a server without one of its own."""
        return {"type": "object", **_PARAMETERS[self.verb], "additionalProperties": False}

    @property
    def description(self) -> str:
        noun = "One record" if self.verb == "find" else "Records"
        return f"{noun} of {self.model}."

    async def call(self, run: AssistantRun, given: Mapping[str, Any] | Sequence[Any]) -> Any:
        """Return the records that the identity of the run may see, or the one record. `given` are
        the arguments by name, or in the order of the process. Raises ValueError, SourceError,
        NotPermitted and UnknownName."""
        if isinstance(given, Mapping):
            ordered: Sequence[Any] = [given.get("id")] if self.verb == "find" else [given]
        else:
            ordered = given
        query = self._make_query(ordered)
        model = run.searcher.names.model(query.model)
        found = await run.runtime.records.records(
            query.model_copy(update={"model": model}), run.searcher.scope
        )
        if self.verb == "get":
            return found
        return found[0] if found else None

    def _make_query(self, given: Sequence[Any]) -> RecordQuery:
        key, more = None, given[0] if given else None
        if self.verb == "find":
            key, more = more, given[1] if len(given) > 1 else None
            if isinstance(key, bool) or not isinstance(key, (int, float, str)):
                raise ValueError("the primary key must be a number or text")
        fields = dict(more) if isinstance(more, Mapping) else {}
        one = {} if key is None else {"record_id": key, "limit": 1}
        try:
            query, unknown = validate_known(RecordQuery, {**fields, **one, "model": self.model})
        except ValidationError as exc:
            path, message = validation_problems(exc)[0]
            raise ValueError(f"{dotted(path)}: {message}") from None
        if unknown:
            raise ValueError(f"the query has an {unknown[0]}")
        return query
