"""Answer `searchDatasets` and `searchResources` from the collections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, NamedTuple

from groundhook.core.tool_ports import Collections, ToolScope
from groundhook.core.types.collection_queries import (
    CollectionAnswer,
    CollectionMatch,
    CollectionQuery,
)
from groundhook.core.types.sync import SyncStatus
from groundhook.toolkits.catalogue.answers import (
    MOST_RESULTS,
    Count,
    Dataset,
    DatasetArguments,
    DatasetResource,
    DatasetsFound,
    Refinements,
    ResourceArguments,
    ResourcesFound,
)
from groundhook.toolkits.catalogue.freshness import is_overdue
from groundhook.toolkits.catalogue.names import format_keys, formats_in, key, nearest
from groundhook.toolkits.catalogue.settings import CatalogueSettings

LONGEST_DESCRIPTION = 600  # characters of a description in an answer
# Of the 54 questions of bench/toolkits, 4 have a first result below this score: it is right for one
# of them, and two more have the right dataset among the first five, in another language. The first
# result of all 60 questions of nonsense words is below it.
CLEAR = 0.45
NOT_CLEAR = (
    "Nothing is very similar to the query: the first results may be near matches only, or in"
    " another language."
)
LIFT = 0.2  # of the score of a resource whose format the question names
WINDOW = 50  # results among which such resources are lifted
_LAST_WINDOW = 1000  # offset after which no page begins
_REFINED = 1000  # results that are counted for refinements
_MOST_COUNTS = 20
_NEAR = 100  # documents whose names are compared with an unknown one
_DATASET_FACETS = ("organization", "tags", "formats")


class _Name(NamedTuple):
    """A name by which a search is filtered, and the field whose values are compared with its keys:
    one of them is enough."""

    noun: str
    value: str
    field: str
    keys: Sequence[str]

    @property
    def condition(self) -> dict[str, Any]:
        return {self.field: self.keys[0] if len(self.keys) == 1 else list(self.keys)}


class CatalogueSearch:
    """The searches of one catalogue. `toolkit` is its name in messages."""

    def __init__(
        self,
        settings: CatalogueSettings,
        toolkit: str,
        synced: Callable[[], Awaitable[SyncStatus]],
    ) -> None:
        self._settings = settings
        self._toolkit = toolkit
        self._synced = synced

    async def datasets(self, given: DatasetArguments, scope: ToolScope) -> DatasetsFound:
        """Search datasets. Raises ValueError without a query and a filter."""
        names = _names_of_datasets(given)
        query = self._dataset_query(given, names)
        queries = [query]
        if given.refine and given.query:
            queries.append(replace(query, limit=_REFINED, offset=0))
        answer, *wider = await scope.collections.find(queries)
        status = await self._synced()
        if not answer.filled:
            return DatasetsFound(
                success=False, datasets=[], total=0, message=self._unsynced("datasets", status)
            )
        message = _caution(query, answer)
        if not answer.total:
            message = await self._why_nothing(scope.collections, query, names, answer)
        now = scope.now()
        return DatasetsFound(
            success=True,
            datasets=[_dataset(match, now) for match in answer.matches],
            total=answer.total,
            totalIs=answer.total_is,
            asOf=status.succeeded_at,
            message=message,
            refinements=_refinements(answer, wider) if given.refine else None,
        )

    def _dataset_query(self, given: DatasetArguments, names: Sequence[_Name]) -> CollectionQuery:
        """Return the query for a page. Raises ValueError without a query and a filter."""
        conditions = [name.condition for name in names]
        _refuse_nothing(given.query, conditions, "organization, tag or tags")
        return CollectionQuery(
            collection=self._settings.collections.datasets,
            text=given.query or "",
            filter={"and": conditions} if conditions else None,
            limit=given.limit or self._settings.limit,
            offset=given.offset,
            facets=_DATASET_FACETS if given.refine and not given.query else (),
            order_by="-modified",
        )

    async def resources(self, given: ResourceArguments, scope: ToolScope) -> ResourcesFound:
        """Search resources. Raises ValueError without a query and a filter."""
        names = _names_of_resources(given)
        conditions = [name.condition for name in names]
        _refuse_nothing(given.query, conditions, "datasetId or format")
        query = CollectionQuery(
            collection=self._settings.collections.resources,
            text=given.query or "",
            filter={"and": conditions} if conditions else None,
            limit=given.limit or self._settings.limit,
            offset=given.offset,
            order_by="title",
        )
        wanted, text = formats_in(given.query or "")
        answer = await (
            _lifted(scope.collections, replace(query, text=text), wanted)
            if wanted
            else _first(scope.collections.find([query]))
        )
        status = await self._synced()
        if not answer.filled:
            return ResourcesFound(
                success=False, resources=[], total=0, message=self._unsynced("resources", status)
            )
        message = _caution(query, answer)
        if not answer.total:
            message = await self._why_nothing(scope.collections, query, names, answer)
        return ResourcesFound(
            success=True,
            resources=[_resource(match) for match in answer.matches],
            total=answer.total,
            totalIs=answer.total_is,
            asOf=status.succeeded_at,
            message=message,
        )

    def _unsynced(self, noun: str, status: SyncStatus) -> str:
        last = status.succeeded_at or "never"
        found = f"; it found no {noun}" if status.succeeded_at else ""
        return (
            f"No {noun} are indexed yet: a sync is required (groundhook tools sync"
            f" {self._toolkit}). Last sync: {last}{found}"
        )

    async def _why_nothing(
        self,
        collections: Collections,
        query: CollectionQuery,
        names: Sequence[_Name],
        answer: CollectionAnswer,
    ) -> str:
        """Return why nothing was found: an unknown name with the nearest known one, or the number
        of results below the threshold."""
        for name in names:
            if not await collections.count(query.collection, filter=name.condition):
                near = await self._nearest(collections, query, name.field, name.keys[0])
                return f"There is no {name.noun} {name.value!r}{near}."
        if answer.below:
            return f"Nothing is similar enough to the query; {answer.below} results were less so."
        return "Nothing fulfils all of the filters." if query.filter else ""

    async def _nearest(
        self, collections: Collections, query: CollectionQuery, field: str, wanted: str
    ) -> str:
        """Return the nearest name of a field, as the end of a sentence; "" if none is near. Names
        are those of the nearest documents, and the most frequent ones where the field has few."""
        [found] = await collections.find(
            [
                CollectionQuery(
                    collection=query.collection,
                    text=wanted,
                    limit=_NEAR,
                    threshold=0,
                    facets=() if field == "dataset_keys" else (field,),
                )
            ]
        )
        known = {str(each.value) for each in found.facets.get(field, ())}
        known.update(name for match in found.matches for name in _texts(match, field))
        near = nearest(wanted, known)
        return f" (did you mean {near!r}?)" if near else ""


def _caution(query: CollectionQuery, answer: CollectionAnswer) -> str:
    """Return a sentence if the first of all results is little similar to the query; "" if not."""
    is_first_page = answer.matches and not query.offset
    return NOT_CLEAR if is_first_page and answer.matches[0].score < CLEAR else ""


def _names_of_datasets(given: DatasetArguments) -> list[_Name]:
    names = []
    if given.organization:
        wanted = [key(given.organization)]
        names.append(_Name("organization", given.organization, "organization_keys", wanted))
    tags = [given.tag, *given.tags] if given.tag else given.tags
    return [*names, *(_Name("tag", tag, "tag_keys", [key(tag)]) for tag in tags)]


def _names_of_resources(given: ResourceArguments) -> list[_Name]:
    names = []
    if given.datasetId:
        names.append(_Name("dataset", given.datasetId, "dataset_keys", [key(given.datasetId)]))
    if given.format:
        names.append(_Name("format", given.format, "format_keys", format_keys(given.format)))
    return names


async def _first(found: Awaitable[list[CollectionAnswer]]) -> CollectionAnswer:
    return (await found)[0]


async def _lifted(
    collections: Collections, query: CollectionQuery, wanted: set[str]
) -> CollectionAnswer:
    """Answer a question that names formats: within each window of results, resources of those
    formats move up. The windows are the same for every page, so that pages together are the
    whole."""
    first = min(query.offset, _LAST_WINDOW) // WINDOW
    last = min(query.offset + query.limit - 1, _LAST_WINDOW) // WINDOW
    answers = await collections.find(
        [
            replace(query, limit=_size_of_window(number), offset=number * WINDOW)
            for number in range(first, last + 1)
        ]
    )
    matches: list[CollectionMatch] = []
    for answer in answers:
        matches += _lift(answer.matches, wanted)
    begin = query.offset - first * WINDOW
    page = matches[begin : begin + query.limit]
    falling = accumulate((match.score for match in page), min)
    return replace(
        answers[0],
        matches=tuple(
            replace(match, score=score) for match, score in zip(page, falling, strict=True)
        ),
    )


def _size_of_window(number: int) -> int:
    """Return the size of a window: the last one has the rest of the largest page."""
    return MOST_RESULTS if number * WINDOW == _LAST_WINDOW else WINDOW


def _lift(matches: Sequence[CollectionMatch], wanted: set[str]) -> list[CollectionMatch]:
    """Return a window of results in the order of their lifted scores, which fall along it."""
    scored = [
        (min(1.0, match.score + LIFT) if wanted & _keys(match) else match.score, match)
        for match in matches
    ]
    scored.sort(key=lambda pair: -pair[0])
    return [replace(match, score=score) for score, match in scored]


def _keys(match: CollectionMatch) -> set[str]:
    return set(_texts(match, "format_keys"))


def _refuse_nothing(query: str | None, conditions: Sequence[object], filters: str) -> None:
    if not query and not conditions:
        raise ValueError(f"wrong arguments: give a query or a filter ({filters})")


def _dataset(match: CollectionMatch, now: Any) -> Dataset:
    modified, frequency = _text(match, "modified"), _text(match, "frequency")
    found = Dataset(
        id=match.id,
        title=_text(match, "dataset_title") or match.title,
        description=_shortened(_text(match, "description")),
        organization=_text(match, "organization"),
        organizationTitle=_text(match, "organization_title"),
        tags=_texts(match, "tags"),
        score=match.score,
        url=match.url,
        modified=modified,
        formats=_texts(match, "formats"),
        frequency=frequency,
        overdue=is_overdue(modified, frequency, now),
    )
    found._key = match.collection
    return found


def _resource(match: CollectionMatch) -> DatasetResource:
    found = DatasetResource(
        id=match.id,
        name=_text(match, "name") or match.title,
        url=_text(match, "address"),
        format=_text(match, "format"),
        description=_shortened(_text(match, "description")),
        datasetId=_text(match, "dataset_id"),
        datasetTitle=_text(match, "dataset_title"),
        columns=_texts(match, "columns"),
        score=match.score,
    )
    found._key = match.collection
    return found


def _text(match: CollectionMatch, field: str) -> str:
    value = match.fields.get(field, "")
    return value if isinstance(value, str) else ""


def _texts(match: CollectionMatch, field: str) -> list[str]:
    value = match.fields.get(field, [])
    return [str(each) for each in value] if isinstance(value, list) else [str(value)]


def _shortened(text: str) -> str:
    if len(text) <= LONGEST_DESCRIPTION:
        return text
    return f"{text[: LONGEST_DESCRIPTION - 1].rstrip()}…"


def _refinements(answer: CollectionAnswer, wider: Sequence[CollectionAnswer]) -> Refinements:
    """Return counts over all results: the facets of a listing, or of what a question found."""

    def counts(field: str) -> list[Count]:
        if not wider:
            return [
                Count(value=str(each.value), count=each.count)
                for each in answer.facets.get(field, ())[:_MOST_COUNTS]
            ]
        return _counted(value for match in wider[0].matches for value in _texts(match, field))

    return Refinements(
        organizations=counts("organization"), tags=counts("tags"), formats=counts("formats")
    )


def _counted(values: Iterable[str]) -> list[Count]:
    counter = Counter(value for value in values if value)
    ordered = sorted(counter.items(), key=lambda pair: (-pair[1], pair[0]))
    return [Count(value=value, count=count) for value, count in ordered[:_MOST_COUNTS]]
