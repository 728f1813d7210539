"""The toolkit `documents`: the tool `search_documents`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from groundhook.core.ports import ClientOf, Embedder, WebClient
from groundhook.core.settings import HttpSettings
from groundhook.core.tool_ports import ToolScope
from groundhook.core.types.search import Item
from groundhook.core.types.toolkit_spec import ToolkitSpec
from groundhook.core.types.tools import IdentityPart, Needs, Tool
from groundhook.toolkits.documents.cache import PageCache
from groundhook.toolkits.documents.ranker import prompts_of
from groundhook.toolkits.documents.search import DocumentsFound, search_documents
from groundhook.toolkits.documents.settings import DocumentsSettings, IdentityField
from groundhook.toolkits.documents.summaries import FileClient, SummariesClient
from groundhook.toolkits.documents.xml import results_xml
from groundhook.toolkits.jsonl import lines_of

_PARTS: Mapping[IdentityField, IdentityPart] = {
    "user_id": "user",
    "team_id": "team",
    "tenant_id": "tenant",
}
DEADLINE_MS = 60_000


class _SearchArguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)

    query: str = Field(min_length=1, max_length=4000, description="What the documents are about")


class _Line(BaseModel):
    """A summary in a file, with whatever keys the API has."""

    model_config = ConfigDict(extra="allow")

    id: int | str


class FoundDocument(BaseModel):
    id: int | str
    title: str | None
    relevance_score: float = Field(ge=0, le=1, serialization_alias="relevanceScore")


class FoundDocuments(BaseModel):
    """Documents, best first. `_notices` say which pages are missing, and what was not relevant
    enough if nothing was."""

    model_config = ConfigDict(serialize_by_alias=True)

    query: str
    total_documents: int = Field(serialization_alias="totalDocuments")
    documents: list[FoundDocument]
    _notices: list[str] = PrivateAttr(default_factory=list)
    _items: list[Item] = PrivateAttr(default_factory=list)


class DocumentsToolkit:
    """The tool over the summaries API, or the file, of a toolkit's file. Raises ConfigError and
    UnknownName for its prompts."""

    def __init__(self, spec: ToolkitSpec, client_of: ClientOf, embedder: Embedder) -> None:
        self._spec = spec
        self._settings = spec.read(DocumentsSettings)
        self._prompts = prompts_of(spec, self._settings.ranker)
        self._embedder = embedder
        self._client_of = client_of
        self._client: SummariesClient | None = None
        self._cache = PageCache(self._settings.cache_s)

    def sync(self) -> None:
        """Return None: summaries are read live."""
        return

    def tools(self) -> Sequence[Tool]:
        """Return `search_documents`."""
        identity = self._settings.identity
        parts = {_PARTS[identity.member]: "member", _PARTS[identity.partner]: "partner"}
        return [
            Tool(
                name="search_documents",
                description=(
                    "Find the most relevant documents by AI-analyzing document summaries. Returns"
                    " XML with the id, title and relevance of each."
                ),
                arguments=_SearchArguments,
                answers=FoundDocuments,
                run=self._run,
                needs=Needs(identity=parts),
                items=_list_items,
                text=_text,
                deadline_ms=DEADLINE_MS,
            )
        ]

    async def _run(self, arguments: _SearchArguments, scope: ToolScope) -> FoundDocuments:
        found = await search_documents(
            scope,
            self._settings,
            self._summaries(),
            self._embedder,
            self._cache,
            arguments.query,
            prompts=self._prompts,
        )
        partner = getattr(scope.identity, self._settings.identity.partner)
        return _answer(arguments.query, found, f"{self._spec.id}/{partner}")

    def _summaries(self) -> SummariesClient:
        if self._client is None:
            source = self._settings.source
            self._client = SummariesClient(
                source=source,
                client=self._file() if source.file else self._web(),
                shown=self._spec.shown,
            )
        return self._client

    def _web(self) -> WebClient:
        source = self._settings.source
        host = urlsplit(source.url).netloc.rpartition("@")[2]
        return self._client_of(HttpSettings(hosts=(host,), timeout_ms=source.timeout_ms))

    def _file(self) -> FileClient:
        file = self._settings.source.file
        lines = lines_of(self._spec.folder / file, file, _Line)
        return FileClient([line.model_dump() for line, _ in lines])


def _answer(query: str, found: DocumentsFound, key: str) -> FoundDocuments:
    answer = FoundDocuments(
        query=query,
        total_documents=len(found.documents),
        documents=[
            FoundDocument(
                id=one.candidate.id,
                title=one.candidate.title,
                relevance_score=round(one.score, 4),
            )
            for one in found.documents
        ],
    )
    answer._notices = [*found.notices, *([found.below] if found.below else [])]
    answer._items = [
        Item(
            type="kb",
            key=f"documents:{key}/{one.candidate.key}",
            title=one.candidate.title or one.candidate.key,
            content=one.candidate.preview,
            score=one.score,
            document_id=one.candidate.key,
        )
        for one in found.documents
    ]
    return answer


def _list_items(answer: FoundDocuments) -> list[Item]:
    return answer._items


def _text(answer: FoundDocuments) -> str:
    documents = [(one.id, one.title, one.relevance_score) for one in answer.documents]
    return results_xml(answer.query, documents, answer._notices)
