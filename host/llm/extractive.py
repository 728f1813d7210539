"""The connector without a language model: it quotes the sentences of the references that answer the
question best.

`host.llm.questions` parses the question, `host.llm.extract` chooses what to quote,
`host.llm.extractive` writes the answer. This module streams the text.

Writes an answer of quotations: Markdown, with a citation after every passage. Other modules
choose the quotations.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial
from textwrap import indent
from typing import Any

import anyio.lowlevel
import anyio.to_thread

from groundhook.core.language.phrases import phrases, pleasantry
from groundhook.core.language.terms import terms
from groundhook.core.ports import Delta, Finished, ModelCall, Notice, TextDelta
from groundhook.core.types.search import Certainty, Item
from groundhook.core.types.tables import MOST_SHOWN, tables_of
from groundhook.host.llm import extract, questions
from groundhook.host.llm.candidates import candidates
from groundhook.host.llm.lists import near
from groundhook.host.llm.parts import is_text, notices
from groundhook.host.llm.passages import Quote
from groundhook.host.llm.sentences import Sentence
from groundhook.host.llm.tables import doubts, escaped, table_parts

LONG = 20_000  # characters of sources that are read in a thread: they take 20 milliseconds
SECTION = "quoting"
HEADINGS = " › "  # between the headings in a title
MOST_TITLES = 3  # of documents with the same passage
NO_MODEL = "the assistant has no language model: its answers quote what is found"
HOW_TO_GET_MORE = (
    "for answers in free words, describe a language model in connectors/<name>.conn.yao"
    ' ("type": "openai" for any OpenAI-compatible endpoint, with model, host and key under'
    " options) and name it as the assistant's connector; `messages` sets what readers get"
)
_OPENINGS: Mapping[Certainty | None, str] = {
    "sure": "answers",
    None: "answers",
    "partial": "not_sure",
    "none": "nearest",
}


def compose(
    quotes: Sequence[Quote],
    references: Sequence[Item],
    *,
    said: Mapping[str, str],
    certainty: Certainty | None = None,
    failed: bool = False,
    declined: Sequence[str] = (),
    question: str = "",
) -> str:
    """Return the answer: the tables and records of databases, a line that names its kind, then each
    source's title with its passages in the order of the source. The source with the best passage
    comes first. `said` has the sentences for people, and `certainty` is that of the search for
    the passages. A search `failed`, which the answer says, and `declined` has the reasons of those
    that answered nothing."""
    records = [item for item in references if item.type == "db"]
    parts = list(_record_parts(records, question))
    if quotes:
        after_records = bool(records) and certainty != "none"
        parts.append(said["others" if after_records else _OPENINGS[certainty]])
    by_title: dict[str, list[Quote]] = {}
    for quote in quotes:
        by_title.setdefault(_title(references[quote.item], quote.opens), []).append(quote)
    parts += [_source(title, mine, references) for title, mine in by_title.items()]
    parts += [_one_line(reason) for reason in declined]
    if not parts:
        return said["unavailable" if failed else "nothing_found"]
    if failed:
        parts.append(said["failed"])
    return "\n\n".join(parts)


def _record_parts(records: Sequence[Item], question: str) -> Iterator[str]:
    """Yield the tables, and records that are alone as one line each."""
    alone: list[Item] = []
    for table, rows in tables_of(records):
        if table is None:
            alone += rows
        elif len(rows) == table.total == 1:
            yield _record_line(rows[0])
            yield from doubts(table, question)
        else:
            yield from table_parts(table, rows, question)
    if alone:
        yield "\n".join(map(_record_line, alone[:MOST_SHOWN]))
    if len(alone) > MOST_SHOWN:
        yield f"… and {len(alone) - MOST_SHOWN} more of the {len(alone)} records."


def _record_line(item: Item) -> str:
    return f"- {record(item)} {item.citation_id}".rstrip()


def _one_line(text: str) -> str:
    """Return a text with words of a question and of tables, without what Markdown would read."""
    line = escaped(" ".join(text.split())).translate(_MORE_ESCAPES)
    return f"\\{line}" if line.startswith(">") else line


def _source(title: str, quotes: Sequence[Quote], references: Sequence[Item]) -> str:
    """Return the passages of the items of one title, the item of the best passage first."""
    items = list(dict.fromkeys(quote.item for quote in quotes))
    ordered = sorted(quotes, key=lambda quote: (items.index(quote.item), quote.place))
    lines = [
        f"{_format(quote)}{references[quote.item].citation_id}".rstrip()
        for quote in _join_neighbours(ordered)
    ]
    return "\n".join([f"**{title}**", *lines] if title else lines)


def _join_neighbours(quotes: Sequence[Quote]) -> list[Quote]:
    """Return the passages with those joined that follow each other in one item without anything in
    between."""
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


def _format(quote: Quote) -> str:
    """Return a passage as a list entry, up to the space before its marker. A code fence gets a line
    of its own, since `host.search.citations.reader` does not recognise one after a bullet."""
    if not quote.code and not quote.text:
        return "\n".join(map(_bullet, quote.entries)) + " "
    if not quote.code:
        return "\n  ".join([f"- {quote.text}", *map(_bullet, quote.entries)]) + " "
    code = "\n\n".join(quote.entries or [quote.text])
    fence = max(["```", *(f"{run}`" for run in re.findall("`{3,}", code))], key=len)
    block = "\n".join([fence, code, fence, ""])
    return f"- {quote.text}\n{indent(block, '  ')}  " if quote.entries else block


def _bullet(entry: str) -> str:
    text = entry.lstrip(" ")
    return f"{entry[: len(entry) - len(text)]}- {text}"


def record(item: Item) -> str:
    """Return a database record as one line: its title, then the rest of its content, or its fields
    when the content has nothing else."""
    title = _title(item)
    shown = {item.title, str(item.record_id), *item.title.split(", ")}
    fields = [
        f"{name}: {value}"
        for name, value in (item.data or {}).items()
        if value is not None and not name.startswith("__")
    ]
    for details in (item.content.splitlines(), fields):
        if lines := [
            _abbreviate(line)
            for line in details
            if shown.isdisjoint((line, line.partition(": ")[2]))
        ]:
            line = "; ".join(lines[:10])
            return f"**{title}** – {line}" if title else line
    return f"**{title}**"


def _abbreviate(value: str) -> str:
    text = " ".join(value.split())
    return text if len(text) <= 160 else text[:159].rstrip() + "…"


def _title(item: Item, quoted: Sentence | None = None) -> str:
    """Return the title of an item, with those of the documents that have the same passage. The
    title ends in the heading above what is quoted, which may be a later one than the item's."""
    own = _below_headings(item.title, quoted) if quoted else item.title
    titles = dict.fromkeys([own, *(place.title for place in item.also)])
    shown = [" ".join(each.split()).replace("**", "") for each in titles if each.strip()]
    more = ["…"] if len(shown) > MOST_TITLES else []
    return ", ".join([*shown[:MOST_TITLES], *more])


