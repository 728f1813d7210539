"""Computes how often a dataset should be updated, and whether it is overdue. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from groundhook.core.unseen import clean
from groundhook.toolkits.catalogue.names import entries, key

GRACE = 1.5  # of the period: "monthly" may be six weeks

_DAYS: dict[int, tuple[str, ...]] = {
    1: ("daily", "day", "continuous", "cont", "hourly", "real time", "יומי", "יומית", "يومي"),
    7: ("weekly", "week", "שבועי", "שבועית", "أسبوعي", "اسبوعي"),
    14: ("biweekly", "fortnightly", "דו שבועי", "דו-שבועי"),
    31: ("monthly", "month", "חודשי", "חודשית", "شهري"),
    62: ("bimonthly", "דו חודשי", "דו-חודשי"),
    92: ("quarterly", "quarter", "רבעוני", "רבעונית", "ربع سنوي", "فصلي"),
    183: (
        "biannual",
        "semiannual",
        "semi-annual",
        "half yearly",
        "annual_2",
        "חצי שנתי",
        "نصف سنوي",
    ),
    366: ("annual", "annually", "yearly", "year", "שנתי", "שנתית", "سنوي"),
    731: ("biennial", "every two years", "דו שנתי", "דו-שנתי"),
}
_WORDS = {word: days for days, words in _DAYS.items() for word in words}
_PERIOD = re.compile(
    r"(?:r/)?p(?:(\d{1,4})y)?(?:(\d{1,4})m)?(?:(\d{1,4})w)?(?:(\d{1,4})d)?(?:t.*)?"
)
_NAMES = ("frequency", "update_frequency", "accrual_periodicity", "accrualperiodicity")


def frequency_of(package: Mapping[str, Any]) -> str:
    """Return how often a package's publisher promises to update it, in the publisher's words."""
    extras = {
        str(extra.get("key") or "").lower().replace("-", "_"): extra.get("value")
        for extra in entries(package, "extras")
    }
    for name in _NAMES:
        if value := clean(str(package.get(name) or extras.get(name) or "")).strip():
            return value
    return ""


def days_of(frequency: str) -> int | None:
    """Return the days between two updates; None where the words do not say it."""
    word = key(frequency).rpartition("/")[2] if "://" in frequency else key(frequency)
    if word in _WORDS:
        return _WORDS[word]
    match = _PERIOD.fullmatch(key(frequency))
    if match and any(match.groups()):
        years, months, weeks, days = (int(part or 0) for part in match.groups())
        return years * 366 + months * 31 + weeks * 7 + days
    return None


def is_overdue(modified: str, frequency: str, now: datetime) -> bool | None:
    """Return whether a dataset should have been updated since; None if that is not known."""
    days = days_of(frequency)
    try:
        moment = datetime.fromisoformat(modified)
    except ValueError:
        return None
    if days is None:
        return None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return now - moment > timedelta(days=GRACE * days)
