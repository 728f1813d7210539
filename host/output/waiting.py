"""How long a reader waits for a model: a fold over events, and the lines that say so. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from groundhook.core.types.events import Event, Reasoning, Text, ToolStart, Trace

FIRST_S = (
    5.0  # seconds of silence before the first line; each further one comes after twice as long
)


@dataclass(frozen=True)
class Waiting:
    """`since` is when the model's step began (None: nobody waits for a model), `next_s` after how
    many seconds of it the next line is due; `thinks`: the model sends its thinking."""

    since: float | None = None
    thinks: bool = False
    next_s: float = FIRST_S

    def after(self, event: Event, now: float) -> Waiting:
        """Return the state after an event at the time `now`, in seconds."""
        match event:
            case Trace() if event.node.type == "model":
                running = event.node.status == "running"
                return (self if self.since is not None else Waiting(now)) if running else Waiting()
            case Reasoning():
                return replace(self, thinks=True)
            case Text() | ToolStart():
                return Waiting()
        return self

    def line(self, now: float) -> tuple[Waiting, str]:
        """Return the line that is due at the time `now`, or "", and the state after it."""
        waited = now - self.since if self.since is not None else 0.0
        if waited < self.next_s:
            return self, ""
        does = "The model is thinking" if self.thinks else "Waiting for the model"
        return replace(self, next_s=2 * self.next_s), f"{does} ({waited:.0f} s)"
