"""Texts that are pumped up to their limits, at a served process whose `/healthz` is read the whole
time. `make test-faults` pumps every text of `bench.stops` in every place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import stops
from bench.stops import Campaign

UNITS = ("```a\n", " ")
CALLS = ("json", "html", "markdown", "send", "db")
# Seconds of the server's own computing before /healthz is answered: on a busy machine, whose caches
# are shared; and in the campaign, which has the machine to itself.
LONGEST, LONGEST_ALONE = 1.0, 0.25


@pytest.fixture
def campaign(tmp_path: Path, full: bool) -> Iterator[Campaign]:
    with stops.campaign(tmp_path, stops.UNITS if full else UNITS) as made:
        yield made


@pytest.mark.timeout(0)
def test_no_pumped_text_stops_the_server(campaign: Campaign, full: bool) -> None:
    if full:
        stops.documents(campaign)
        stops.attack_all(campaign)
    else:
        stops.documents(campaign, UNITS)
        for unit in UNITS:
            stops.questions(campaign, unit)
            stops.answers(campaign, unit)
            stops.host_calls(campaign, unit, CALLS)
        stops.answers(campaign, "=\n")  # rows of a table, for readers of blocks
    assert len(campaign.stops) > 40
    longest = campaign.longest()[:10]
    most = LONGEST_ALONE if full else LONGEST
    assert min(longest[0].computing, longest[0].waited) < most, longest
    assert campaign.client.get("/healthz").status_code == 200
