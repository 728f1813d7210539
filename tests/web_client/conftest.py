"""A loopback server, and a resolver that the test sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from groundhook.core.settings import HttpSettings
from groundhook.host.web_client.client import GuardedClient
from tests.loopback.server import Loopback, serving


@dataclass
class Names:
    """A resolver: `leads[name]` has its answers in order; the last answer repeats."""

    leads: dict[str, list[Sequence[str]]] = field(default_factory=dict)
    resolved: list[str] = field(default_factory=list)

    async def __call__(self, name: str, port: int) -> Sequence[str]:
        self.resolved.append(name)
        answers = self.leads.get(name, [[]])
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def client(self, *hosts: str, **settings: int) -> GuardedClient:
        return GuardedClient(HttpSettings(hosts=hosts, **settings), resolve=self)


@pytest.fixture
def names() -> Names:
    return Names()


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving() as server:
        yield server


@pytest.fixture
def other() -> Iterator[Loopback]:
    with serving() as server:
        yield server
