"""`ctx.search`: searches. A failure at a source is `error` on the result and never throws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import ValidationError

from groundhook.core.errors import UsageError, suggestion
from groundhook.core.hook_services import HookServices
from groundhook.core.types.base import dotted, validate_known, validation_problems
from groundhook.core.types.search import (
    SEARCH_TYPES,
    DBOptions,
    KBOptions,
    SearchRequest,
    SearchResult,
    SearchType,
    WebOptions,
)
from groundhook.hooks.api.row import HostCall, LateAnswer, RunCall, kind_of, pad, quote

_Mode = Literal["all", "any", "race"]
MOST_TOGETHER = 50  # searches of one call: each is a task of the host's

OPTIONS: dict[SearchType, type[WebOptions] | type[KBOptions] | type[DBOptions]] = {
    "web": WebOptions,
    "kb": KBOptions,
    "db": DBOptions,
}


def _search(type: SearchType) -> RunCall:
    async def run(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
        query, options = pad(arguments, 2)
        request = await _make_request(
            call.js, type, query, {} if options is None else options, services
        )
        return (await services.search(request)).model_dump_json()

    return run


async def _read_document(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    collection, document = pad(arguments, 2)
    for name, value in (("collection", collection), ("document", document)):
        if not isinstance(value, str) or not value:
            raise UsageError(
                f"{call.js}: {name} must be text that is not empty, not {quote(value)}"
            )
    request = SearchRequest(
        type="kb", query=f"{collection}/{document}", collections=(collection,), document=document
    )
    return (await services.search(request)).model_dump_json()


def _answer_late_document(arguments: Sequence[Any], message: str) -> str:
    return _error_result("kb", f"{arguments[0]}/{arguments[1]}", message).model_dump_json()


def _answer_late_search(type: SearchType) -> LateAnswer:
    def late(arguments: Sequence[Any], message: str) -> str:
        return _error_result(type, arguments[0], message).model_dump_json()

    return late


def _search_many(mode: _Mode) -> RunCall:
    async def run(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
        (entries,) = pad(arguments, 1)
        if not isinstance(entries, list):
            raise UsageError(
                f"{call.js}: requests must be a list of {{type, query, …}}, not {kind_of(entries)}"
            )
        if len(entries) > MOST_TOGETHER:
            raise UsageError(
                f"{call.js}: at most {MOST_TOGETHER} requests at once, not {len(entries)}"
            )
        requests = [
            await _parse_entry(f"{call.js}: requests[{index}]", entry, services)
            for index, entry in enumerate(entries)
        ]
        results = await services.search_many(requests, mode) if requests else []
        return f"[{','.join(result.model_dump_json() for result in results)}]"

    return run


def _answer_late_together(arguments: Sequence[Any], message: str) -> str:
    results = [
        _error_result(entry["type"], entry["query"], message)
        for entry in arguments[0]
        if _is_request(entry)
    ]
    return f"[{','.join(result.model_dump_json() for result in results)}]"


async def _parse_entry(where: str, entry: Any, services: HookServices) -> SearchRequest:
    if not isinstance(entry, Mapping):
        raise UsageError(f"{where} must be an object with type and query, not {kind_of(entry)}")
    type = entry.get("type")
    if type not in SEARCH_TYPES:
        hint = (
            suggestion(type, SEARCH_TYPES)
            if isinstance(type, str)
            else f"known: {', '.join(SEARCH_TYPES)}"
        )
        raise UsageError(f"{where}.type must be a search type, not {quote(type)} ({hint})")
    options = {key: value for key, value in entry.items() if key not in ("type", "query")}
    return await _make_request(where, type, entry.get("query"), options, services)


async def _make_request(
    where: str, type: SearchType, query: Any, options: Any, services: HookServices
) -> SearchRequest:
    if not isinstance(query, str) or not query.strip():
        raise UsageError(f"{where}: query must be text that is not empty, not {quote(query)}")
    if not isinstance(options, Mapping):
        raise UsageError(f"{where}: options must be an object, not {kind_of(options)}")
    if not options:  # most calls: validating nothing would take as long as the rest
        return SearchRequest(type=type, query=query)
    try:
        known, unknown = validate_known(OPTIONS[type], options)
    except ValidationError as exc:
        path, message = validation_problems(exc)[0]
        raise UsageError(f"{where}: option {dotted(path)}: {message}") from exc
    for key in unknown:
        await services.warn("unknown_option", f"{where}: {key}")
    return SearchRequest(type=type, query=query, **dict(known))


def _is_request(entry: Any) -> bool:
    """Return whether an entry is valid: the deadline may pass before all were checked."""
    return (
        isinstance(entry, Mapping)
        and entry.get("type") in SEARCH_TYPES
        and isinstance(entry.get("query"), str)
    )


def _error_result(type: SearchType, query: str, message: str) -> SearchResult:
    return SearchResult(type=type, query=query, error=message)


FILTER = """
type FilterValue = string | number | boolean;
type FieldFilter = FilterValue | FilterValue[] | null | {
  eq?: FilterValue; in?: FilterValue[]; exists?: boolean; not?: FieldFilter;
  gt?: FilterValue; gte?: FilterValue; lt?: FilterValue; lte?: FilterValue;
};
type Filter = { [field: string]: FieldFilter | Filter | Filter[] };
"""

TOGETHER: tuple[tuple[str, _Mode, str], ...] = (
    ("Parallel", "all", "Run several searches at once; return every result, in order."),
    ("All", "all", "Run several searches at once, as Parallel does."),
    ("Any", "any", "Run several searches at once; return the first result with items, in a list."),
    ("Race", "race", "Run several searches at once; return the first result, in a list."),
)

ROWS: tuple[HostCall, ...] = (
    HostCall(
        js="ctx.search.Web",
        doc="Search the web; a failure is `error` of the result.",
        run=_search("web"),
        ts="(query: string, options?: WebOptions): SearchResult",
        options=WebOptions,
        result=SearchResult,
        again=True,
        answer_late=_answer_late_search("web"),
    ),
    HostCall(
        js="ctx.search.KB",
        doc="Search collections of the knowledge base; a failure is `error` of the result.",
        run=_search("kb"),
        ts="(query: string, options?: KBOptions): SearchResult",
        types=FILTER,
        options=KBOptions,
        result=SearchResult,
        again=True,
        answer_late=_answer_late_search("kb"),
    ),
    HostCall(
        js="ctx.search.DB",
        doc="Query database models in plain words; a failure is `error` of the result.",
        run=_search("db"),
        ts="(query: string, options?: DBOptions): SearchResult",
        options=DBOptions,
        result=SearchResult,
        again=True,
        answer_late=_answer_late_search("db"),
    ),
    *(
        HostCall(
            js=f"ctx.search.{name}",
            doc=doc,
            ts="(requests: SearchRequest[]): SearchResult[]",
            run=_search_many(mode),
            result=list[SearchResult],
            again=True,
            answer_late=_answer_late_together,
        )
        for name, mode, doc in TOGETHER
    ),
    HostCall(
        js="ctx.search.Document",
        doc="Return a whole document of a collection, passage by passage.",
        run=_read_document,
        ts="(collection: CollectionName, document: string): SearchResult",
        result=SearchResult,
        again=True,
        answer_late=_answer_late_document,
    ),
)