def _below_headings(title: str, quoted: Sentence) -> str:
    """Return the title of an item with the headings above a sentence of it that it does not
    have."""
    levels = title.split(HEADINGS)
    known = {" ".join(terms(level)) for level in levels}
    if quoted.section and " ".join(terms(quoted.section)) not in known:
        # The title of a document is of level 1; one without it has no headings above the first.
        levels = [*levels[: max(1, quoted.level - 1)], quoted.section]
    labels = quoted.heading.endswith((":", "："))  # such as "Note:"
    if quoted.heading not in ("", quoted.section, *levels) and not labels:
        levels.append(quoted.heading.rstrip("."))
    return HEADINGS.join(levels)


NAME = "extractive"
LONGEST_QUESTION = 8000  # characters
READS_TEXT = "this connector quotes sources and reads text alone; a language model may read more"

_MORE_ESCAPES = str.maketrans({sign: f"\\{sign}" for sign in "_#~"})  # than in a cell of a table
_PIECE = re.compile(r"\S+\s*|\s+")


class ExtractiveConnector:
    """Answers from `call.references`."""

    def reads(self, part: Mapping[str, Any], /) -> bool:
        """Return whether a part is text."""
        return is_text(part)

    @asynccontextmanager
    async def stream(self, call: ModelCall, /) -> AsyncIterator[AsyncIterator[Delta]]:
        async with aclosing(self._deltas(call)) as deltas:
            yield deltas

    def __init__(self) -> None:
        self._has_warned = False

    async def _deltas(self, call: ModelCall) -> AsyncGenerator[Delta]:
        for notice in notices(call.messages, NAME, is_text, hint=READS_TEXT):
            yield notice
        read = partial(_answer, _question(call), call)
        long = sum(len(item.content) for item in call.references) > LONG
        text = await anyio.to_thread.run_sync(read, abandon_on_cancel=True) if long else read()
        # Once, since it is for the author, and each reader's turn would repeat it.
        if not (call.references or call.declined or self._has_warned):
            self._has_warned = True
            yield Notice("no_model", NO_MODEL, HOW_TO_GET_MORE)
        for piece in _PIECE.findall(text):
            yield TextDelta(piece)
            # Lets other turns run: nothing else here waits.
            await anyio.lowlevel.checkpoint()
        yield Finished("stop", model=NAME)


def _answer(question: str, call: ModelCall) -> str:
    references = call.references
    said = call.sentences() if call.sentences else phrases(SECTION, question)
    if kind := pleasantry(question):
        return said[kind[0]]
    found = candidates(references)
    finish = partial(
        compose,
        said=said,
        question=question,
        certainty=call.certainty,
        failed=bool(call.failed_searches),
        declined=call.declined,
    )
    if not found:  # checked first: parsing a long question takes time
        return finish([], references)
    known = frozenset[str]().union(*(each.terms for each in found))
    known |= frozenset(terms(" ".join(item.title for item in references)))
    parts = [part.spelt_as(known) for part in questions.parts(question)]
    words = [extract.words(part, found, references) for part in parts]
    direct = call.certainty in (None, "sure")
    return finish(extract.choose(parts, found, words, references, direct=direct), references)


def _question(call: ModelCall) -> str:
    """Return the question of a call, else the text of its last user message. Of a longer one than
    LONGEST_QUESTION, which has a text for its question, only the beginning and the end are read."""
    users = (message.text for message in reversed(call.messages) if message.role == "user")
    question = call.question if call.question.strip() else next(users, "")
    if len(question) <= LONGEST_QUESTION:
        return question
    half = LONGEST_QUESTION // 2
    return f"{question[:half]}\n{question[-half:]}"
