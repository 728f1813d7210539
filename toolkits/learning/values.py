"""Arguments and answers of `searchResources`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr

from groundhook.core.types.base import Few
from groundhook.core.types.search import Item

LONGEST_INTENT = 4000  # characters that queries are made of; longer intents are cut
LONGEST_TEXT = 500  # characters of a title and an outcome; longer ones are cut
LONGEST_ID = 200  # a longer one is refused: a part of it would be another id


def _trimmed(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


def _cut(value: Any) -> Any:
    return value.strip()[:LONGEST_TEXT] if isinstance(value, str) else value


_Text = Annotated[str, BeforeValidator(_cut)]


class CourseContext(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    course_id: Annotated[str, BeforeValidator(_trimmed)] = Field(
        alias="courseId", max_length=LONGEST_ID, description="The id of the course"
    )
    title: _Text = Field(description="The title of the course")
    outcomes: Few[list[_Text]] = Field(
        max_length=200, description="What students are to learn; may be empty"
    )


class SectionSearchArguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    user_intent: Annotated[str, BeforeValidator(_trimmed)] = Field(
        alias="userIntent",
        min_length=1,
        max_length=32_000,
        description="What the teacher or student is looking for, in any language",
    )
    course_context: CourseContext = Field(alias="courseContext")


class BookSection(BaseModel):
    """A section of a book. `score` is 0-1 and never rises along a list."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    id: str
    title: str
    book_title: str = Field(alias="bookTitle")
    summary: str
    score: float = Field(ge=0, le=1)


class Resources(BaseModel):
    """Sections, best first. `_items` are their sources, `_notes` are sentences for the model that
    the fixed shape has no place for."""

    resources: list[BookSection]
    _items: list[Item] = PrivateAttr(default_factory=list)
    _notes: list[str] = PrivateAttr(default_factory=list)
