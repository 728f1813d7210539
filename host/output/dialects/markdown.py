"""A kept conversation as Markdown, with its citations as footnotes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from groundhook.core.types.chats import Chat, ChatMessage, KeptAnswer
from groundhook.core.types.search import Item
from groundhook.host.output.dialects.places import address

_ESCAPES = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]<>#|"})


def exported(chat: Chat, path: Sequence[ChatMessage], *, name: str, public_url: str = "") -> str:
    """Return the conversation as Markdown. `name` is the assistant's; addresses of sources are
    those that a reader may open, below `public_url`."""
    notes: dict[str, tuple[int, Item]] = {}
    parts = [f"# {_plain(chat.title) or 'Conversation'}"]
    for message in path:
        who = "You" if message.role == "user" else _plain(name)
        parts.append(f"**{who}** · {_moment(message.made_at)}")
        parts.append(_answer(message.answer, notes) if message.answer else message.text)
    parts += [_note(number, item, public_url) for number, item in notes.values()]
    return "\n\n".join(part for part in parts if part) + "\n"


def _answer(answer: KeptAnswer, notes: dict[str, tuple[int, Item]]) -> str:
    """Return the text of an answer, its markers replaced by footnotes, which are added to
    `notes`."""
    marks: list[tuple[int, str, str]] = []
    for citation in answer.citations:
        if citation.item is None:
            continue
        number, _ = notes.setdefault(citation.marker.lower(), (len(notes) + 1, citation.item))
        marks += [(place, citation.marker, f"[^{number}]") for place in citation.places]
    # By their places: the same text in a block of code is no citation and stays.
    text, done = "", 0
    for place, marker, note in sorted(marks):
        text += answer.content[done:place] + note
        done = place + len(marker)
    text += answer.content[done:]
    errors = [f"*({_plain(error.message)})*" for error in answer.errors]
    return "\n\n".join([text.strip(), *errors]).strip()


def _note(number: int, item: Item, public_url: str) -> str:
    # Without the address of a server only addresses of the web open anywhere.
    web = item.url.startswith(("http://", "https://"))
    title, url = (
        _plain(item.title) or "Source",
        address(item, public_url) if public_url or web else "",
    )
    named = f"[{title}]({url})" if url else title
    # As code of the footnote: the lines of a table stay, and nothing in the passage is markup.
    lines = [f"        {one}".rstrip() for one in item.content.strip().splitlines()]
    return "\n".join([f"[^{number}]: {named}", *(["", *lines] if lines else [])])


def _plain(text: str) -> str:
    """Return a text of others so that nothing in it is markup."""
    return " ".join(text.split()).translate(_ESCAPES)


def _moment(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
