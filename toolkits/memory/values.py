"""Arguments and answers of the memory tools. Ids are whole numbers; a shelf is the name of a
collection."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    RootModel,
    model_validator,
)

from groundhook.core.types.base import HAS_TEXT, Few

LARGEST_ID = 2**53 - 1  # larger whole numbers are not exact in JSON
LONGEST_CONVERSATION = 200  # characters of its name
MOST_REFS = 1000
REF_FORMS = '[1, "backend"] or {"doc_id": 1, "collection": "backend"}'


def _whole(value: Any) -> Any:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("should be a whole number")
    return value


def _reference(value: Any) -> Any:
    """Accept a pair and an object; refuse other forms with the right ones, instead of guessing."""
    if isinstance(value, dict | BaseModel):
        return value
    if isinstance(value, list | tuple) and len(value) == 2 and isinstance(value[1], str):
        return {"doc_id": value[0], "collection": value[1]}
    raise ValueError(f"should be {REF_FORMS}")


DocId = Annotated[int, BeforeValidator(_whole), Field(ge=0, le=LARGEST_ID)]
_Collection = Annotated[str, Field(min_length=1, max_length=128)]


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=False)


class MemorySearchArguments(Arguments):
    query: str = Field(min_length=1, max_length=32_000, pattern=r"\S", description="What to find")
    collection: _Collection = Field(description="The collection to search")
    limit: int | None = Field(default=None, ge=1, le=1000, description="The most previews")
    threshold: float | None = Field(default=None, ge=0, le=1, description="The least score")
    as_of: datetime | None = Field(
        default=None, description="Only memories that were written up to this time"
    )


class MemoryFetchArguments(Arguments):
    doc_id: DocId = Field(description="The id of a preview")
    collection: _Collection
    links: bool = Field(
        default=False,
        description="Also previews of the memories that this one names or is named by",
    )


class Reference(Arguments):
    doc_id: DocId
    collection: _Collection


class MemoryBatchArguments(Arguments):
    doc_refs: Few[list[Annotated[Reference, BeforeValidator(_reference)]]] = Field(
        max_length=MOST_REFS, description=f"The memories, each as {REF_FORMS}"
    )
    most_tokens: int | None = Field(
        default=None,
        ge=1,
        description="Tokens of all contents together; what exceeds them comes without content",
    )


class RememberArguments(Arguments):
    collection: _Collection
    title: str = Field(min_length=1, max_length=300, pattern=r"\S")
    content: str = Field(min_length=1, max_length=200_000, pattern=HAS_TEXT)
    preview: str = Field(
        default="", max_length=2000, description="Two or three sentences; made if it is empty"
    )
    tags: Few[list[Annotated[str, Field(min_length=1, max_length=100)]]] = Field(
        default=[], max_length=50
    )
    supersedes: Few[list[DocId]] = Field(
        default=[], max_length=50, description="Ids of memories that this one replaces"
    )
    conversation: str = Field(
        default="",
        max_length=LONGEST_CONVERSATION,
        description="The conversation that this is a turn of, with `turn`",
    )
    turn: DocId | None = Field(default=None, description="The place of the turn, counted up")

    @model_validator(mode="after")
    def _check_turn(self) -> Self:
        if bool(self.conversation) != (self.turn is not None):
            raise ValueError("a turn needs both `conversation` and `turn`")
        return self


class ForgetArguments(Arguments):
    doc_id: DocId = Field(description="The id of the memory to remove")
    collection: _Collection


class Preview(BaseModel):
    id: int
    title: str
    preview: str
    score: float = Field(ge=0, le=1)


class Previews(RootModel[list[Preview]]):
    """Previews, best first. `_notes` are sentences for the model that the list has no place for,
    `_collection` is the collection as the arguments named it."""

    _notes: list[str] = PrivateAttr(default_factory=list)
    _collection: str = PrivateAttr(default="")


class LinkedMemory(BaseModel):
    id: int
    collection: str
    title: str
    preview: str


class MemoryRecord(BaseModel):
    """A whole memory; `content` is exactly what was stored. `tags` is empty where the collection
    does not declare the field."""

    id: int
    title: str
    preview: str
    content: str
    tags: list[str]
    _collection: str = PrivateAttr(default="")


class MemoryWithLinks(MemoryRecord):
    names: list[LinkedMemory]
    named_by: list[LinkedMemory]


class ShelvedMemory(BaseModel):
    """A whole memory with the collection that it comes from."""

    id: int
    collection: str
    title: str
    preview: str
    content: str
    tags: list[str]


class Memories(RootModel[list[ShelvedMemory]]):
    """Memories in the order of the references."""

    _notes: list[str] = PrivateAttr(default_factory=list)


class Remembered(BaseModel):
    """A memory that was stored. `made` says whether the preview was made of the content."""

    id: int
    collection: str
    preview: str
    made: bool


class Left(BaseModel):
    """The number of times that a removed memory is still found: by its id, in a listing of the
    collection, and among the candidates of a search."""

    by_id: int
    by_listing: int
    by_search: int


class Forgotten(BaseModel):
    """A memory that was removed, and the proof: `left` is 0 everywhere."""

    id: int
    collection: str
    left: Left
    _notes: list[str] = PrivateAttr(default_factory=list)
