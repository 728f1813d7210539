"""The text of an answer made of quotations: Markdown, every passage cited behind its end. What is
quoted is not decided here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from textwrap import indent

from groundhook.host.core.types.search import Item
from groundhook.host.llm.passages import Quote, near

MOST_ROWS = 8

NOTHING = (
    "No language model is configured, and there is no source to quote for this question.\n\nFor an"
    ' answer in free words, describe a language model in `connectors/<name>.conn.yao` (`"type":'
    ' "openai"` for any OpenAI-compatible endpoint, with `model`, `host` and `key` under `options`)'
    " and name it as the assistant's `connector`."
)


def compose(quotes: Sequence[Quote], references: Sequence[Item], *, direct: bool) -> str:
    """What the answer is, records one a line, then each source's title and its passages in the
    order of the source. The source with the best passage comes first."""
    records = [item for item in references if item.type == "db"]
    parts: list[str] = []
    if records:
        these = "the record" if len(records) == 1 else "the best records"
        parts.append(f"No language model is configured; {these} that the search found:")
        parts.append(
            "\n".join(
                f"- {record(item)} {item.citation_id}".rstrip() for item in records[:MOST_ROWS]
            )
        )
        if len(records) > MOST_ROWS:
            parts.append(
                f"… and {len(records) - MOST_ROWS} more of the {len(records)} that were handed on"
                " for the answer."
            )
    if quotes:
        parts.append(_opening(direct, after_records=bool(records)))
    for title in dict.fromkeys(_title(references[quote.item]) for quote in quotes):
        lines = [f"**{title}**"] if title else []
        mine = [quote for quote in quotes if _title(references[quote.item]) == title]
        first = {quote.item: at for at, quote in reversed(list(enumerate(mine)))}
        for quote in _joined(sorted(mine, key=lambda quote: (first[quote.item], quote.place))):
            lines.append(f"{_passage(quote)}{references[quote.item].citation_id}".rstrip())
        parts.append("\n".join(lines))
    return "\n\n".join(parts) if parts else NOTHING


def _joined(quotes: Sequence[Quote]) -> list[Quote]:
    """Passages that follow each other in one item as one, unless something stood between them that
    is not quoted."""
    joined: list[Quote] = []
    for quote in quotes:
        before = joined[-1] if joined else None
        follows = before is not None and before.item == quote.item and before.end + 1 == quote.place
        if (
            before
            and follows
            and near(before.closes, quote.opens)
            and not (before.entries or quote.entries or before.code or quote.code)
        ):
            joined[-1] = replace(
                quote, place=before.place, opens=before.opens, text=f"{before.text} {quote.text}"
            )
        else:
            joined.append(quote)
    return joined


def _passage(quote: Quote) -> str:
    """An entry of a list, with what parts it from its marker. Code has lines of its own, its fences
    too: what stands behind a bullet opens no block, as `host.citations.reader` reads it."""
    if not quote.code:
        return "- " + "\n  - ".join([quote.text, *quote.entries]) + " "
    code = "\n\n".join(quote.entries or [quote.text])
    fence = max(["```", *(f"{run}`" for run in re.findall("`{3,}", code))], key=len)
    block = "\n".join([fence, code, fence, ""])
    return f"- {quote.text}\n{indent(block, '  ')}  " if quote.entries else block


def record(item: Item) -> str:
    """A database record as one line: its title, then what else its content says, or its fields
    where that is nothing."""
    title = _title(item)
    told = {item.title, str(item.record_id), *item.title.split(", ")}
    fields = [
        f"{name}: {value}"
        for name, value in (item.data or {}).items()
        if value is not None and not name.startswith("__")
    ]
    for said in (item.content.splitlines(), fields):
        if lines := [
            _shown(line) for line in said if told.isdisjoint((line, line.partition(": ")[2]))
        ]:
            line = "; ".join(lines[:10])
            return f"**{title}** – {line}" if title else line
    return f"**{title}**"


def _shown(value: str) -> str:
    text = " ".join(value.split())
    return text if len(text) <= 160 else text[:159].rstrip() + "…"


def _title(item: Item) -> str:
    return " ".join(item.title.split()).replace("**", "")


def _opening(direct: bool, *, after_records: bool) -> str:
    if after_records:
        return "From the other sources:"
    if direct:
        return "No language model is configured; these passages answer best:"
    return (
        "No language model is configured, and nothing found answers this directly. The nearest"
        " passages:"
    )
