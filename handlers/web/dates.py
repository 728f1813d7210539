"""When a page was published, from what a search engine or the page says of it. Pure.

Read: ISO 8601, RFC 2822 (`Tue, 04 Nov 2025 12:00:00 GMT`), `Nov 4, 2025` and `4 Nov 2025`, and ages
(`3 days ago`). What is written in another way, or lies in the future, is not known rather than
guessed.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime

DAYS = {
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
_SLACK = timedelta(days=1)  # the page's own zone may be ahead


def published(said: str, now: datetime) -> str:
    """YYYY-MM-DD, or "" when it cannot be told."""
    found = _read(" ".join(said.split()), now)
    if found is None or found.replace(tzinfo=None) > now.replace(tzinfo=None) + _SLACK:
        return ""
    return found.date().isoformat()


def _read(said: str, now: datetime) -> datetime | None:
    if not said:
        return None
    if age := _AGE.fullmatch(said):
        with suppress(OverflowError):
            return now - timedelta(days=int(age[1]) * DAYS[age[2].lower()])
    if iso := _ISO.match(said):
        with suppress(ValueError):
            return datetime(int(iso[1]), int(iso[2]), int(iso[3]))
    for form in _WRITTEN:
        with suppress(ValueError):
            return datetime.strptime(said.replace("Sept ", "Sep "), form)
    with suppress(ValueError, TypeError):
        return parsedate_to_datetime(said)
    return None
