"""The runs of one turn: one for each assistant that worked on it, in order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any

from groundhook.core.types.events import Cited, StreamEnd
from groundhook.core.types.turn import Usage
from groundhook.host.turn.run import AssistantRun


@dataclass
class TurnRuns:
    """The runs of a turn: the last one is running, the earlier ones delegated the turn."""

    runs: list[AssistantRun]

    def add(self, run: AssistantRun) -> None:
        """Add the run that the current one has delegated the turn to."""
        self.runs.append(run)

    @property
    def current(self) -> AssistantRun:
        return self.runs[-1]

    @property
    def model_failure(self) -> str:
        """The first failure of a language model; empty when none failed."""
        return next((run.model_failure for run in self.runs if run.model_failure), "")

    @property
    def has_text(self) -> bool:
        """Whether any run has streamed text."""
        return any(run.answer.streamed for run in self.runs)

    def end_event(self) -> StreamEnd:
        """Return the event that ends the turn: the text, citations and usage of all runs, and the
        data and finish reason of the last."""
        last = self.current
        timings = dict(last.timings)
        first_texts = [
            run.answer.first_text_ms for run in self.runs if run.answer.first_text_ms is not None
        ]
        if first_texts:
            timings["first_text"] = round(first_texts[0], 3)
        timings["total"] = round(last.channel.elapsed_ms(), 3)
        citations: dict[str, Cited] = {}
        for citation in chain.from_iterable(run.answer.cited.values() for run in self.runs):
            citations.setdefault(citation.marker, citation)
        metadata: dict[str, Any] = {}
        for run in self.runs:
            metadata |= run.metadata
        return StreamEnd(
            content="".join(run.answer.streamed for run in self.runs),
            message={
                "role": "assistant",
                "content": [part for run in self.runs for part in run.answer.parts],
            },
            citations=tuple(citations.values()),
            data=last.returned.data if last.returned else None,
            metadata=metadata,
            finish_reason=last.answer.finish_reason,
            grounded=self._is_grounded(citations.values()),
            usage=_add_usages([run.answer.usage for run in self.runs]),
            timings=timings,
        )

    def _is_grounded(self, citations: Iterable[Cited]) -> bool | None:
        """Return whether the answer cites a source; None when the answer is not complete or the
        model had no sources."""
        finished = bool(self.current.answer.finish_reason)
        complete = finished and any(run.answer.content for run in self.runs)
        offered = any(run.answer.sources_offered for run in self.runs)
        if self.model_failure or not complete or not offered:
            return None
        return any(citation.verdict != "unknown" for citation in citations)


def _add_usages(usages: list[Usage]) -> Usage:
    return Usage(
        prompt_tokens=sum(usage.prompt_tokens for usage in usages),
        completion_tokens=sum(usage.completion_tokens for usage in usages),
        total_tokens=sum(usage.total_tokens for usage in usages),
    )
