"""Writes `docs/events.md` from the event models, so that the document always matches the program.

`python -m scripts.events_doc` writes the file; a test compares it with `document()`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from groundhook.core.json_lines import line
from groundhook.core.types.events import (
    CitationSeen,
    Cited,
    Event,
    Reasoning,
    SearchComplete,
    SearchFound,
    SearchStart,
    SourcesGiven,
    StreamEnd,
    StreamStart,
    Text,
    TraceNode,
)
from groundhook.core.types.search import (
    ComputedBy,
    Extent,
    GraphNode,
    Item,
    LongTable,
    OtherReading,
    SearchResult,
    Sentences,
)
from groundhook.core.types.turn import Usage
from scripts.document_text import cell, paragraph

DOCUMENT = Path("docs/events.md")
COMMON = ("type", "turn_id", "at_ms")

_HEAD = """\
# Events

<!-- Written by `make docs` from core/types/events.py. Change the models, not this file. -->

A turn is an ordered stream of events. The terminal shows it, `groundhook chat --json` prints it
(one JSON object on each line, UTF-8, nothing else on standard output), and `host.stream(…)` yields
it in Python. Clients must ignore unknown types and fields; fields are added, never renamed.

A turn begins with `stream_start` and ends with `stream_end`. If it fails, an `error` comes before
the end, and the exit code of `groundhook chat` is 1 instead of 0. A turn that cannot begin (an
unknown assistant, a file that cannot be read) is a single `error`. A failed search, a slow source
and a failed reranker do not end a turn: they are `error` of `search_complete` and a `warning`.

## Events for readers outside

The full stream is for the authors of an assistant. A program that serves other people sends the
result of `groundhook.for_readers(event)`: None, or the event without the parts for authors.

| event | for readers outside |
|---|---|
| `trace` | never |
| `warning` | only `part_not_read`, without its hint: what was not read of a message or a result |
| `error` | `code` and a sentence for the code; no `file`, `line`, `column`, `hint` |
| `search_complete` | `error` is `not permitted`, `stopped` or `the search failed`; no `provider` |
| `tool_result` | `error` is `the tool failed`, or `the user refused this call`; `result` stays |
| `search_result`, `citation` | without `file:` addresses |
| `stream_end` | the same; `timings` has `total` and `first_text` |
| all others | unchanged |

Messages of hooks, and the `data` and `metadata` they return, stay unchanged: their authors decide
what they contain.

Every event has these fields:

| field | type | |
|---|---|---|
| `type` | string | type of the event |
| `turn_id` | string | id of the turn |
| `at_ms` | integer | whole milliseconds since the turn began |
"""

_EXAMPLE = """\
## A turn, line by line

```json
{lines}```
"""


def document() -> str:
    """Return the whole document."""
    events = _event_models()
    values: tuple[type[BaseModel], ...] = (
        Item,
        Extent,
        Sentences,
        Cited,
        TraceNode,
        Usage,
        SearchResult,
        GraphNode,
        ComputedBy,
        OtherReading,
        LongTable,
    )
    schemas = _schemas([*events, *values])
    parts = [
        _HEAD,
        *(
            _section(_tag(schemas[model.__name__]), schemas[model.__name__], COMMON)
            for model in events
        ),
    ]
    parts.append("# Values\n\n`groundhook search --json` prints one `SearchResult`.\n")
    parts += [_section(model.__name__, schemas[model.__name__], ()) for model in values]
    parts.append(_EXAMPLE.format(lines="".join(line(event) for event in _example_events())))
    return "\n".join(parts)


def _event_models() -> tuple[type[BaseModel], ...]:
    union = get_args(Event)[0]
    return get_args(union)


def _schemas(models: Sequence[type[BaseModel]]) -> dict[str, Any]:
    _, whole = models_json_schema([(model, "serialization") for model in models])
    definitions: dict[str, Any] = whole["$defs"]
    return definitions


def _tag(schema: dict[str, Any]) -> str:
    return f"`{schema['properties']['type']['const']}`"


def _section(title: str, schema: dict[str, Any], left_out: Sequence[str]) -> str:
    rows = [
        f"| `{name}` | {_type(field)} | {cell(field.get('description', ''))} |"
        for name, field in schema["properties"].items()
        if name not in left_out
    ]
    summary = paragraph(schema.get("description", "").partition("\n\n")[0])
    return "\n".join(
        [f"## {title}", "", summary, "", "| field | type | |", "|---|---|---|", *rows, ""]
    )


def _type(field: dict[str, Any]) -> str:
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in field:
        return " or ".join(_type(option) for option in field["anyOf"])
    if "const" in field:
        return f'`"{field["const"]}"`'
    if "enum" in field:
        return ", ".join(f'`"{value}"`' for value in field["enum"])
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}))}"
    return str(field.get("type", "any value"))


def _example_events() -> Iterator[Event]:
    """Yield the events of a short turn with one search and one citation."""
    item = Item(
        citation_id="#ref:k3vd",
        type="kb",
        title="Hooks",
        content="Each turn runs its hooks in a V8 isolate of its own.",
        score=0.82,
        weight=0.6,
        document_id="hooks.md",
        collection="agents.docs.docs",
    )
    cited = Cited(
        marker=item.citation_id,
        verdict="ok",
        title=item.title,
        type=item.type,
        collection=item.collection,
        document_id=item.document_id,
    )
    turn = "t1"
    yield StreamStart(turn_id=turn, at_ms=0, assistant_id="docs", connector="extractive")
    yield SearchStart(
        turn_id=turn,
        at_ms=2,
        search_id="s1",
        source="auto",
        search_type="kb",
        query="What is a hook?",
    )
    yield SearchFound(turn_id=turn, at_ms=14, search_id="s1", item=item)
    yield SearchComplete(turn_id=turn, at_ms=14, search_id="s1", total=1, duration_ms=12)
    yield SourcesGiven(turn_id=turn, at_ms=14, given=1)
    yield Reasoning(turn_id=turn, at_ms=15, delta="The sources say it in one sentence.")
    yield Text(turn_id=turn, at_ms=16, delta="A hook runs in an isolate of its own ")
    yield CitationSeen(turn_id=turn, at_ms=16, marker=item.citation_id, verdict="ok", item=item)
    yield Text(turn_id=turn, at_ms=16, delta=item.citation_id)
    yield StreamEnd(
        turn_id=turn,
        at_ms=17,
        content=f"A hook runs in an isolate of its own {item.citation_id}",
        citations=(cited,),
        finish_reason="stop",
        grounded=True,
    )


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
