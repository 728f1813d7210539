"""Fits a prompt into the context of a model. Pure.

The prompts and the question always stay. If the rest does not fit, exchanges of the history are
omitted first, the oldest one first; then the passages are shortened; then sources are omitted, the
last one first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from groundhook.core.tokens import estimated_tokens
from groundhook.core.types.search import Item
from groundhook.core.types.turn import Message
from groundhook.host.llm.layout import last_user
from groundhook.host.turn.prompt.source_block import Prompt

MESSAGE_TOKENS = 4  # of a message, beside its text: its role and the separators of a template
ANSWER_TOKENS = 1024  # room for an answer without a limit, at most a quarter of the context
LENGTHS = (3000, 1500, 750, 400)  # characters of a passage, tried in this order
SYSTEM = ("system", "developer")

Build = Callable[[Sequence[Item], Sequence[Message]], Prompt]


@dataclass(frozen=True)
class Fitted:
    """A prompt and its omissions: the `omitted` messages of the history, a number of sources, and
    the text of passages beyond `passage_characters` (0: none was shortened)."""

    prompt: Prompt
    tokens: int
    omitted: tuple[Message, ...] = ()
    passage_characters: int = 0
    sources_omitted: int = 0

    @property
    def messages_omitted(self) -> int:
        """The number of omitted messages of the history."""
        return len(self.omitted)

    @property
    def omissions(self) -> str:
        """The omissions in words; "" without any."""
        parts = (
            (self.messages_omitted, f"{self.messages_omitted} messages of the history omitted"),
            (self.passage_characters, f"passages cut to {self.passage_characters} characters"),
            (self.sources_omitted, f"{self.sources_omitted} sources omitted"),
        )
        return ", ".join(text for number, text in parts if number)

    def figures(self) -> dict[str, int]:
        """Return the numbers, for the trace."""
        return {
            "tokens": self.tokens,
            "messages_omitted": self.messages_omitted,
            "passage_characters": self.passage_characters,
            "sources_omitted": self.sources_omitted,
        }


def room(context: int, answer: int | None, tools: Sequence[Mapping[str, Any]]) -> int:
    """Return the tokens of a context that are left for messages, beside the answer and the
    descriptions of tools."""
    reserved = answer or min(ANSWER_TOKENS, context // 4)
    described = estimated_tokens(json.dumps(tools, default=str)) if tools else 0
    return max(0, context - reserved - described)


def prompt_tokens(messages: Sequence[Message]) -> int:
    """Return about how many tokens the messages are. An image is not counted."""
    return sum(
        MESSAGE_TOKENS
        + estimated_tokens(message.text)
        + (estimated_tokens(json.dumps(message.tool_calls)) if message.tool_calls else 0)
        for message in messages
    )


def fit(
    build: Build, items: Sequence[Item], conversation: Sequence[Message], most: int | None
) -> Fitted:
    """Return the prompt of the sources and the conversation with at most `most` tokens; more only
    where the prompts and the question alone have more. None: no limit, and no token is counted."""
    if most is None:
        return Fitted(build(items, conversation), 0)

    def fitted(items: Sequence[Item], conversation: Sequence[Message]) -> Fitted:
        # Built again and not estimated: without sources their instructions go as well.
        prompt = build(items, conversation)
        return Fitted(prompt, prompt_tokens(prompt.messages))

    found = fitted(items, conversation)
    if found.tokens <= most:
        return found
    kept, omitted = _keep_newest(conversation, found.tokens - most)
    found = fitted(items, kept)
    length = 0
    for shorter in LENGTHS:
        if found.tokens <= most or not items:
            break
        if any(len(item.content) > shorter for item in items):
            length = shorter
            items = [_shorten(item, length) for item in items]
            found = fitted(items, kept)
    sources = len(items)
    while found.tokens > most and items:
        items = items[:-1]
        found = fitted(items, kept)
    return replace(
        found,
        omitted=omitted,
        passage_characters=length if items else 0,
        sources_omitted=sources - len(items),
    )


def _keep_newest(
    conversation: Sequence[Message], excess: int
) -> tuple[list[Message], tuple[Message, ...]]:
    """Return the conversation without its oldest exchanges, until `excess` tokens are saved, and
    those. System messages and the question stay; the kept history begins with a question."""
    at = last_user(conversation)
    first, saved = 0, 0
    while first < at and (saved < excess or conversation[first].role != "user"):
        if conversation[first].role not in SYSTEM:
            saved += prompt_tokens([conversation[first]])
        first += 1
    stays = [place >= first or each.role in SYSTEM for place, each in enumerate(conversation)]
    kept = [each for each, stay in zip(conversation, stays, strict=True) if stay]
    return kept, tuple(each for each, stay in zip(conversation, stays, strict=True) if not stay)


def _shorten(item: Item, length: int) -> Item:
    if len(item.content) <= length:
        return item
    return item.model_copy(update={"content": f"{item.content[:length]} […]"})
