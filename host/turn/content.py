"""Data parts of a user's message, which name sources to search.

The question is the text of the last user message; each source derives its own query from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from groundhook.core.errors import UsageError
from groundhook.core.types.base import dotted, validate_known, validation_problems
from groundhook.core.types.query_language import OF_TABLE
from groundhook.core.types.search import SearchRequest
from groundhook.core.types.turn import DataSource, Message

MOST_SOURCES = 20  # of one message: each is a search of its own


@dataclass(frozen=True)
class DocumentReference:
    """A whole document of a collection."""

    collection: str
    document_id: str


@dataclass(frozen=True)
class ResourceReference:
    """A resource of an MCP server. `server` is empty when only the address was given."""

    server: str
    uri: str


@dataclass(frozen=True)
class ApiReference:
    """An API, to be requested with the question."""

    name: str
    question: str


@dataclass(frozen=True)
class UserData:
    """The sources of a message, as searches, documents, resources and APIs, and the problems with
    the others."""

    searches: tuple[SearchRequest, ...] = ()
    documents: tuple[DocumentReference, ...] = ()
    resources: tuple[ResourceReference, ...] = ()
    apis: tuple[ApiReference, ...] = ()
    problems: tuple[UsageError, ...] = ()


def question_of(messages: Sequence[Message]) -> str:
    """Return the text of the last user message; "" without a user message."""
    return next(
        (message.text.strip() for message in reversed(messages) if message.role == "user"), ""
    )


def user_data(messages: Sequence[Message], question: str) -> UserData:
    """Return the sources in the data parts of the last user message, searched for `question`."""
    last = next((message for message in reversed(messages) if message.role == "user"), None)
    searches: list[SearchRequest] = []
    documents: list[DocumentReference] = []
    resources: list[ResourceReference] = []
    apis: list[ApiReference] = []
    sources, wrong = _read_sources(last) if last is not None else ([], [])
    for source in sources:
        try:
            reference = _parse_reference(source, question)
        except UsageError as exc:
            wrong.append(exc)
            continue
        match reference:
            case DocumentReference():
                documents.append(reference)
            case ResourceReference():
                resources.append(reference)
            case ApiReference():
                apis.append(reference)
            case SearchRequest():
                searches.append(reference)
    return UserData(tuple(searches), tuple(documents), tuple(resources), tuple(apis), tuple(wrong))


def _read_sources(message: Message) -> tuple[list[DataSource], list[UsageError]]:
    """Return the valid sources of a message, and the problems with the others."""
    listed, wrong = _list_entries(message)
    sources: list[DataSource] = []
    for index, raw in listed[:MOST_SOURCES]:
        try:
            source, unknown = validate_known(DataSource, raw if isinstance(raw, dict) else {})
        except ValidationError as exc:
            path, problem = validation_problems(exc)[0]
            wrong.append(UsageError(f"{dotted(('data', 'sources', index, *path))}: {problem}"))
            continue
        wrong += [UsageError(f"data.sources[{index}]: {key}") for key in unknown]
        sources.append(source)
    if len(listed) > MOST_SOURCES:
        wrong.append(
            UsageError(
                f"the message refers to {len(listed)} sources, and the first {MOST_SOURCES} are"
                " searched",
                hint="name a collection or a model instead of its parts",
            )
        )
    return sources, wrong


def _list_entries(message: Message) -> tuple[list[tuple[int, object]], list[UsageError]]:
    """Return the entries of all data parts, each with its index in its part."""
    listed: list[tuple[int, object]] = []
    malformed = False
    for part in message.content if isinstance(message.content, list) else ():
        if part.get("type") != "data":
            continue
        data = part.get("data")
        entries = data.get("sources") if isinstance(data, dict) else None
        if isinstance(entries, list):
            listed += enumerate(entries)
        else:
            malformed = True
    return listed, (
        [UsageError("a data part must hold data.sources, a list of {type, name}")]
        if malformed
        else []
    )


def _parse_reference(
    source: DataSource, question: str
) -> SearchRequest | DocumentReference | ResourceReference | ApiReference:
    if source.type == "mcp_resource":
        return _parse_resource(source.name)
    if source.type == "kb_document":
        collection, slash, document = source.name.partition("/")
        if not slash or not document:
            raise UsageError(f"the kb_document {source.name!r} must be named collection/document")
        return DocumentReference(collection, document)
    if not question:
        raise UsageError(
            f"the message refers to {source.name!r} without a question", hint="add a text part"
        )
    if source.type == "api":
        return ApiReference(source.name, question)
    if source.type == "table":
        return SearchRequest(type="db", query=question, models=(f"{OF_TABLE}{source.name}",))
    if source.type == "model":
        return SearchRequest(type="db", query=question, models=(source.name,))
    return SearchRequest(type="kb", query=question, collections=(source.name,))


def _parse_resource(name: str) -> ResourceReference:
    """Parse `orders/memo://today`, or `memo://today` where the assistant lists one server."""
    server, slash, uri = name.partition("/")
    if ":" in server or not slash:
        server, uri = "", name
    if ":" not in uri and not server:
        raise UsageError(
            f"the mcp_resource {name!r} must be named server/uri, such as 'orders/memo://today'"
        )
    if not uri:
        raise UsageError(
            f"the mcp_resource {name!r} names no resource",
            hint="name it server/uri, such as 'orders/memo://today'",
        )
    return ResourceReference(server, uri)
