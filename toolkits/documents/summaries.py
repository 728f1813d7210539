"""The client of the summaries API: `GET /protected/members/{member}/summaries`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote, unquote, urlsplit

import anyio
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictInt,
    StrictStr,
    ValidationError,
    model_validator,
)

from groundhook.core.errors import (
    SourceError,
    SourceMalformed,
    SourceRateLimited,
    SourceRefused,
    SourceTimeout,
)
from groundhook.core.json_text import NotJson, read_json
from groundhook.core.ports import WebClient
from groundhook.core.retry_after import retry_after_s
from groundhook.core.types.web import WebAnswer
from groundhook.toolkits.documents.previews import beginning, plain
from groundhook.toolkits.documents.settings import DocumentsSource

TRIES = 2
PAUSE_S, LONGEST_PAUSE_S = 0.2, 10.0  # before the second try: usual, and if the API names a time
EXACT = 2**53  # larger numbers are kept as text, because JSON clients cannot hold them
_TITLES = ("title", "summaryTitle", "fileName")
_CONTENTS = ("parseContentSlice", "parseContent", "content")
_TEMPORARY = (429, 500, 502, 503, 504)


def _exact(id: Any) -> Any:
    return str(id) if isinstance(id, int) and not isinstance(id, bool) and abs(id) > EXACT else id


def _number(value: Any) -> int | None:
    """A page is worth as much without its number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


class Summary(BaseModel):
    """One summary as the API gives it. Keys beside these are allowed."""

    model_config = ConfigDict(extra="allow", frozen=True)

    id: Annotated[StrictInt | StrictStr, BeforeValidator(_exact)]

    @property
    def title(self) -> str | None:
        """The first title that is not blank: title, summaryTitle, fileName."""
        return self._first(_TITLES)

    def preview(self, most: int) -> str:
        """The first `most` characters of the content, without control characters."""
        return beginning(plain(self._first(_CONTENTS) or ""), most)

    def _first(self, names: Sequence[str]) -> str | None:
        extra = self.__pydantic_extra__ or {}
        texts = (extra.get(name) for name in names)
        return next(
            (text.strip() for text in texts if isinstance(text, str) and text.strip()), None
        )


class SummaryPage(BaseModel):
    """One page of summaries. `current_page` is the page that the API says this is (None: it says
    nothing usable); which pages are requested does not depend on it. `unusable` is the number of
    summaries that were omitted because they have no id."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)

    summaries: list[Summary]
    total_pages: int = Field(alias="totalPages", ge=0)
    total_records: int = Field(alias="totalRecords", ge=0)
    current_page: Annotated[int | None, BeforeValidator(_number)] = Field(
        default=None, alias="currentPage"
    )
    unusable: int = 0

    @model_validator(mode="before")
    @classmethod
    def _leave_out(cls, raw: Any) -> Any:
        """A summary without an id does not spoil its page; a page of nothing else has another
        shape."""
        every = raw.get("summaries") if isinstance(raw, dict) else None
        usable = [each for each in every if _has_id(each)] if isinstance(every, list) else []
        if not usable or not isinstance(every, list):
            return raw
        return {**raw, "summaries": usable, "unusable": len(every) - len(usable)}


def _has_id(summary: Any) -> bool:
    id = summary.get("id") if isinstance(summary, dict) else None
    return bool(id.strip()) if isinstance(id, str) else type(id) is int


@dataclass(frozen=True, kw_only=True)
class SummariesClient:
    """The API as its toolkit's file names it. `shown` is that file in messages."""

    source: DocumentsSource
    client: WebClient
    shown: str

    async def page(
        self,
        member: str,
        *,
        partner: str = "",
        collection: str = "",
        summary: str = "",
        index: int = 1,
        size: int = 50,
    ) -> SummaryPage:
        """Return a page of a member's summaries; a temporary failure is retried once. `index` is 1
        and higher, `size` 1-100, `partner` is required without `summary`. Raises ValueError for
        invalid arguments before anything is requested, and SourceError."""
        if not member or member in (".", "..") or not (partner or summary):
            raise ValueError("a member, and a partner or a summary, are needed")
        if index < 1 or not 1 <= size <= 100:
            raise ValueError(f"pages begin with 1 and have 1 to 100 summaries, not {index}, {size}")
        query = {
            "partnerCode": partner,
            "collectionId": collection,
            "summaryId": summary,
            "pageIndex": str(index),
            "pageSize": str(size),
        }
        path = f"/protected/members/{quote(member, safe='')}/summaries"
        return self._parsed(await self._request(path, {k: v for k, v in query.items() if v}))

    async def _request(self, path: str, query: Mapping[str, str]) -> WebAnswer:
        for tried in range(1, TRIES + 1):
            try:
                answer = await self.client.request(
                    "GET",
                    self.source.url.rstrip("/") + path,
                    headers={"accept": "application/json", **self.source.headers},
                    query=query,
                )
            except SourceTimeout:
                if tried == TRIES:
                    raise
                continue
            if answer.status not in _TEMPORARY or tried == TRIES:
                return answer
            await anyio.sleep(_pause(answer))
        raise AssertionError("unreachable")

    def _parsed(self, answer: WebAnswer) -> SummaryPage:
        if answer.status in (401, 403):
            raise SourceRefused(
                f"the summaries API refused the key ({answer.status})",
                hint=f"set source.headers in {self.shown}",
            )
        if answer.status == 429:
            raise SourceRateLimited("the summaries API accepts no more requests for now (429)")
        if answer.status >= 400:
            raise SourceError(f"the summaries API answered with the status {answer.status}")
        try:
            raw = read_json(answer.text, nan=True)
        except NotJson:
            kind = "HTML" if answer.text.lstrip()[:1] == "<" else "no JSON"
            raise SourceMalformed(f"the summaries API answered with {kind}") from None
        try:
            return SummaryPage.model_validate(raw)
        except ValidationError as exc:
            first = exc.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise SourceMalformed(
                f"the summaries API answered in another shape: {where}: {first['msg']}"
            ) from exc


class FileClient:
    """A summaries API over a JSON Lines file, in this process. A line may name its `memberCode`,
    `partnerCode` and `collectionId`; without one it belongs to every request."""

    def __init__(self, lines: Sequence[Mapping[str, Any]]) -> None:
        self._lines = lines

    async def request(
        self,
        _: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        body: str | bytes | None = None,
        json: Any = None,
    ) -> WebAnswer:
        """Answer as the API does."""
        wanted = {**(query or {}), "memberCode": unquote(urlsplit(url).path.split("/")[-2])}
        found = [line for line in self._lines if _belongs(line, wanted)]
        size, index = int(wanted.get("pageSize", 10)), int(wanted.get("pageIndex", 1))
        page = {
            "summaries": found[(index - 1) * size : index * size],
            "totalPages": math.ceil(len(found) / size),
            "totalRecords": len(found),
            "currentPage": index,
        }
        return WebAnswer(
            url=url, status=200, headers={"content-type": "application/json"}, body=_dumped(page)
        )


def _belongs(line: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    for name in ("memberCode", "partnerCode", "collectionId"):
        if line.get(name) and wanted.get(name) and str(line[name]) != str(wanted[name]):
            return False
    return not wanted.get("summaryId") or str(line.get("id")) == str(wanted["summaryId"])


def _dumped(page: Mapping[str, Any]) -> bytes:
    return json.dumps(page, ensure_ascii=False).encode()


def _pause(answer: WebAnswer) -> float:
    after = retry_after_s(answer.headers)
    return min(PAUSE_S if after is None else after, LONGEST_PAUSE_S)
