"""Metrics of a server process for Prometheus. The one module that uses its client.

No user, chat or question is in a label; routes are templates. Several processes behind one address
have figures of their own each.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.core import Metric, SummaryMetricFamily
from prometheus_client.registry import Collector
from starlette.responses import Response

from groundhook.core.types.events import SearchComplete, SearchStart, StreamEnd, Text
from groundhook.host.chats.storage.sql import Times
from groundhook.host.server.turns.running import ServerTurn, failure

SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class Metrics:
    """Counts requests, turns, searches and tokens."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "groundhook_requests",
            "Requests",
            ["route", "method", "status"],
            registry=self._registry,
        )
        self._turns = Counter(
            "groundhook_turns",
            "Turns by how they end",
            ["assistant", "end"],
            registry=self._registry,
        )
        self._turn_seconds = Histogram(
            "groundhook_turn_seconds",
            "Time of turns",
            ["assistant"],
            buckets=SECONDS,
            registry=self._registry,
        )
        self._first_text = Histogram(
            "groundhook_first_text_seconds",
            "Time to text",
            ["assistant"],
            buckets=SECONDS,
            registry=self._registry,
        )
        self._searches = Counter(
            "groundhook_searches", "Searches", ["type", "outcome"], registry=self._registry
        )
        self._certainty = Counter(
            "groundhook_certainty",
            "Turns that asked sources, by the certainty of their answer",
            ["assistant", "certainty"],
            registry=self._registry,
        )
        self._tokens = Counter(
            "groundhook_tokens", "Tokens", ["assistant", "kind"], registry=self._registry
        )
        self._events = Counter("groundhook_events", "Events of turns", registry=self._registry)
        self._log_bytes = Counter(
            "groundhook_log_bytes", "Bytes of events", registry=self._registry
        )
        self.slow_readers = Counter(
            "groundhook_slow_readers", "Readers closed for slowness", registry=self._registry
        )
        self.ignored_users = Counter(
            "groundhook_ignored_users",
            "Requests that name a person with a key that acts for nobody",
            registry=self._registry,
        )
        self.streams = Gauge("groundhook_streams_open", "Open streams", registry=self._registry)
        self.running = Gauge("groundhook_turns_running", "Turns under way", registry=self._registry)

    def follow(self, times: Times) -> None:
        """Show how long the store of chats takes."""
        self._registry.register(_StoreTime(times))

    def request(self, route: str, method: str, status: int) -> None:
        """Count a request."""
        # The route, not the path: a label for each chat would fill the memory of Prometheus.
        self._requests.labels(route, method, str(status)).inc()

    def turn(self, running: ServerTurn) -> None:
        """Count a turn that has ended."""
        assistant, failed = running.ask.assistant_id, failure(running)
        self._turns.labels(assistant, failed.code if failed else "done").inc()
        self._turn_seconds.labels(assistant).observe(running.log[-1].event.at_ms / 1000)
        self._events.inc(len(running.log))
        self._log_bytes.inc(running.size)
        first_text = True
        types: dict[str, str] = {}
        for logged in running.log:
            match logged.event:
                case Text() if first_text:
                    self._first_text.labels(assistant).observe(logged.event.at_ms / 1000)
                    first_text = False
                case SearchStart():
                    types[logged.event.search_id] = logged.event.search_type
                case SearchComplete():
                    type = types.get(logged.event.search_id, "")
                    self._searches.labels(type, "failed" if logged.event.error else "done").inc()
                case StreamEnd():
                    usage, certainty = logged.event.usage, logged.event.certainty
                    if certainty is not None:
                        self._certainty.labels(assistant, certainty).inc()
                    self._tokens.labels(assistant, "prompt").inc(usage.prompt_tokens)
                    self._tokens.labels(assistant, "completion").inc(usage.completion_tokens)
                case _:
                    pass

    def response(self) -> Response:
        """Return the figures in Prometheus's text format."""
        return Response(
            generate_latest(self._registry), headers={"content-type": CONTENT_TYPE_LATEST}
        )


class _StoreTime(Collector):
    """Transactions of the store of chats, with the time that their callers waited."""

    def __init__(self, times: Times) -> None:
        self._times = times

    def collect(self) -> Iterator[Metric]:
        name, about = (
            "groundhook_store_seconds",
            "Time of transactions of the store of chats, with the wait for a free one",
        )
        family = SummaryMetricFamily(name, about, labels=["kind"])
        for kind, time in self._times.items():
            family.add_metric([kind], count_value=time.count, sum_value=time.seconds)
        yield family
