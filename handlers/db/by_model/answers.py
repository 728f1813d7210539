"""The answer of a language model to a question, as the host reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import Field, model_validator

from groundhook.core.types.base import Few
from groundhook.core.types.delegation import DelegateReply, QueryAsk
from groundhook.core.types.uses import Use

LONGEST_TEXT = 300  # characters of a text for readers
_OWN = {"query", "cannot", "ask", "readings"}
_OF_QUERY = {"model", "from", "wheres", "aggregates", "groups", "orders"}


class ModelAnswer(DelegateReply):
    """A query, a refusal with its reason, or a question back with the readings that fit."""

    query: dict[str, Any] | None = None
    unused: Few[tuple[str, ...]] = ()
    cannot: str = ""
    ask: str = ""
    readings: Few[tuple[dict[str, Any], ...]] = Field(default=(), max_length=3)

    @model_validator(mode="before")
    @classmethod
    def _dialects(cls, raw: Any) -> Any:
        """Accept a query alone, and `unused` inside a query."""
        if not isinstance(raw, Mapping):
            return raw
        made = {key: value for key, value in raw.items() if value is not None}
        if "query" not in made and isinstance(made.get("dsl"), Mapping):
            made["query"] = made.pop("dsl")
        if not made.keys() & _OWN and made.keys() & _OF_QUERY:
            made = {"query": made}
        query = made.get("query")
        if isinstance(query, Mapping) and "unused" in query:
            own = {key: value for key, value in query.items() if key != "unused"}
            made = {"unused": query["unused"], **made, "query": own}
        return made

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if self.query is None and not (self.cannot or self.ask or self.readings):
            raise ValueError("needs one of 'query', 'cannot' and 'ask'")
        return self

    @property
    def queries(self) -> tuple[dict[str, Any], ...]:
        """The queries to run; none for a refusal and for a question back without readings."""
        if self.query is not None:
            return (self.query,)
        return () if self.cannot else self.readings


def plain(text: str) -> str:
    """Return a text of a model for readers: one line, at most `LONGEST_TEXT` characters."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return line if len(line) <= LONGEST_TEXT else f"{line[: LONGEST_TEXT - 1]}…"


READ = Use(
    name="query",
    asks=QueryAsk,
    answers=ModelAnswer,
    reply="",
    schema={"type": "object", "properties": {key: {} for key in (*_OWN, "unused")}},
    tools=(),
    task="read",
)
