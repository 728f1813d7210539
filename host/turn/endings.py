"""What is reported when the answer of a model ends otherwise than with its last word: cut,
filtered, in a loop, or without any text. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

LOOKED_AT = 8000  # characters at the end of an answer
SHORTEST_LOOP = 200
MOST_REPETITIONS = 4
FEWEST_LETTERS = 10
LENGTH, FILTER = "length", "content_filter"
# A tag that ends thinking whose beginning is in the template of the model.
_LATE_TAG = re.compile(r"</think>[ \t]*(?:\n|$)")


@dataclass(frozen=True)
class Ending:
    """A warning about the end of an answer; `is_silent`: the reader has no text of it."""

    code: str
    message: str
    hint: str = ""
    is_silent: bool = False


def repeated(text: str) -> str:
    """Return the passage that the end of a text repeats; "" if it repeats none."""
    # Backwards, so that a beginning of the text with a period is an end with one. The table of
    # Knuth, Morris and Pratt has the longest border of each beginning, in linear time.
    end = text.rstrip()[-LOOKED_AT:][::-1]
    borders = [0] * len(end)
    for at in range(1, len(end)):
        border = borders[at - 1]
        while border and end[at] != end[border]:
            border = borders[border - 1]
        borders[at] = border + (end[at] == end[border])
        period, length = at + 1 - borders[at], at + 1
        if length >= SHORTEST_LOOP and length >= MOST_REPETITIONS * period:
            passage = end[:period][::-1]
            # Lines of signs, and tables of small numbers, repeat as well.
            return passage.strip() if sum(map(str.isalpha, passage)) >= FEWEST_LETTERS else ""
    return ""


def ending(text: str, reason: str, *, thought: bool, called: bool) -> Ending | None:
    """Return what there is to report about an answer. `reason` is its finish_reason; `thought`: the
    model sent its thinking, `called`: it called a tool."""
    empty = not (called or text.strip())
    if reason == FILTER:
        return Ending(
            "answer_filtered",
            "a content filter of the model's endpoint ended the answer (finish_reason"
            " content_filter)",
            hint="another wording of the question or of the prompt may pass the filter",
            is_silent=empty,
        )
    if passage := repeated(text):
        return Ending(
            "answer_repeats",
            f"the model was in a loop: the end of its answer repeats {passage[:80]!r}",
            hint=(
                "options.frequency_penalty or a higher temperature may end it; small models loop"
                " most, and over long prompts"
            ),
        )
    if reason == LENGTH:
        spent = " while it was still thinking" if empty and thought else ""
        return Ending(
            "answer_cut",
            f"the answer is cut: the model reached its token limit{spent} (finish_reason length)",
            hint=(
                "options.max_tokens of the assistant or of its connector sets the limit; a full"
                " context ends an answer as well"
            ),
            is_silent=empty,
        )
    if empty:
        sent = "only its thinking and no answer" if thought else "an empty answer"
        return Ending(
            "answer_empty",
            f"the model sent {sent} (finish_reason {reason or 'none'})",
            hint="the step of the model in the trace has its name and its tokens",
            is_silent=True,
        )
    if not thought and _LATE_TAG.search(text):
        return Ending(
            "thinking_unmarked",
            "the answer has </think> without <think>: its beginning may be the model's thinking",
            hint="options.begins_thinking of the connector marks it as that",
        )
    return None
