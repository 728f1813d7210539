"""The time that a service requires its clients to wait."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.retry_after import LONGEST_S, retry_after_s

ANSWERED = "Sun, 06 Nov 1994 08:49:37 GMT"
LATER = "Sun, 06 Nov 1994 08:50:07 GMT"
NOW = datetime(1994, 11, 6, 8, 50, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"Retry-After": " 2.5 "}, 2.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": LATER, "date": ANSWERED}, 30.0),
        ({"retry-after": ANSWERED, "date": LATER}, 0.0),
        ({"retry-after": "9" * 12}, LONGEST_S),
    ],
)
def test_the_wait_is_seconds_milliseconds_or_a_date(
    headers: dict[str, str], seconds: float
) -> None:
    assert retry_after_s(headers) == seconds


def test_a_date_counts_from_the_date_of_the_answer_else_from_the_clock() -> None:
    assert retry_after_s({"retry-after": LATER}) is None
    assert retry_after_s({"retry-after": LATER}, NOW) == 1.0
    assert retry_after_s({"retry-after": LATER, "date": ANSWERED}, NOW) == 30.0


@pytest.mark.parametrize("value", ["", "soon", "-1", "nan", "inf", "1e3", "٣", "9" * 400, "1 2"])
def test_what_is_neither_a_number_nor_a_date_is_no_wait(value: str) -> None:
    assert retry_after_s({"retry-after": value, "date": ANSWERED}) is None


def test_without_headers_there_is_no_wait() -> None:
    assert retry_after_s({}) is None
    assert retry_after_s(None) is None


@given(st.text(), st.text())
def test_no_header_raises(after: str, date: str) -> None:
    found = retry_after_s({"retry-after": after, "date": date}, NOW)
    assert found is None or 0 <= found <= LONGEST_S
