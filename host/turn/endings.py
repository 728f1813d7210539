"""What is reported when the answer of a model ends otherwise than with its last word: cut,
filtered, or without any text. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

LENGTH, FILTER = "length", "content_filter"
# A tag that ends thinking whose beginning is in the template of the model.
_LATE_TAG = re.compile(r"</think>[ \t]*(?:\n|$)")


@dataclass(frozen=True)
class Ending:
    """A warning about the end of an answer; `said` is what the reader gets instead of a text (""
    where there is one)."""

    code: str
    message: str
    hint: str = ""
    said: str = ""


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
            said="The content filter of the language model withheld the answer." if empty else "",
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
            said="The language model reached its token limit before an answer." if empty else "",
        )
    if empty:
        sent = "only its thinking and no answer" if thought else "an empty answer"
        return Ending(
            "answer_empty",
            f"the model sent {sent} (finish_reason {reason or 'none'})",
            hint="the step of the model in the trace has its name and its tokens",
            said="The language model gave no answer.",
        )
    if not thought and _LATE_TAG.search(text):
        return Ending(
            "thinking_unmarked",
            "the answer has </think> without <think>: its beginning may be the model's thinking",
            hint="options.begins_thinking of the connector marks it as that",
        )
    return None
