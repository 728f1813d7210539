"""Open WebUI's `event` objects, and answers to the tasks that it sends beside questions. Pure.

Its page merges sources with an equal `metadata[].source`, so the caller gives each number a name
of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from groundhook.core.types.events import (
    SearchComplete,
    SearchStart,
    SourcesGiven,
    ToolResult,
    ToolStart,
)
from groundhook.core.types.search import PLACES, Item

_TASK = "### Task:"
# The prompts of tasks that begin with something else.
_EMOJI = "Your task is to reflect the speaker's likely facial expression"
_MERGE = "You have been provided with a set of responses from various models"
_TOOLS = "Available Tools:"
_DOCUMENTS = f"{_TASK}\nRespond to the user query using the provided context"
_CONTEXT = ("<context>\n", "</context>")
_ATTACHED = ("<attached_files>\n", "\n</attached_files>\n\n")
_FIRST_QUESTION = re.compile(r"^[^\S\n]*+USER:\s*+(\S.*)$", re.MULTILINE)
LONGEST_TITLE = 60

Task = Literal["title", "tags", "follow_ups", "queries", "tools", "merge", "other"]
NOT_MERGED = "Answers of several models are not merged here."


@dataclass(frozen=True)
class Status:
    """A line above the answer; `done` ends it."""

    action: str
    description: str
    done: bool = False
    count: int | None = None

    def event(self) -> dict[str, Any]:
        """Return the event that shows the line, or changes it."""
        data = {"action": self.action, "description": self.description, "done": self.done}
        return {
            "type": "status",
            "data": data if self.count is None else {**data, "count": self.count},
        }


def searching(event: SearchStart) -> Status:
    """Return the status of a search that begins."""
    # Of `knowledge_search` Open WebUI shows a sentence of its own, which names no place.
    return Status("search", f"Searching {PLACES[event.search_type]}: {event.query}")


def searched(event: SearchComplete, found: int) -> Status:
    """Return the status of a search that ended, with `found` items. The total of the event counts
    all matches, most of which nobody reads."""
    if event.error:
        # Why it failed is for authors: readers cannot do anything about it.
        return Status("search_failed", "The search failed", done=True)
    return Status("search_done", f"Found {found}", done=True)


def given(event: SourcesGiven) -> Status:
    """Return the status of a prompt that has its sources."""
    # Open WebUI writes its own sentence for `sources_retrieved`, of the count alone: "No sources
    # found" also where each search has failed.
    action = "sources_retrieved" if event.given else "search_done"
    return Status(action, event.words, done=True, count=event.given)


def calling(event: ToolStart) -> Status:
    """Return the status of a tool that is called."""
    return Status("tool", f"Calling {event.name}")


def called(event: ToolResult) -> Status:
    """Return the status of a tool that returned."""
    return Status("tool", f"{event.name} {'failed' if event.error else 'answered'}", done=True)


def source(item: Item, name: str, url: str) -> dict[str, Any]:
    """Return the event that lists a source. `name` is not that of an earlier one."""
    title = item.title or name
    place = {"url": url} if url else {}
    return {
        "type": "source",
        "data": {
            "source": {"id": name, "name": title, **place},
            "document": [item.content],
            "metadata": [{"source": name, "name": title, **place}],
            "distances": [item.score],
        },
    }


def without_attached(text: str) -> str:
    """Return a question without the list of attached files that Open WebUI writes before it: ids
    for tools of its own, which would be searched for."""
    if not text.startswith(_ATTACHED[0]):
        return text
    _, end, question = text.partition(_ATTACHED[1])
    return question.lstrip() if end else text


def question_and_documents(text: str) -> tuple[str, str]:
    """Return a question, and the documents that Open WebUI writes before it by its template for
    those that a person attached or that its own search found; "" without them."""
    if not text.startswith(_DOCUMENTS):
        return text, ""
    before, _, question = text.rpartition(_CONTEXT[1])
    _, _, documents = before.partition(_CONTEXT[0])
    return (question.strip(), documents) if documents and question.strip() else (text, "")


def task_named(name: str) -> Task:
    """Return the task that a header of its connection names, `{{TASK}}`."""
    names: Mapping[str, Task] = {
        "title_generation": "title",
        "tags_generation": "tags",
        "follow_up_generation": "follow_ups",
        "query_generation": "queries",
        "function_calling": "tools",
        "moa_response_generation": "merge",
    }
    return next((task for key, task in names.items() if key in name.lower()), "other")


def task_of(prompts: Sequence[str], *, sure: bool) -> Task | None:
    """Return which task a request is by its prompts, of the role `system` and the user's behind
    them; None for a question. `sure`: they are those of Open WebUI, so the first line tells."""
    *instructions, text = (prompt.lstrip() for prompt in prompts)
    if any(each.startswith(_TOOLS) and '"tool_calls"' in each for each in instructions):
        return "tools"
    if text.startswith(_MERGE):
        return "merge"
    if text.startswith(_EMOJI):
        return "other"
    if text.startswith(_DOCUMENTS) or not text.startswith(_TASK):
        return None
    if not (sure or _quotes_chat(text)):
        return None
    # The examples of a task's output are at its end: `{ "title": "your title here" }`.
    wanted = text.lower()
    keys: Mapping[str, Task] = {
        "follow_up": "follow_ups",
        '"tags"': "tags",
        '"title"': "title",
        '"queries"': "queries",
    }
    return next((task for key, task in keys.items() if key in wanted), "other")


def _quotes_chat(text: str) -> bool:
    """Return whether a prompt quotes a conversation, as no person writes it."""
    return "<chat_history>" in text and "</chat_history>" in text


def answer_task(task: Task, text: str, assistant: str) -> str:
    """Return an answer to a task that costs nothing: a title of the first question's words, and
    empty lists; no emoji, and no merged answer."""
    match task:
        case "title":
            return json.dumps({"title": _title(text) or assistant}, ensure_ascii=False)
        case "tags" | "follow_ups" | "queries":
            return json.dumps({task: []})
        case "tools":
            return json.dumps({"tool_calls": []})
        case "merge":
            return NOT_MERGED
        case "other":
            return ""


def _title(text: str) -> str:
    # The task quotes the conversation, each message behind its role.
    found = _FIRST_QUESTION.search(text)
    words = " ".join(found[1].split()) if found else ""
    if len(words) <= LONGEST_TITLE:
        return words
    head, _, _ = words[: LONGEST_TITLE + 1].rpartition(" ")
    return head or words[:LONGEST_TITLE]
