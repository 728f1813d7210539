"""A circuit breaker for providers that keep failing: a pure state machine. Times are arguments, in
seconds of any clock.

    closed ── `max_failures` in a row, or a Retry-After ──► open ── the pause ends ──► one trial
    request ──► closed, or open again
"""

from __future__ import annotations

from dataclasses import dataclass, replace

LONGEST_PAUSE = 300.0  # seconds; the upper limit for a provider's Retry-After


@dataclass(frozen=True)
class Breaker:
    """The state: `failures` in a row so far, the reason `why` of the last one, the time
    `paused_until` before which no request is sent, and whether the trial request after a pause is
    under way (`trying`)."""

    failures: int = 0
    paused_until: float = 0.0
    trying: bool = False
    why: str = ""

    def is_open(self, now: float) -> bool:
        """Return whether requests must not be sent now."""
        return now < self.paused_until or self.trying

    def sent(self) -> Breaker:
        """Return the state after a request was sent. After a pause it is the only one until its
        outcome is known."""
        return replace(self, trying=self.paused_until > 0)

    def abandoned(self) -> Breaker:
        """Return the state after a request was cancelled, or failed for a reason that does not
        count."""
        return replace(self, trying=False)

    def failed(
        self, now: float, why: str, *, max_failures: int, pause: float, after: float | None = None
    ) -> Breaker:
        """Return the state after a failure. `max_failures` in a row open the breaker for `pause`
        seconds (0: never); `after`, the provider's Retry-After in seconds, opens it at once."""
        failures = self.failures + 1
        if after is not None:
            return Breaker(failures, now + min(after, LONGEST_PAUSE), why=why)
        return Breaker(
            failures, now + pause if max_failures and failures >= max_failures else 0.0, why=why
        )
