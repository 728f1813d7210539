"""Texts that are pumped up to their limits, at a served process whose `/healthz` is read the whole
time. `make test-faults` pumps every text of `bench.stops` in every place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from bench import stops
from bench.stops_endpoints import unknown
from bench.stops_formats import FORMATS
from bench.stops_hooks import undriven
from bench.stops_served import ENGINES, Campaign, campaign
from groundhook.core.types.events import Event
from groundhook.handlers.kb.reading.readers import READERS
from tests.parts.web_asking import PROVIDERS

UNITS = ("```a\n", " ")
ANSWER = 200_000  # characters of an answer, without --full
CALLS = ("json", "html", "markdown", "send", "db")
# Seconds of the server's own computing before /healthz is answered: on a busy machine, whose caches
# are shared; and in the campaign, which has the machine to itself.
LONGEST, LONGEST_ALONE = 1.0, 0.25


@pytest.fixture
def attacked(tmp_path: Path, full: bool) -> Iterator[Campaign]:
    with campaign(tmp_path, stops.written() if full else stops.notes(UNITS)) as made:
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
    if full:
        kinds = {kind.model_fields["type"].default for kind in get_args(get_args(Event)[0])}
        assert kinds - attacked.seen == set()
    assert attacked.client.get("/healthz").status_code == 200


def test_everything_that_a_stranger_reaches_is_in_the_campaign() -> None:
    """Endpoints, host calls and formats of documents: a new one has to be attacked too."""
    assert unknown() == []
    assert undriven() == []
    made = {READERS[f".{ending}"] for ending in FORMATS}
    assert [end for end, read in READERS.items() if read not in made] == []
    assert {*ENGINES, "searxng"} == set(PROVIDERS)
