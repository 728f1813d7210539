"""Reads how long a service requires its clients to wait before the next request. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime

LONGEST_S = 86_400.0  # a service that names more is treated as one that names a day

_NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,15})?")


def retry_after_s(
    headers: Mapping[str, object] | None, now: datetime | None = None
) -> float | None:
    """Return the seconds to wait, 0 to LONGEST_S, or None if the headers of an answer name no time.

    Reads `retry-after-ms` of several model services, else `Retry-After` as seconds or as a date
    (RFC 9110, section 10.2.3). A date counts from the answer's own `Date`, so that the clocks of
    the two machines need not agree, else from `now`. Names of headers may be in any case."""
    found = {name.lower(): str(value).strip() for name, value in (headers or {}).items()}
    after = found.get("retry-after", "")
    milliseconds, seconds = _number(found.get("retry-after-ms", "")), _number(after)
    if milliseconds is not None:
        return min(milliseconds / 1000, LONGEST_S)
    if seconds is None:
        seconds = _seconds_until(after, found.get("date", ""), now)
    return None if seconds is None else min(seconds, LONGEST_S)


def _number(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text) else None


def _seconds_until(date: str, answered: str, now: datetime | None) -> float | None:
    try:
        start = parsedate_to_datetime(answered) if answered else now
        if start is None:
            return None
        return max((parsedate_to_datetime(date) - start).total_seconds(), 0.0)
    # Not a date, or one date with a time zone and one without.
    except (ValueError, TypeError, OverflowError):
        return None
