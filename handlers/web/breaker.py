"""When a provider that keeps failing is left alone: a pure state machine; the time is passed in, in
seconds of any clock.

closed ── `most` failures in a row, or a Retry-After ──► open ── the pause is over ──► one try ──►
closed, or open again
"""

from __future__ import annotations

from dataclasses import dataclass, replace

LONGEST_PAUSE = 300.0  # seconds that a provider's Retry-After may close it for


@dataclass(frozen=True)
class Breaker:
    """`failures` in a row so far, and `why` the last; nothing is asked before `until`; `trying`:
    the one try behind a pause is under way."""

    failures: int = 0
    until: float = 0.0
    trying: bool = False
    why: str = ""

    def open(self, now: float) -> bool:
        """Whether nothing may be asked now."""
        return now < self.until or self.trying

    def asked(self) -> Breaker:
        """A request is sent. Behind a pause it is the only one until its outcome is known."""
        return replace(self, trying=self.until > 0)

    def left(self) -> Breaker:
        """The request was given up without an outcome."""
        return replace(self, trying=False)

    def failed(
        self, now: float, why: str, *, most: int, pause: float, after: float | None = None
    ) -> Breaker:
        """A request failed; `after` is how long the provider wants to be left alone. `most` of 0:
        never open for failures."""
        failures = self.failures + 1
        if after is not None:
            return Breaker(failures, now + min(after, LONGEST_PAUSE), why=why)
        return Breaker(failures, now + pause if most and failures >= most else 0.0, why=why)
