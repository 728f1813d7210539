"""Parsing of publication dates as search engines and pages write them. Pure.

Supported: ISO 8601, RFC 2822 (`Tue, 04 Nov 2025 12:00:00 GMT`), `Nov 4, 2025`, `4 Nov 2025`, and
ages (`3 days ago`). Other formats and future dates give an unknown date instead of a guess.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime

_DAYS = {
    "second": 0.0,
    "minute": 0.0,
    "min": 0.0,
    "hour": 1 / 24,
    "day": 1.0,
    "week": 7.0,
    "month": 30.0,
    "year": 365.0,
}

_AGE = re.compile(r"(\d{1,4})\s*(second|minute|min|hour|day|week|month|year)s? ago", re.I)
_ISO = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:[T ]|$)")
_WRITTEN = ("%b %d, %Y", "%B %d, %Y", "%d %b %Y", "%d %B %Y", "%b %d %Y")
_SLACK = timedelta(days=1)  # the page's time zone may be ahead of `now`


def parse_date(text: str, now: datetime) -> str:
    """Return the date as YYYY-MM-DD, or "" if it is unknown. Ages count from `now`."""
    day = _parse(" ".join(text.split()), now)
    if day is None or day.replace(tzinfo=None) > now.replace(tzinfo=None) + _SLACK:
        return ""
    return day.date().isoformat()


def _parse(text: str, now: datetime) -> datetime | None:
    if not text:
        return None
    if age := _AGE.fullmatch(text):
        with suppress(OverflowError):
            return now - timedelta(days=int(age[1]) * _DAYS[age[2].lower()])
    if iso := _ISO.match(text):
        with suppress(ValueError):
            return datetime(int(iso[1]), int(iso[2]), int(iso[3]))
    for form in _WRITTEN:
        with suppress(ValueError):
            return datetime.strptime(text.replace("Sept ", "Sep "), form)
    with suppress(ValueError, TypeError):
        return parsedate_to_datetime(text)
    return None
