"""Texts that are pumped up to their limits, at a served process whose `/healthz` is read the whole
time. `make test-faults` pumps every text of `bench.stops` in every place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import stops
from bench.stops_served import Campaign, campaign

UNITS = ("```a\n", " ")
ANSWER = 200_000  # characters of an answer, without --full
CALLS = ("json", "html", "markdown", "send", "db")
# Seconds of the server's own computing before /healthz is answered: on a busy machine, whose caches
# are shared; and in the campaign, which has the machine to itself.
LONGEST, LONGEST_ALONE = 1.0, 0.25


@pytest.fixture
def attacked(tmp_path: Path, full: bool) -> Iterator[Campaign]:
    with campaign(tmp_path, stops.notes(stops.UNITS if full else UNITS)) as made:
        yield made


@pytest.mark.timeout(0)
def test_no_pumped_text_stops_the_server(attacked: Campaign, full: bool) -> None:
    if full:
        stops.attack_all(attacked)
    else:
        fence, blank = UNITS
        stops.documents(attacked, UNITS)
        stops.questions(attacked, blank)
        stops.answers(attacked, fence, ANSWER)
        stops.host_calls(attacked, fence, CALLS)
        stops.services(attacked, fence)
        stops.blocks(attacked, "=\n", ANSWER)  # rows of a table
    assert len(attacked.stops) > 40
    longest = attacked.longest()[:10]
    most = LONGEST_ALONE if full else LONGEST
    assert min(longest[0].computing, longest[0].waited) < most, longest
    assert attacked.client.get("/healthz").status_code == 200
