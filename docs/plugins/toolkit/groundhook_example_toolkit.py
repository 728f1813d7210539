"""A toolkit over one collection of books. `toolkits/shelf.toolkit.yao`:
`{"type": "shelf", "collection": "books"}`."""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, Field

from groundhook import Item
from groundhook.plugins import (
    CollectionDocument,
    CollectionQuery,
    Needs,
    Plugin,
    PluginContext,
    Plugins,
    SyncSource,
    Tool,
    ToolkitSettings,
    ToolkitSpec,
    ToolScope,
)


class ShelfSettings(ToolkitSettings):
    """The keys of the file: `collection` beside those of every toolkit."""

    collection: str = "books"


class Search(BaseModel):
    query: str = Field(min_length=1, max_length=1000, description="What the book is about")
    limit: int = Field(default=5, ge=1, le=20)


class Book(BaseModel):
    id: str
    title: str
    score: float


class Found(BaseModel):
    books: list[Book]
    total: int


class Add(BaseModel):
    id: str = Field(min_length=1)
    title: str
    text: str = Field(min_length=1)


class Shelf:
    def __init__(self, settings: ShelfSettings) -> None:
        self._collection = settings.collection

    def tools(self) -> Sequence[Tool]:
        return [
            Tool(
                name="findBooks",
                description="Find books by what they are about.",
                arguments=Search,
                answers=Found,
                run=self._find,
                items=self._items,
            ),
            Tool(
                name="addBook",
                description="Add a book to the shelf.",
                arguments=Add,
                run=self._add,
                needs=Needs(identity=("user",)),
                reads_only=False,
            ),
        ]

    def sync(self) -> SyncSource | None:
        return None  # books are added by hand

    async def _find(self, wanted: Search, scope: ToolScope) -> Found:
        await scope.progress(done=0, total=1, message="searching")
        query = CollectionQuery(
            collection=self._collection, text=wanted.query, limit=wanted.limit, threshold=0
        )
        [answer] = await scope.collections.find([query])
        return Found(
            books=[Book(id=one.id, title=one.title, score=one.score) for one in answer.matches],
            total=answer.total,
        )

    def _items(self, found: Found) -> Sequence[Item]:
        return [
            Item(
                type="kb",
                key=f"books:{book.id}",
                title=book.title,
                content=book.title,
                score=book.score,
                collection=self._collection,
                document_id=book.id,
            )
            for book in found.books
        ]

    async def _add(self, book: Add, scope: ToolScope) -> dict[str, Any]:
        document = CollectionDocument(id=book.id, title=book.title, text=book.text)
        report = await scope.collections.put(self._collection, [document])
        return {"added": report.added, "replaced": report.replaced}


def make_shelf(spec: ToolkitSpec, _: PluginContext) -> Shelf:
    return Shelf(spec.read(ShelfSettings))


def register(plugins: Plugins) -> None:
    plugins.toolkits.add("shelf", make_shelf)


plugin = Plugin(register, requires=1)
